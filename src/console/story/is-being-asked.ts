import { toIso } from '../../platform/postgres/row-set.ts'
import type { ShownTransaction } from '../../transactions/types.ts'

/** The clocks of database and process differ by less (ms). */
const SLACK_MS = 1_000

/** Whether a query of the transaction runs, or is due at once. */
export function isBeingAsked({ dueAt, leaseId }: Pick<ShownTransaction, 'dueAt' | 'leaseId'>) {
  if (leaseId !== null) return true
  return dueAt !== null && Date.parse(toIso(dueAt)) <= Date.now() + SLACK_MS
}
