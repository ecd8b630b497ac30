import { AbortError } from './errors.ts'
import type { Transport } from './http.ts'
import type { CallOptions } from './options.ts'
import type { Event } from './types.gen.ts'
import { createThrottle, HOLD_S } from './wait.ts'

export type EventType = Event['type']

/**
 * A page of events, oldest first; later versions of the service may add types: ignore those you do not know. `nextCursor`
 * requests the next page; an empty page has one, too.
 */
export type EventPage = { data: Event[]; nextCursor: string }

export type EventOptions = {
  /**
   * The cursor of the last event you have handled, or `latest` for events from now on. Default: start at the oldest
   * retained event.
   */
  after?: string | undefined
  types?: readonly EventType[] | undefined
  /** Events per page, at most 200. */
  limit?: number | undefined
}

/** An event, and the cursor to store after you have handled it. */
export type FollowedEvent = Event & { cursor: string }

/** The feed from a position on, without an end. */
export type Following = AsyncIterable<FollowedEvent> & {
  /** The position after the events your loop has finished, and after events of other types. */
  readonly cursor: string | undefined
}

export type Events = {
  /** Returns a page. With `wait` the service holds the request until there is an event (seconds, at most 60). */
  list(
    selection?: EventOptions & { wait?: number | undefined },
    options?: CallOptions,
  ): Promise<EventPage>
  /**
   * Iterates over all events, in order and each once. Waits for new events and survives restarts of the
   * service. Ends when you leave the loop, or without an error when `signal` is aborted.
   * @throws CursorExpiredError and other refusals
   */
  follow(selection?: EventOptions & { signal?: AbortSignal | undefined }): Following
}

/** Creates the methods of `client.events`. */
export function createEvents(transport: Transport): Events {
  return {
    list: ({ wait, ...filter } = {}, options) =>
      transport.request(makeRequest(filter, wait), options),
    follow: (selection = {}) => followFeed(transport, selection),
  }
}

function makeRequest({ after, types, limit }: EventOptions, wait: number | undefined) {
  return { path: '/v1/events', query: { after, types, limit, wait }, holdS: wait }
}

function followFeed(
  transport: Transport,
  { signal, ...filter }: EventOptions & { signal?: AbortSignal | undefined },
): Following {
  let cursor = filter.after
  const limits = { signal, timeoutMs: Number.POSITIVE_INFINITY }
  async function* iterate(): AsyncGenerator<FollowedEvent, void> {
    const throttle = createThrottle(signal ? [...transport.signals, signal] : transport.signals)
    // Asked for once: after a lost response, `latest` would skip what happened meanwhile.
    if (cursor === 'latest') {
      const request = { ...makeRequest({ ...filter, limit: 1 }, undefined), persistent: true }
      cursor = (await transport.request<EventPage>(request, limits)).nextCursor
    }
    for (;;) {
      const started = performance.now()
      const request = { ...makeRequest({ ...filter, after: cursor }, HOLD_S), persistent: true }
      const { data, nextCursor } = await transport.request<EventPage>(request, limits)
      const last = data.at(-1)
      for (const event of data) {
        const after = event === last ? nextCursor : event.id
        yield { ...event, cursor: after }
        cursor = after
      }
      cursor = nextCursor
      if (data.length === 0) await throttle(started, Number.POSITIVE_INFINITY)
    }
  }
  return {
    get cursor() {
      return cursor
    },
    async *[Symbol.asyncIterator]() {
      try {
        yield* iterate()
      } catch (error) {
        if (!(error instanceof AbortError)) throw error
      }
    },
  }
}
