import { AbortError } from './errors.ts'
import type { CallOptions } from './options.ts'
import type { Discrepancy, Payment, Refund, Transaction } from './shapes.ts'
import type { Transport } from './transport.ts'
import { createBrake, HOLD_S } from './wait.ts'

type Told<Type extends string, Data> = {
  /** Its place in the feed: a cursor. */
  id: string
  type: Type
  timestamp: string
  transactionId: string
  /** The object as it was at that moment, shaped as its own route shows it. */
  data: Data
}

/** What happened, and to what. Later versions of the service may tell of more: pass over what you do not know. */
export type Event =
  | Told<'payment.created', Payment>
  | Told<'payment.updated', Payment>
  | Told<'transaction.final', Transaction>
  | Told<'refund.created', Refund>
  | Told<'refund.updated', Refund>
  | Told<'sync.abandoned', Transaction>
  | Told<'discrepancy.found', Discrepancy>

export type EventType = Event['type']

/** Oldest first. Ask with `nextCursor` for what comes after; it is there even on an empty page. */
export type EventPage = { data: Event[]; nextCursor: string }

export type EventWish = {
  /** The cursor of what you have handled last; left out: from the oldest event that is kept. */
  after?: string | undefined
  types?: readonly EventType[] | undefined
  /** Of one page, at most 200. */
  limit?: number | undefined
}

/** An event, and the cursor to store once you have handled it. */
export type FollowedEvent = Event & { cursor: string }

/** The feed from a place on, without an end. */
export type Following = AsyncIterable<FollowedEvent> & {
  /** Behind everything you have been given and come back from, and what was not of your types. */
  readonly cursor: string | undefined
}

export type Events = {
  /** One page. `wait` holds the request until there is something, at most so many seconds (60). */
  list(wish?: EventWish & { wait?: number | undefined }, options?: CallOptions): Promise<EventPage>
  /**
   * Every event, each once, in order; waits for new ones and sits out restarts of the service. It ends
   * when you leave the loop, or quietly when `signal` is aborted.
   * @throws CursorExpiredError and other refusals
   */
  follow(wish?: EventWish & { signal?: AbortSignal | undefined }): Following
}

export function createEvents(transport: Transport): Events {
  const write = ({ after, types, limit }: EventWish, wait: number | undefined) => ({
    path: '/v1/events',
    query: { after, types, limit, wait },
    holdS: wait,
  })
  return {
    list: ({ wait, ...wish } = {}, options) => transport.ask(write(wish, wait), options),
    follow({ signal, ...wish } = {}) {
      let cursor = wish.after
      const limits = { signal, timeoutMs: Number.POSITIVE_INFINITY }
      const readOn = (after: string | undefined) =>
        transport.ask<EventPage>({ ...write({ ...wish, after }, HOLD_S), persistent: true }, limits)
      async function* walk(): AsyncGenerator<FollowedEvent, void> {
        const slowDown = createBrake(signal ? [...transport.signals, signal] : transport.signals)
        for (;;) {
          const started = performance.now()
          const { data, nextCursor } = await readOn(cursor)
          const last = data.at(-1)
          for (const event of data) {
            const behind = event === last ? nextCursor : event.id
            yield { ...event, cursor: behind }
            cursor = behind
          }
          cursor = nextCursor
          if (data.length === 0) await slowDown(started, Number.POSITIVE_INFINITY)
        }
      }
      return {
        get cursor() {
          return cursor
        },
        async *[Symbol.asyncIterator]() {
          try {
            yield* walk()
          } catch (error) {
            if (!(error instanceof AbortError)) throw error
          }
        },
      }
    },
  }
}
