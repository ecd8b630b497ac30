import { createHash } from 'node:crypto'
import { DomainError, type RefusalCode } from '../errors.ts'
import { byExpressions, byKey } from '../platform/postgres/by-key.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

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
