import type { Context as HttpContext } from 'hono'
import { type SSEStreamingApi, streamSSE } from 'hono/streaming'
import { readBearer } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import { type EventRow, writeEvent } from '../events/event.ts'
import type { AppEnv } from '../http/app-env.ts'
import { workUnder } from '../http/wait.ts'
import { awaitNext, type Follower } from './follow.ts'
import { type FeedPage, readFeed } from './read.ts'

/** When a client that lost its stream comes back (ms). */
const RETRY_MS = 2_000

/**
 * The feed as server-sent events (HTML Living Standard, 9.2), until the client goes, takes nothing, or its
 * key ends, or the process stops. What is sent waits for what was sent before: a slow client costs a page.
 * @param path where the cursor stood, for its refusal
 * @throws DomainError as `readFeed` does, and `unavailable` when the process has as many as it may
 */
export async function openStream(
  ctx: Context,
  c: HttpContext<AppEnv>,
  follower: Follower,
  path: string,
): Promise<Response> {
  const first = await readFeed(ctx, follower.filter, follower.after, follower.limit, path)
  const { requestId, name: key, chainId } = c.get('access')
  const leave = ctx.streams.enter(chainId)
  if (typeof leave === 'string') {
    const whose =
      leave === 'key'
        ? 'This key has as many streams of this process'
        : 'This process has as many streams'
    const detail = `${whose} as it may: close one, come back in a moment, or ask with wait`
    throw new DomainError('unavailable', detail)
  }
  c.header('x-accel-buffering', 'no')
  const response = streamSSE(c, async (stream) => {
    try {
      const gone = new AbortController()
      stream.onAbort(() => gone.abort())
      const cut = await workUnder([gone.signal, ctx.stopping], (end) =>
        tell(ctx, c, stream, { follower, first, end }),
      )
      // What was written waits for a client that does not read: it never would be.
      if (cut) c.env.outgoing.destroy()
    } catch (error) {
      ctx.log.warn({ err: error, requestId, key }, 'a stream broke off')
    } finally {
      leave()
    }
  })
  response.headers.set('cache-control', 'no-store')
  return response
}

/** @returns whether the client took nothing any more */
async function tell(
  ctx: Context,
  c: HttpContext<AppEnv>,
  stream: SSEStreamingApi,
  { follower, first, end }: { follower: Follower; first: FeedPage; end: AbortSignal },
): Promise<boolean> {
  const { filter, after, limit } = follower
  const { heartbeatMs, stallMs } = ctx.streams.limits
  const bearer = readBearer(c) ?? ''
  let page = first
  // Where the client stands: it was told nothing yet of what the first page passed over.
  let sent = after
  let checkedAt = performance.now()
  let text = `retry: ${RETRY_MS}\n\n`
  while (!end.aborted) {
    text += page.events.map((event) => writeMessage(ctx, event)).join('')
    if (text !== '' && !(await isTaken(stream.write(text), stallMs, end))) return !stream.aborted
    sent = page.events.at(-1)?.id ?? sent
    if (performance.now() - checkedAt >= heartbeatMs) {
      if (!(await ctx.keys.find(bearer, 'now'))) return false
      checkedAt = performance.now()
    }
    page = page.atEnd
      ? await awaitNext(ctx, { filter, after: page.next, limit }, heartbeatMs, end)
      : await readFeed(ctx, filter, page.next, limit)
    text = page.events.length === 0 && page.atEnd ? writeHeartbeat(page.next, sent) : ''
    if (text !== '') sent = page.next
  }
  return false
}

function writeMessage({ sealer }: Context, event: EventRow): string {
  return `id: ${event.id}\nevent: ${event.type}\ndata: ${writeEvent(sealer, event)}\n\n`
}

/** With the place looked at meanwhile, if there was something for others: who comes back begins there. */
function writeHeartbeat(next: number, sent: number | undefined): string {
  return next === sent ? ':\n\n' : `:\nid: ${next}\n\n`
}

/** @returns false after `stallMs`, or when it has to end before */
async function isTaken(writing: Promise<unknown>, stallMs: number, end: AbortSignal) {
  let timer: NodeJS.Timeout | undefined
  let giveUp = () => {}
  const late = new Promise<boolean>((resolve) => {
    giveUp = () => resolve(false)
    timer = setTimeout(giveUp, stallMs)
    end.addEventListener('abort', giveUp)
  })
  try {
    return await Promise.race([writing.then(() => true), late])
  } finally {
    clearTimeout(timer)
    end.removeEventListener('abort', giveUp)
  }
}
