import {
  coversSql,
  lockLiveKey,
  namesKey,
  namesKeySql,
  PRINCIPAL_SQL,
} from '../../access/principal.ts'
import type { Access } from '../../access/types.ts'
import { DomainError } from '../../errors.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import type { Tx } from '../../platform/postgres/types.ts'

/** Whether the row `k` of `api_keys` asked for the refund `r`, or is named as the one it was asked for. */
const ASKED = `(coalesce(r.requested_principal = ${PRINCIPAL_SQL}, r.requested_by = k.name) or ${namesKeySql('r.on_behalf_of')})`

/**
 * Refuses a decision about the outcome of a refund by the principal that asked for it, or for which it was asked,
 * unless no other live key may decide for the merchant. Such a decision is stored as `selfDecided`. The caller holds
 * the refund's row.
 * @returns whether the decision is one about the caller's own refund
 * @throws DomainError `same_person`, or `unauthenticated` when the key was revoked meanwhile
 */
export async function checkSelfDecision(
  tx: Tx,
  {
    merchantCode,
    refundId,
    onBehalfOf,
  }: { merchantCode: string; refundId: string; onBehalfOf: string | null },
  access: Access,
): Promise<boolean> {
  const [row] = await tx<{ asked: boolean; others: boolean }[]>`
    with refund as (
      select r.* from (select ${merchantCode}::text as merchant_code, ${refundId}::uuid as refund_id) as k
      cross join lateral (
        select * from refunds as r
        where ${tx.unsafe(byKey('r', ['merchant_code', 'refund_id'], 'k'))} limit 1) as r
    )
    select
      (select ${tx.unsafe(ASKED)} from refund as r, api_keys as k where k.id = ${access.id}) as asked,
      exists (
        select from refund as r, api_keys as k
        where 'ops' = any(k.scopes) and ${tx.unsafe(coversSql('r.merchant_code'))} and k.revoked_at is null
          and (k.expires_at is null or k.expires_at > now()) and not ${tx.unsafe(ASKED)}
      ) as others`
  const isNamed = namesKey(await lockLiveKey(tx, access.id), onBehalfOf)
  if (!row?.asked && !isNamed) return false
  if (row?.others) {
    const detail = `Refund ${refundId} was requested by you or for you: another person has to decide about it`
    throw new DomainError('same_person', detail)
  }
  await tx`
    update refunds set self_decided = true
    where merchant_code = ${merchantCode} and refund_id = ${refundId}`
  return true
}
