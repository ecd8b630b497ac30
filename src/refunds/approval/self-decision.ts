import {
  coversSql,
  LIVE_SQL,
  namesActor,
  namesActorSql,
  type Principal,
} from '../../access/principal.ts'
import { type Access, hasScopeSql } from '../../access/types.ts'
import { DomainError } from '../../errors.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import type { Sql, Tx } from '../../platform/postgres/types.ts'
import type { RefundRecord } from '../find-refunds.ts'
import { isRequestedBy } from '../is-requested-by.ts'

/** Whether the row `k` of `actors` asked for the refund `r`, or is named as the one it was asked for. */
const ASKED = `(r.requested_principal = k.principal or ${namesActorSql('r.folded_on_behalf_of')})`

/** What of a refund shows who asked for it. */
type AskedRefund = Pick<RefundRecord['refund'], 'requestedPrincipal' | 'onBehalfOf'>

/**
 * Whether the principal of a key asked for a refund, or is named as the one it was asked for: then another one has to
 * approve it. It decides what is offered; every decision checks it again.
 */
export function isOwnRequest(who: Principal, refund: AskedRefund): boolean {
  return isRequestedBy(who, refund) || namesActor(who, refund.onBehalfOf)
}

/** Whether a live key of another principal may decide the outcome of a refund, and did not ask for it. */
export async function canAnotherDecide(
  sql: Sql | Tx,
  { merchantCode, refundId }: RefundKey,
  { principal }: Principal,
): Promise<boolean> {
  const [row] = await sql<{ others: boolean }[]>`
    select exists (
      select from (${selectRefund(sql, merchantCode, refundId)}) as r, actors as k
      where ${sql.unsafe(MAY_DECIDE_SQL)} and k.principal <> ${principal}) as others`
  return row?.others ?? false
}

type RefundKey = { merchantCode: string; refundId: string }

/** Whether the row `k` of `actors` is live, may decide about the refund `r`, and did not ask for it. */
export const MAY_DECIDE_SQL = `${hasScopeSql('k', 'ops')} and ${coversSql('r.merchant_code')}
  and ${LIVE_SQL} and not ${ASKED}`

function selectRefund(sql: Sql | Tx, merchantCode: string, refundId: string) {
  return sql`
    select r.* from (select ${merchantCode}::text as merchant_code, ${refundId}::uuid as refund_id) as k
    cross join lateral (
      select * from refunds as r
      where ${sql.unsafe(byKey('r', ['merchant_code', 'refund_id'], 'k'))} limit 1) as r`
}

/**
 * Refuses a decision about the outcome of a refund by the principal that asked for it, or for which it was asked,
 * unless no other live key may decide for the merchant. Such a decision is stored as `selfDecided`. The caller holds
 * the refund's row, and records the write.
 * @returns whether the decision is one about the caller's own refund
 * @throws DomainError `same_person`
 */
export async function checkSelfDecision(
  tx: Tx,
  { merchantCode, refundId, requestedPrincipal, onBehalfOf }: RefundKey & AskedRefund,
  access: Access,
): Promise<boolean> {
  if (!isOwnRequest(access, { requestedPrincipal, onBehalfOf })) return false
  if (await canAnotherDecide(tx, { merchantCode, refundId }, access)) {
    const detail = `Refund ${refundId} was requested by you or for you: another person has to decide about it`
    throw new DomainError('same_person', detail)
  }
  await recordSelfDecided(tx, { merchantCode, refundId }, true)
  return true
}

/** Records whether what the refund is now was decided by somebody who may only because nobody else can. */
export async function recordSelfDecided(
  tx: Tx,
  { merchantCode, refundId }: RefundKey,
  selfDecided: boolean,
): Promise<void> {
  await tx`
    update refunds set self_decided = ${selfDecided}
    where merchant_code = ${merchantCode} and refund_id = ${refundId}`
}
