import {
  coversSql,
  lockLiveKey,
  type NamedKey,
  namesKey,
  namesKeySql,
  PRINCIPAL_SQL,
} from '../../access/principal.ts'
import type { Access } from '../../access/types.ts'
import { DomainError } from '../../errors.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import type { Sql, Tx } from '../../platform/postgres/types.ts'
import type { RefundRecord } from '../find-refunds.ts'
import { isRequestedBy } from '../is-requested-by.ts'

/** Whether the row `k` of `api_keys` asked for the refund `r`, or is named as the one it was asked for. */
const ASKED = `(r.requested_principal = ${PRINCIPAL_SQL} or ${namesKeySql('r.on_behalf_of')})`

/** What of a refund shows who asked for it. */
type AskedRefund = Pick<RefundRecord['refund'], 'requestedPrincipal' | 'onBehalfOf'>

/**
 * Whether the principal of a key asked for a refund, or is named as the one it was asked for: then another one has to
 * approve it. It decides what is offered; every decision checks it again.
 */
export function isOwnRequest(key: NamedKey, refund: AskedRefund): boolean {
  return isRequestedBy(key, refund) || namesKey(key, refund.onBehalfOf)
}

/** Whether a live key of another principal may decide the outcome of a refund, and did not ask for it. */
export async function canAnotherDecide(
  sql: Sql | Tx,
  { merchantCode, refundId }: RefundKey,
  { principal }: NamedKey,
): Promise<boolean> {
  const [row] = await sql<{ others: boolean }[]>`
    select exists (
      select from (${selectRefund(sql, merchantCode, refundId)}) as r, api_keys as k
      where ${sql.unsafe(MAY_DECIDE_SQL)} and ${sql.unsafe(PRINCIPAL_SQL)} <> ${principal}) as others`
  return row?.others ?? false
}

type RefundKey = { merchantCode: string; refundId: string }

/** Whether the row `k` of `api_keys` is live, may decide about the refund `r`, and did not ask for it. */
export const MAY_DECIDE_SQL = `'ops' = any(k.scopes) and ${coversSql('r.merchant_code')}
  and k.revoked_at is null and (k.expires_at is null or k.expires_at > now()) and not ${ASKED}`

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
 * the refund's row.
 * @returns whether the decision is one about the caller's own refund
 * @throws DomainError `same_person`, or `unauthenticated` when the key was revoked meanwhile
 */
export async function checkSelfDecision(
  tx: Tx,
  { merchantCode, refundId, onBehalfOf }: RefundKey & { onBehalfOf: string | null },
  access: Access,
): Promise<boolean> {
  const key = await lockLiveKey(tx, access.id)
  const [row] = await tx<{ asked: boolean }[]>`
    select ${tx.unsafe(ASKED)} as asked
    from (${selectRefund(tx, merchantCode, refundId)}) as r, api_keys as k where k.id = ${access.id}`
  if (!row?.asked && !namesKey(key, onBehalfOf)) return false
  if (await canAnotherDecide(tx, { merchantCode, refundId }, key)) {
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
