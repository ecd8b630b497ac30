import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { type FedEvent, readEvent } from '../audit/events.ts'
import { ACCOUNTS, type Account } from './accounts.ts'

const Page = z.object({ data: z.array(z.unknown()), nextCursor: z.string() })

/** A reader of each account. */
export type Followers = {
  /** The events they have read so far, one account after the other. */
  list(): FedEvent[]
  /** They begin again: positions from after a set-back of the database mean other events than before. */
  restart(): void
  stop(): Promise<void>
}

const PAGE = 200
const WAIT_S = 2
const PATIENCE_MS = 8_000
const AGAIN_MS = 100

async function readPage(
  apiUrl: string,
  { key, merchantCode }: Account,
  cursor: string | undefined,
  { waitS = 0, signals = [] }: { waitS?: number; signals?: AbortSignal[] } = {},
) {
  const after = cursor === undefined ? '' : `&after=${cursor}`
  const response = await fetch(`${apiUrl}/v1/events?limit=${PAGE}&wait=${waitS}${after}`, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.any([...signals, AbortSignal.timeout(PATIENCE_MS)]),
  })
  const { data, nextCursor } = Page.parse(await response.json())
  return { events: data.map((event) => readEvent(merchantCode, event)), nextCursor }
}

/** Reads the whole feed of all accounts, by position. */
export async function readFeed(apiUrl: string): Promise<FedEvent[]> {
  const feeds: FedEvent[][] = []
  for (const account of ACCOUNTS) {
    const events: FedEvent[] = []
    for (let cursor: string | undefined, done = false; !done; ) {
      const page = await readPage(apiUrl, account, cursor)
      events.push(...page.events)
      cursor = page.nextCursor
      done = page.events.length === 0
    }
    feeds.push(events)
  }
  return mergeByPosition(feeds)
}

/** Merges the lists without reordering any of them. */
function mergeByPosition(lists: FedEvent[][]): FedEvent[] {
  const left = lists.map((list) => [...list].reverse())
  const merged: FedEvent[] = []
  for (;;) {
    const heads = left.flatMap((list) => {
      const event = list.at(-1)
      return event ? [{ list, event }] : []
    })
    const [first, second] = heads
    if (first === undefined) return merged
    const next = second && BigInt(second.event.id) < BigInt(first.event.id) ? second : first
    merged.push(next.event)
    next.list.pop()
  }
}

/** Starts readers that continue from their cursors after every error. */
export function followFeeds(apiUrl: string): Followers {
  const leaving = new AbortController()
  const events = new Map<string, FedEvent[]>()
  let epoch = 0
  async function follow(account: Account): Promise<void> {
    let cursor: string | undefined
    for (let began = -1; !leaving.signal.aborted; ) {
      if (began !== epoch) {
        began = epoch
        cursor = undefined
        events.set(account.merchantCode, [])
      }
      const waiting = { waitS: WAIT_S, signals: [leaving.signal] }
      const page = await readPage(apiUrl, account, cursor, waiting).catch(() => undefined)
      if (page && began === epoch) {
        events.get(account.merchantCode)?.push(...page.events)
        cursor = page.nextCursor
      } else if (!page) {
        await pause(AGAIN_MS)
      }
    }
  }
  const ended = Promise.all(ACCOUNTS.map(follow))
  return {
    list: () => [...events.values()].flat(),
    restart() {
      epoch += 1
    },
    async stop() {
      leaving.abort()
      await ended
    },
  }
}
