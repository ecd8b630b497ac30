import type { Tx } from '../platform/postgres/types.ts'

/** A series of rounds from the first entry that may be in no chain to the newest. */
export type Sweep = {
  /** Where the next round begins: after this id. */
  from: number
  /** As stored when it began. */
  progress: Progress
  /** Everything committed before this time is in a chain when the sweep has ended. */
  startedAt: string
  /** Nothing was left out. */
  isWhole: boolean
}

/** `isOver`: every transaction that could commit an entry up to `nextUpTo` has ended. */
type Progress = { doneUpTo: number; nextUpTo: number; isOver: boolean }

/**
 * Begins a sweep. Ids are assigned before the commit, so an entry may appear behind ones that are in a chain. That is
 * over for all ids up to `nextUpTo` once the oldest running transaction is younger than those of that time. A number
 * from another cluster (a restored dump) can be in the future; it counts for nothing.
 */
export async function beginSweep(tx: Tx): Promise<Sweep> {
  const [row] = await tx<(Progress & { startedAt: string })[]>`
    select now()::text as "startedAt", coalesce(p.done_up_to, 0) as "doneUpTo",
      coalesce(p.next_up_to, 0) as "nextUpTo",
      coalesce(p.next_xid <= pg_snapshot_xmin(s)::text::bigint, true) as "isOver"
    from pg_current_snapshot() as s left join audit_progress as p on true`
  if (!row) throw new Error('a snapshot is one row')
  const { startedAt, ...progress } = row
  return { from: progress.doneUpTo, progress, startedAt, isWhole: true }
}

/**
 * Stores how far a sweep came. One that left something out is repeated from the same place, and so is one that began
 * before all entries were to be chained anew.
 */
export async function endSweep(
  tx: Tx,
  { from, progress, startedAt, isWhole }: Sweep,
): Promise<void> {
  if (!isWhole) return
  const { doneUpTo, nextUpTo, isOver } = progress
  const done = isOver ? Math.max(doneUpTo, nextUpTo) : doneUpTo
  await tx`
    insert into audit_progress as p (done_up_to, next_up_to, next_xid, chained_at)
    select ${done}::bigint, ${from}::bigint, pg_snapshot_xmax(s)::text::bigint, ${startedAt}::text::timestamptz
    from pg_current_snapshot() as s
    on conflict ("only") do update set done_up_to = greatest(p.done_up_to, excluded.done_up_to),
      chained_at = greatest(p.chained_at, excluded.chained_at),
      next_up_to = case when ${isOver} or p.next_xid > excluded.next_xid then excluded.next_up_to else p.next_up_to end,
      next_xid = case when ${isOver} or p.next_xid > excluded.next_xid then excluded.next_xid else p.next_xid end
    where p.done_up_to >= ${doneUpTo} and p.next_up_to >= ${nextUpTo}`
}
