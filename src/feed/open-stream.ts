import { setTimeout as pause } from 'node:timers/promises'
import type { Context as HttpContext } from 'hono'
import { type SSEStreamingApi, streamSSE } from 'hono/streaming'
import { readBearer } from '../access/authenticate.ts'
import { findLoss } from '../access/principal.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import { type EventRow, serializeEvent } from '../events/event.ts'
import type { HttpEnv } from '../http/problems.ts'
import { createSlots } from '../platform/concurrency/slots.ts'
import { withEitherSignal } from '../platform/concurrency/timing.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'
import { type FeedPage, type FeedQuery, type FeedReader, readFeed, readNext } from './read-feed.ts'

const STREAM_LIMITS = {
  streams: 1_000,
  /** So that a client that leaks streams does not use them all. */
  ofOneKey: 250,
  /** A comment this often keeps proxies from closing a quiet stream; the key is checked again with each (ms). */
  heartbeatMs: 15_000,
  /** A client that does not read for this long is disconnected (ms). */
  stallMs: 30_000,
}

export type StreamLimits = typeof STREAM_LIMITS

/** Counts the streams of this process by key. @param replaced limits other than those of production */
export function createStreams(replaced: Partial<StreamLimits> = {}) {
  const limits = { ...STREAM_LIMITS, ...replaced }
  return { open: createSlots(limits.streams, { perHolder: limits.ofOneKey }), limits }
}

export type FeedContext = Context & FeedReader & { streams: ReturnType<typeof createStreams> }

/** How long a client waits before it reconnects (ms). */
const RETRY_MS = 2_000

/**
 * Streams the feed as server-sent events (HTML Living Standard, 9.2) until the client disconnects or stops reading,
 * its key ends, or the process stops. A slow client holds one page in memory.
 * @param path the request field with the cursor, for the problem
 * @throws DomainError as `readFeed` does, and `unavailable` if too many streams are open
 */
export async function openStream(
  ctx: FeedContext,
  c: HttpContext<HttpEnv>,
  query: FeedQuery,
  path: string,
): Promise<Response> {
  const first = await readFeed(ctx, query.filter, query.after, query.limit, path)
  const { requestId, name: key, chainId } = c.get('access')
  const leave = ctx.streams.open.tryTake(chainId)
  if (!leave) {
    const detail =
      'Too many streams are open: close one, try again in a moment, or long-poll with wait'
    throw new DomainError('unavailable', detail)
  }
  c.header('x-accel-buffering', 'no')
  const response = streamSSE(c, async (stream) => {
    try {
      const gone = new AbortController()
      stream.onAbort(() => gone.abort())
      const cut = await withEitherSignal([gone.signal, ctx.lifecycle.stopping], (end) =>
        sendEvents(ctx, c, stream, { query, first, end }),
      )
      // Otherwise the written bytes would wait forever for a client that does not read.
      if (cut) c.env.outgoing.destroy()
    } catch (err) {
      if (noteOutage(ctx.log, err, 'streams')) return
      ctx.log.warn({ err, requestId, key }, 'an event stream failed; its client can reconnect')
    } finally {
      leave()
    }
  })
  response.headers.set('cache-control', 'no-store')
  return response
}

/** @returns whether the connection has to be cut because the client stopped reading */
async function sendEvents(
  ctx: FeedContext,
  c: HttpContext<HttpEnv>,
  stream: SSEStreamingApi,
  { query, first, end }: { query: FeedQuery; first: FeedPage; end: AbortSignal },
): Promise<boolean> {
  const { heartbeatMs, stallMs } = ctx.streams.limits
  const bearer = readBearer(c) ?? ''
  const access = c.get('access')
  const isCut = async () =>
    findLoss(access, await ctx.access.keys.find(bearer, 'current')) !== undefined
  let page = first
  let checkedAt = performance.now()
  let text = `retry: ${RETRY_MS}\n\n`
  while (!end.aborted) {
    // Nothing is sent once the key was revoked or has lost what the stream was opened with.
    if (page.events.length > 0 || performance.now() - checkedAt >= heartbeatMs) {
      if (await isCut()) return false
      checkedAt = performance.now()
    }
    text += page.events.map((event) => writeMessage(ctx, event)).join('')
    if (text !== '' && !(await isWritten(stream.write(text), stallMs, end))) return !stream.aborted
    page = await readNext(ctx, query, page, heartbeatMs, end)
    // The heartbeat has a cursor, so that a reconnect does not read the events of others again.
    text = page.events.length === 0 && page.atEnd ? `:\nid: ${page.next}\n\n` : ''
  }
  return false
}

function writeMessage({ encryption }: Pick<FeedContext, 'encryption'>, event: EventRow): string {
  return `id: ${event.id}\nevent: ${event.type}\ndata: ${serializeEvent(encryption, event)}\n\n`
}

async function isWritten(writing: Promise<unknown>, stallMs: number, end: AbortSignal) {
  const written = new AbortController()
  const late = withEitherSignal([written.signal, end], (signal) =>
    pause(stallMs, false, { signal }).catch(() => false),
  )
  try {
    return await Promise.race([writing.then(() => true), late])
  } finally {
    written.abort()
  }
}
