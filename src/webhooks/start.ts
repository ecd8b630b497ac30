import type { Context } from '../context.ts'
import { EVENTS_PUBLISHED } from '../feed/publish.ts'
import { type Loop, watchLoop } from '../loop.ts'
import { createDelivering } from './deliver.ts'

/** The net under NOTIFY, and what backoffs are measured with (ms). */
const POLL_MS = 1_000

/** Delivers webhooks until the process stops; whatever is published wakes it. */
export async function startDelivering(ctx: Context, pollMs = POLL_MS): Promise<Loop> {
  let wake = () => {}
  const onMore = () => wake()
  await ctx.sql.listen(EVENTS_PUBLISHED, onMore, onMore)
  const loop = watchLoop(ctx, {
    name: 'webhooks',
    begin: createDelivering(ctx),
    rest: () => Promise.resolve(pollMs),
  })
  wake = loop.wake
  return loop
}
