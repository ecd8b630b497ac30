import type { Ledgers } from './ledgers.ts'

/** Counts what was acknowledged and is gone since the database was set back: no defect, but never hidden. */
export function countLost({ sent, stored }: Ledgers): { notifications: number; refunds: number } {
  const notified = new Set(stored.notifications.map(({ sha256 }) => sha256))
  const kept = new Set(stored.refunds.map(({ id }) => id))
  const gone = (ids: readonly string[], held: ReadonlySet<string>) =>
    new Set(ids.filter((id) => !held.has(id))).size
  return {
    notifications: gone(
      sent.notifications.flatMap((one) => (one.isAtRisk ? one.sha256 : [])),
      notified,
    ),
    refunds: gone(
      sent.refunds.flatMap((one) => (one.isAtRisk ? one.refundId : [])),
      kept,
    ),
  }
}
