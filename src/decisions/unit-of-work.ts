import { createHash } from 'node:crypto'
import { recordWrite } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import type { StoredResolution } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { buildDiscrepancyEvents, logDiscrepancies } from '../discrepancies/store.ts'
import { DomainError, type RefusalCode } from '../errors.ts'
import { type NewEvent, recordEvents } from '../events/record-events.ts'
import { byExpressions, byKey } from '../platform/postgres/by-key.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { makeDue, notifyTransactionChanged } from '../transactions/due.ts'

/** Locks a transaction until the commit. Lock it before its payments and refunds. */
export async function lockTransaction(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<void> {
  await tx`
    select from transactions
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId} for update`
}

/** Makes a transaction due after a person's decision, which readers see: the next answer is judged with it. */
export async function recheckTransaction(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<void> {
  await tx`
    update transactions t set version = version + 1, updated_at = now(), ${makeDue(tx)}
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
  notifyAfterCommit(tx, SYNC_DUE)
  notifyTransactionChanged(tx, { merchantCode, transactionId })
}

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

type RefundKey = { merchantCode: string; refundId: string }

/** A person's decision is refused because what it is about has changed since it was shown. Nothing was changed. */
export class ChangedSinceShownError extends DomainError {}

const OF_REFUND = byKey('r', ['merchant_code', 'refund_id'], 'k')
const OF_PAYMENT = byKey('p', ['merchant_code', 'payment_id'], 'r')
const BY_REQUEST = byExpressions(
  ['e.merchant_code', 'lower(e.request_id)'],
  ['k.merchant_code', 'k.refund_id::text'],
)
const sumOf = (table: string, condition: string) =>
  `(select coalesce(sum(amount), 0) from (
      select m.amount from ${table} as m
      where ${condition} and ${byKey('m', ['merchant_code', 'payment_id'], 'r')} offset 0) as m)`

/**
 * Reads a version of all that a person decides a refund by: its state, the gateway's answers and notifications, the
 * refunded amount of its payment with what explains it, holds and earlier decisions. Two equal versions mean that none
 * of it has changed. The caller of a decision holds the transaction's row, which every change of these takes.
 * @returns hexadecimal text; that of an unknown refund is constant
 */
export async function readShownVersion(
  sql: Sql | Tx,
  { merchantCode, refundId }: RefundKey,
): Promise<string> {
  const rows = await sql<{ facts: string }[]>`
    select jsonb_build_array(r.status, r.updated_at, r.attempts, r.hold, r.resolution, r.failure_code,
      r.success_notified_at, r.matched, r.in_first_sight, r.return_sightings, r.decided_principal, p.status, p.missing, p.hold, p.amount,
      p.refunded_amount, p.refunded_at_first, ${sql.unsafe(sumOf('refunds', 'm.matched and not m.in_first_sight'))},
      ${sql.unsafe(sumOf('foreign_refunds', 'm.matched and m.outcome is null'))}, (
        select json_agg(e.id order by e.id) from (
          select e.id from ipn_events as e
          where e.kind = 'refund' and ${sql.unsafe(BY_REQUEST)} offset 0) as e))::text as facts
    from (select ${merchantCode}::text as merchant_code, ${refundId}::uuid as refund_id) as k
    cross join lateral (select * from refunds as r where ${sql.unsafe(OF_REFUND)} limit 1) as r
    cross join lateral (select * from payments as p where ${sql.unsafe(OF_PAYMENT)} limit 1) as p`
  return createHash('sha256')
    .update(rows[0]?.facts ?? '')
    .digest('hex')
    .slice(0, 32)
}

/**
 * Refuses a decision about a refund that has changed since it was shown. The caller holds its transaction's row.
 * @param expected the version that was shown; undefined for a caller that was shown none
 * @param code the refusal that an impossible decision of this kind has
 * @throws ChangedSinceShownError
 */
export async function requireShownVersion(
  tx: Tx,
  refund: RefundKey,
  expected: string | undefined,
  code: RefusalCode,
): Promise<void> {
  if (expected === undefined || (await readShownVersion(tx, refund)) === expected) return
  const detail = `Refund ${refund.refundId} has changed since it was shown; nothing was decided`
  throw new ChangedSinceShownError(code, detail)
}

/** A decision is refused because it contradicts the evidence; it can be repeated with `againstEvidence`. */
export class AgainstEvidenceError extends DomainError {
  /** What it contradicts, in words. */
  readonly evidence: readonly string[]
  constructor(
    detail: string,
    options: { extra: Readonly<Record<string, string>> },
    evidence: readonly string[],
  ) {
    super('against_evidence', detail, { extra: { ...options.extra } })
    this.evidence = evidence
  }
}
