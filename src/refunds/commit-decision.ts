import { recordWrite } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { StoredResolution } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { buildDiscrepancyEvents, logDiscrepancies } from '../discrepancies/record-discrepancies.ts'
import type { RecordedDiscrepancy } from '../discrepancies/types.ts'
import { type NewEvent, recordEvents } from '../events/record-events.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { lockTransaction, recheckTransaction } from './lock-transaction.ts'

/** A person's decision about a refund of a transaction, ours or one made elsewhere. */
export type Decision = {
  key: TransactionKey
  access: Access
  /** The method and route, for the audit log. */
  operation: string
  /** The id of the refund. */
  objectId: string
  /** Judges and applies it, once the transaction is locked. @returns what it disagrees with */
  apply(tx: Tx): Promise<RecordedDiscrepancy[]>
  /** Builds the events of what it changed, after everything else is written. */
  buildEvents(tx: Tx): Promise<NewEvent[]>
}

/**
 * Commits a decision in one unit of work: locks the transaction, applies the decision, makes the transaction due, and
 * records the audit entry and the events.
 * @throws DomainError what `apply` throws; nothing is stored then
 */
export async function commitDecision(
  ctx: Pick<Context, 'sql' | 'log' | 'metrics'>,
  { key, access, operation, objectId, apply, buildEvents }: Decision,
): Promise<void> {
  const { merchantCode } = key
  const found = await runInTransaction(ctx.sql, async (tx) => {
    await lockTransaction(tx, key)
    const recorded = await apply(tx)
    await recheckTransaction(tx, key)
    await recordWrite(tx, ctx.log, access, { operation, merchantCode, objectId })
    await recordEvents(tx, [...(await buildEvents(tx)), ...buildDiscrepancyEvents(recorded)])
    return recorded
  })
  logDiscrepancies(ctx, found)
}

/** Describes a decision about an outcome as it is stored. */
export function describeResolution(
  { now }: Pick<Context, 'now'>,
  { outcome, reason }: { outcome: string; reason: string },
  { name }: Access,
  againstEvidence: string | null,
): StoredResolution {
  return { outcome, reason, by: name, againstEvidence, decidedAt: now().toISOString() }
}
