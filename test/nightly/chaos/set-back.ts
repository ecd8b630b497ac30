import type { JournalEntry } from './gateway.ts'

/** The time whose commits were lost when the database was set back to an earlier moment (ms since the epoch). */
export type SetBack = {
  /** No commit from before it is lost, and none from after `toMs`. */
  fromMs: number
  toMs: number
  /** Until then a receiver may get events that were committed before. */
  deliveredMs: number
  /** The places in the journal of deliveries that were acknowledged before. */
  acknowledged: ReadonlySet<number>
}

/** How long a delivery by webhook that was on its way may take to arrive. */
const DELIVERY_MS = 15_000

/** The database at the moment of the copy: no process of it runs, so nothing is committed meanwhile. */
export type Copied = Pick<SetBack, 'fromMs' | 'acknowledged'>

export function describeCopy(atMs: number, journal: readonly JournalEntry[]): Copied {
  return {
    fromMs: atMs,
    acknowledged: new Set(
      journal.flatMap(({ outcome }, index) => (outcome === 'acknowledged' ? [index] : [])),
    ),
  }
}

export function describeSetBack(copied: Copied, atMs: number): SetBack {
  return { ...copied, toMs: atMs, deliveredMs: atMs + DELIVERY_MS }
}
