import type { Actor } from '../access/audit.ts'
import { foldName, type Principal } from '../access/principal.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { DomainError, type RefusalCode } from '../errors.ts'
import { Id, isUuid } from '../http/fields.ts'
import type { StoredHold } from '../payments/view.ts'
import { byExpressions, byKey } from '../platform/postgres/by-key.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import {
  findMayEnd,
  type HoldsBack,
  type MayEnd,
  type OwnRefund,
  requireAnother,
} from './second-person.ts'

/** A hold that is set, as of its last change. */
export type ListedHold = {
  merchantCode: string
  target: HoldTarget
  id: string
  reason: string
  by: string
  at: string
}

/** Lists the holds that are set, the oldest first. */
export async function listHolds(sql: Sql): Promise<ListedHold[]> {
  const rows = await sql<ListedHold[]>`
    select merchant_code as "merchantCode", target, target_id as id, reason, actor as by, at::text as at
    from (
      select distinct on (merchant_code, target, target_id) * from hold_changes
      order by merchant_code, target, target_id, id desc
    ) as latest
    where held order by latest.id`
  return [...rows]
}

/** Reads the hold of a merchant account; null when it is not held, or unknown. */
export async function readAccountHold(sql: Sql, merchantCode: string): Promise<StoredHold> {
  const [row] = await sql<{ hold: StoredHold }[]>`
    select hold from merchant_accounts where merchant_code = ${merchantCode}`
  return row?.hold ?? null
}

export const HOLD_TARGETS = ['merchant', 'payment', 'refund'] as const

/** What can be held: an account, a payment with all its refunds, or a single refund. */
export type HoldTarget = (typeof HOLD_TARGETS)[number]

/** An existing object that can be held. */
export type HoldSubject = { merchantCode: string; id: string } & (
  | { target: 'merchant' }
  | { target: 'payment' | 'refund'; transaction: TransactionKey; paymentId: string }
)

const UNKNOWN = {
  merchant: 'merchant_not_found',
  payment: 'payment_not_found',
  refund: 'refund_not_found',
} as const satisfies Record<HoldTarget, RefusalCode>

/**
 * Finds what is to be held or released.
 * @param merchants the accounts the caller may act for
 * @param id unvalidated text from the request
 * @throws DomainError `merchant_not_found`, `payment_not_found`, `refund_not_found`, or `ambiguous_merchant` when
 *   several accounts have the id
 */
export async function findSubject(
  sql: Sql,
  merchants: readonly string[],
  target: HoldTarget,
  id: string,
): Promise<HoldSubject> {
  const found = await selectSubjects(sql, merchants, target, id)
  const [first, second] = found
  if (!first) throw new DomainError(UNKNOWN[target], `No ${target} ${id}`)
  if (second) {
    const detail = `Several merchant accounts have a ${target} with this id: name one with ?merchantCode=`
    throw new DomainError('ambiguous_merchant', detail)
  }
  return first
}

type Row = { merchantCode: string; transactionId: string; paymentId: string }

async function selectSubjects(
  sql: Sql,
  merchants: readonly string[],
  target: HoldTarget,
  id: string,
): Promise<HoldSubject[]> {
  if (target === 'merchant') {
    return merchants.includes(id) ? [{ target, merchantCode: id, id }] : []
  }
  if (target === 'refund' ? !isUuid(id) : !Id.safeParse(id).success) return []
  const { table, column, type } = TABLES[target]
  const rows = await sql<Row[]>`
    select o.merchant_code as "merchantCode", o.transaction_id as "transactionId", o.payment_id as "paymentId"
    from (
      select merchant_code, ${id}::${sql.unsafe(type)} as ${sql(column)}
      from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
    ) as k cross join lateral (
      select merchant_code, transaction_id, payment_id from ${sql(table)} as o
      where ${sql.unsafe(byKey('o', ['merchant_code', column], 'k'))} limit 1) as o`
  return rows.map(({ merchantCode, transactionId, paymentId }) => {
    const transaction = { merchantCode, transactionId }
    return {
      target,
      merchantCode,
      id: target === 'payment' ? id : id.toLowerCase(),
      transaction,
      paymentId,
    }
  })
}

const TABLES = {
  payment: { table: 'payments', column: 'payment_id', type: 'text' },
  refund: { table: 'refunds', column: 'refund_id', type: 'uuid' },
} as const

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
  who: Principal,
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
      select k.principal from actors as k where k.id = a.key_id
    ) as k on true
    where h.held and h.id > (
      select coalesce(max(r.id), 0) from hold_changes as r
      where r.merchant_code = ${merchantCode} and r.target = ${target} and r.target_id = ${id} and not r.held)`
  return setters.length === 0 || setters.some((one) => !isOwn(one, who))
}

/** One that is in the audit log without a key was set on the command line. */
function isOwn({ actor, isAudited, principal }: Setter, who: Principal): boolean {
  return isAudited ? principal === who.principal : foldName(actor) === foldName(who.name)
}

/**
 * Refuses to let whoever asked for a refund release a hold on it that somebody else set, as `requireAnother` does. Whoever
 * set a hold may release it. The caller holds the row of what is held.
 * @returns the refunds that are marked `selfDecided`
 * @throws DomainError `same_person`
 */
export async function requireAnotherToRelease(
  tx: Tx,
  actor: Actor,
  held: Held,
): Promise<OwnRefund[]> {
  // On the command line it is the operator of the machine, who needs no permission.
  if (actor.id === null) return []
  if (!(await isSetByAnother(tx, actor, held))) return []
  const deed = `release the hold of ${held.target} ${held.id}`
  return await requireAnother(tx, actor, describeHeld(held), deed)
}

/** Whether somebody may release a hold. It decides what is offered; the release checks it again. */
export async function findMayRelease(sql: Sql, who: Principal, held: Held): Promise<MayEnd> {
  if (!(await isSetByAnother(sql, who, held))) return 'free'
  return await findMayEnd(sql, who, describeHeld(held))
}
