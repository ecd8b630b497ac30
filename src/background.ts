import type { Context } from './context.ts'
import { SYNC_DUE } from './db/due.ts'
import { EVENT_RECORDED } from './events/record.ts'
import { beginPublishing, EVENTS_PUBLISHED } from './feed/publish.ts'
import { type Loop, watchLoop } from './loop.ts'
import { forgetReceivers } from './refunds/forget.ts'
import { createRemoval } from './retention.ts'
import { reconcile } from './sync/reconcile.ts'
import { sweepNotifications } from './sync/sweep.ts'
import { beginSync, restSync } from './sync/sync-due.ts'
import { createDelivering } from './webhooks/deliver.ts'

const TIDY_EVERY_MS = 60_000
/** The net under NOTIFY. */
const PUBLISH_EVERY_MS = 5_000
/** The net under NOTIFY, and what backoffs are measured with. */
const DELIVER_EVERY_MS = 1_000
/** With at most a hundred transactions a round, this bounds what the sweep adds to the gateway's load. */
const RECONCILE_EVERY_MS = 2_000

/**
 * Starts the background work of a process, until the process stops. The loops begin together, once all
 * that wakes them is listened to: a start that fails leaves none behind.
 * @param deliverEveryMs how long webhooks that nobody woke wait at most
 */
export async function startBackground(
  ctx: Context,
  deliverEveryMs = DELIVER_EVERY_MS,
): Promise<Loop[]> {
  const wakeSync = await listenFor(ctx, SYNC_DUE)
  const wakePublishing = await listenFor(ctx, EVENT_RECORDED)
  const wakeDelivering = await listenFor(ctx, EVENTS_PUBLISHED)
  const sync = startSync(ctx)
  const publishing = startPublishing(ctx)
  const delivering = startDelivering(ctx, deliverEveryMs)
  wakeSync(sync)
  wakePublishing(publishing)
  wakeDelivering(delivering)
  return [
    sync,
    startTidying(ctx),
    startReconciling(ctx),
    startRemoving(ctx),
    publishing,
    delivering,
  ]
}

/** Every word on the channel, and every new connection to it, wakes the loop that is named afterwards. */
async function listenFor(ctx: Context, channel: string): Promise<(loop: Loop) => void> {
  let wake = () => {}
  await ctx.sql.listen(
    channel,
    () => wake(),
    () => wake(),
  )
  return (loop) => {
    wake = loop.wake
  }
}

function startSync(ctx: Context): Loop {
  return watchLoop(ctx, {
    name: 'sync',
    begin: (onMore) => beginSync(ctx, onMore),
    rest: () => restSync(ctx),
    // While every call slot is taken a round finds nothing, and proves nothing.
    proves: (count) => count > 0 || ctx.slots.countFree() > 0,
  })
}

function startPublishing(ctx: Context): Loop {
  return watchLoop(ctx, {
    name: 'publishing',
    begin: () => beginPublishing(ctx),
    rest: () => Promise.resolve(PUBLISH_EVERY_MS),
  })
}

function startDelivering(ctx: Context, everyMs: number): Loop {
  return watchLoop(ctx, {
    name: 'webhooks',
    begin: createDelivering(ctx),
    rest: () => Promise.resolve(everyMs),
  })
}

/** Not on the way of money: once a minute is soon enough. */
function startTidying(ctx: Context): Loop {
  return watchLoop(ctx, {
    name: 'tidying',
    begin: async () => {
      await sweepNotifications(ctx)
      return { count: await forgetReceivers(ctx), finished: Promise.resolve() }
    },
    rest: () => Promise.resolve(TIDY_EVERY_MS),
  })
}

/** A round that made some due rests as well: the sync takes what is new first. */
function startReconciling(ctx: Context): Loop {
  return watchLoop(ctx, {
    name: 'reconciling',
    begin: async () => {
      await reconcile(ctx)
      return { count: 0, finished: Promise.resolve() }
    },
    rest: () => Promise.resolve(RECONCILE_EVERY_MS),
  })
}

function startRemoving(ctx: Context): Loop {
  const removeOld = createRemoval(ctx)
  return watchLoop(ctx, {
    name: 'removing',
    begin: async () => ({ count: await removeOld(), finished: Promise.resolve() }),
    rest: () => Promise.resolve(TIDY_EVERY_MS),
  })
}
