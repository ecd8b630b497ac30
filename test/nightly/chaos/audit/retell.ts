import { nameEvent, type SentEvent, type ToldEvent } from './events.ts'
import { ACCOUNT, makeFeed } from './example.ts'
import type { Ledgers } from './ledgers.ts'

export const OF_T1 = { transactionId: 'T1' }

/** Replaces the feed, also for its reader and its receiver. */
export function retell(
  { feed }: Ledgers,
  tell: (events: readonly ToldEvent[]) => ToldEvent[],
): void {
  feed.read = tell(feed.read)
  feed.followed = structuredClone(feed.read)
  feed.taken = structuredClone(feed.read)
}

/** Removes an event, or replaces it with others. */
export function replace(ledgers: Ledgers, id: string, ...others: (SentEvent | ToldEvent)[]): void {
  retell(ledgers, (events) =>
    events.flatMap((event) => (event.id === id ? others.map(named) : event)),
  )
}

/** Appends events. */
export function add(ledgers: Ledgers, ...more: (SentEvent | ToldEvent)[]): void {
  retell(ledgers, (events) => [...events, ...more.map(named)])
}

/** The correct event of one position, at another. */
export function tellAgain(id: string, place: string): ToldEvent[] {
  return makeFeed().flatMap((event) => (event.id === place ? { ...event, id } : []))
}

/** Swaps the events of two positions. */
export function swap(ledgers: Ledgers, first: string, second: string): void {
  retell(ledgers, (events) => {
    const find = (id: string) => events.filter((event) => event.id === id)
    return events.flatMap((event) => {
      if (event.id === first) return find(second).map((one) => ({ ...one, id: first }))
      if (event.id === second) return find(first).map((one) => ({ ...one, id: second }))
      return event
    })
  })
}

function named(event: SentEvent | ToldEvent): ToldEvent {
  return 'merchantCode' in event ? event : nameEvent(ACCOUNT, event)
}
