import type { Actor } from '../access/audit.ts'
import {
  foldName,
  lockLiveKey,
  type NamedKey,
  PRINCIPAL_SQL,
  readPrincipal,
} from '../access/principal.ts'
import { byExpressions } from '../platform/postgres/by-key.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import {
  findMayEnd,
  type HoldsBack,
  type MayEnd,
  type OwnRefund,
  requireAnother,
} from '../refunds/approval/require-another.ts'
import type { HoldSubject } from './find-subject.ts'

/** What is held, without what is known of it. */
type Held = Pick<HoldSubject, 'merchantCode' | 'target' | 'id'>

/** The refunds that a hold concerns: of the account, of the payment, or the one. */
function describeHeld({ merchantCode, target, id }: Held): HoldsBack {
  if (target === 'merchant') return { merchantCode, ofAccount: true }
  const paymentId = target === 'payment' ? id : null
  return { merchantCode, paymentId, refundId: target === 'refund' ? id : null }
}

type Setter = { actor: string; isAudited: boolean; principal: string | null }

/**
 * Whether somebody other than the principal of a key set the hold. Whoever sets it again puts their name on it, and
 * takes it over from nobody: everyone counts who set it since it was last released. The audit log shows the key; where
 * it does not go back so far the name has to do, and what is not known at all is somebody else's.
 */
async function isSetByAnother(
  sql: Sql | Tx,
  key: NamedKey,
  { merchantCode, target, id }: Held,
): Promise<boolean> {
  const setters = await sql<Setter[]>`
    select h.actor, a.actor is not null as "isAudited", k.principal
    from (
      select * from hold_changes as c
      where c.merchant_code = ${merchantCode} and c.target = ${target} and c.target_id = ${id}
    ) as h left join lateral (
      select a.actor, a.key_id from audit_entries as a
      where a.merchant_code = h.merchant_code and a.at = h.at and a.actor = h.actor and a.outcome = 'done'
        and ${sql.unsafe(byExpressions(['a.object_id'], ['h.target_id']))} limit 1
    ) as a on true left join lateral (
      select ${sql.unsafe(PRINCIPAL_SQL)} as principal from api_keys as k where k.id = a.key_id
    ) as k on true
    where h.held and h.id > (
      select coalesce(max(r.id), 0) from hold_changes as r
      where r.merchant_code = ${merchantCode} and r.target = ${target} and r.target_id = ${id} and not r.held)`
  return setters.length === 0 || setters.some((one) => !isOwn(one, key))
}

/** One that is in the audit log without a key was set on the command line. */
function isOwn({ actor, isAudited, principal }: Setter, key: NamedKey): boolean {
  return isAudited ? principal === key.principal : foldName(actor) === foldName(key.name)
}

/**
 * Refuses to let whoever asked for a refund release a hold on it that somebody else set, as `requireAnother` does. Whoever
 * set a hold may release it. The caller holds the row of what is held.
 * @returns the refunds that are marked `selfDecided`
 * @throws DomainError `same_person`, or `unauthenticated` when the key was revoked meanwhile
 */
export async function requireAnotherToRelease(
  tx: Tx,
  { id: keyId }: Actor,
  held: Held,
): Promise<OwnRefund[]> {
  // On the command line it is the operator of the machine, who needs no permission.
  if (keyId === null) return []
  const key = await lockLiveKey(tx, keyId)
  if (!(await isSetByAnother(tx, key, held))) return []
  const deed = `release the hold of ${held.target} ${held.id}`
  return await requireAnother(tx, { id: keyId }, describeHeld(held), deed)
}

/** Whether the principal of a key may release a hold. It decides what is offered; the release checks it again. */
export async function findMayRelease(sql: Sql, keyId: string, held: Held): Promise<MayEnd> {
  const key = await readPrincipal(sql, keyId)
  if (key && !(await isSetByAnother(sql, key, held))) return 'free'
  return await findMayEnd(sql, keyId, describeHeld(held))
}
