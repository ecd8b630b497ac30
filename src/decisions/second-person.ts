import { LIVE_SQL } from '../access/keys.ts'
import { coversSql, namesActor, namesActorSql, type Principal } from '../access/principal.ts'
import { type Access, hasScopeSql } from '../access/types.ts'
import { isUnendedSql, refunds } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { isRequestedBy, type RefundRecord } from '../refunds/find.ts'
import type { RefundRow } from '../refunds/lifecycle.ts'
import { COUNTS_WITH } from '../refunds/order-surplus.ts'
import { type Circumstances, isDecidedByPerson } from './obstacles.ts'
import { lockTransaction } from './unit-of-work.ts'

/** What holds refunds back: those of a payment and one that it names (none if both are null), or all of an account. */
export type HoldsBack = {
  merchantCode: string
  /** Since when a hold is set. What failed since counts as well: its principal could ask again at once. */
  heldSince?: string | null
  /** The refund that is decided. */
  decided?: string
} & (OfPayment | { ofAccount: true })

type OfPayment = {
  paymentId: string | null
  refundId: string | null
  /** The transaction of a payment that surplus refunds of the order's other payments wait for. */
  transactionId?: string | null
}

const OWN = [
  'merchantCode',
  'transactionId',
  'paymentId',
  'refundId',
  'requestedPrincipal',
  'foldedOnBehalfOf',
] as const

/** A refund that has not ended, and that the principal asked for or is named as the one it was asked for. */
export type OwnRequest = Pick<RefundRecord['refund'], (typeof OWN)[number]>

/** `free`: none of the refunds is theirs. `self`: nobody else may decide. `another`: somebody else has to. */
export type MayEnd = 'free' | 'self' | 'another'

/**
 * Nobody who asked for a refund ends what holds it back, while another may decide: they would clear the way alone. The
 * caller holds the rows of what it ends, names these refunds in its cause, and makes their transactions' change
 * visible.
 * @param deed what the caller is about to do, e.g. `resolve discrepancy 17`
 * @returns the caller's own refunds, marked `selfDecided`
 * @throws DomainError `same_person`
 */
export async function requireAnother(
  tx: Tx,
  access: Access,
  ends: HoldsBack,
  deed: string,
): Promise<OwnRequest[]> {
  const { own, others } = await listHeldBack(tx, access, ends)
  const [first] = own
  if (!first) return []
  if (await mayAnotherDecide(tx, access, own, others)) {
    const detail = `Refund ${first.refundId} was requested by you or for you, and this holds it back: another person with the scope ops has to ${deed}`
    throw new DomainError('same_person', detail)
  }
  await markSelfDecided(tx, own)
  return own
}

/** Whether somebody may end what holds refunds back, to be offered; `requireAnother` checks it again. */
export async function findMayEnd(tx: Tx, who: Principal, ends: HoldsBack): Promise<MayEnd> {
  const { own, others } = await listHeldBack(tx, who, ends)
  if (own.length === 0) return 'free'
  return (await mayAnotherDecide(tx, who, own, others)) ? 'another' : 'self'
}

/** Says in a cause, after the actor, that they ended what held their own refunds back. */
export function describeSelfDecided(
  { isPerson }: Pick<Access, 'isPerson'>,
  own: readonly Pick<OwnRequest, 'refundId'>[],
): string {
  if (own.length === 0) return ''
  const ids = own.slice(0, MAX_NAMED).map(({ refundId }) => refundId)
  const more = own.length > ids.length ? ` and ${own.length - ids.length} more` : ''
  const refunds = own.length === 1 ? 'refund' : 'refunds'
  return `, ${isPerson ? 'who' : 'which'} also requested ${refunds} ${ids.join(', ')}${more}`
}

const MAX_NAMED = 5

export function listTransactionsOf(own: readonly TransactionKey[]): TransactionKey[] {
  const [first] = own
  if (!first) return []
  const { merchantCode } = first
  const ids = new Set(own.map(({ transactionId }) => transactionId))
  return [...ids].sort().map((transactionId) => ({ merchantCode, transactionId }))
}

const COLUMNS = listColumns(refunds, 'r', OWN)
const TRANSACTION = ['merchant_code', 'transaction_id']
const NOT_ENDED = isUnendedSql('r')

/**
 * Finds the principal's own requests among what is held back, and those of others with the refund that is decided. Who
 * asked for one of the others is nobody else who may decide: people who each asked for a refund would wait for each
 * other. Not so for a hold, which its setter may always release.
 */
async function listHeldBack(
  tx: Tx,
  who: Principal,
  ends: HoldsBack,
): Promise<{ own: OwnRequest[]; others: string[] }> {
  const open = 'ofAccount' in ends ? await listOfAccount(tx, who, ends) : await listOf(tx, ends)
  const own = open.filter((refund) => isOwnRequest(who, refund))
  if (ends.heldSince !== undefined) return { own, others: [] }
  const others = open.filter((refund) => !own.includes(refund)).map(({ refundId }) => refundId)
  return { own, others: ends.decided === undefined ? others : [ends.decided, ...others] }
}

/** A payment's transaction, and those of its order that count with it. */
const OF_ORDER = `
  select t.merchant_code, t.transaction_id
  union all
  select o.merchant_code, o.transaction_id from (
    select * from transactions as o where ${byKey('o', ['merchant_code', 'order_id'], 't')} offset 0) as o
  where ${COUNTS_WITH}`

/** The surplus refunds of the other payments of the order of `k`. */
const SURPLUS_REFUNDS = `
  select o.* from (
    select * from transactions as t where ${byKey('t', TRANSACTION, 'k')} limit 1
  ) as t cross join lateral (${OF_ORDER}) as m cross join lateral (
    select * from refunds as o where ${byKey('o', TRANSACTION, 'm')} offset 0
  ) as o
  where o.surplus and o.payment_id <> k.payment_id and o.refund_id is distinct from k.refund_id`

/**
 * Whether the refund `r` failed since then, sent or not; never if there is no time. Both times are those at which a unit
 * of work began, and either may have waited for the lock of the other, for less than a minute.
 */
const hasFailedSince = (tx: Tx, since: string | null = null) =>
  tx`(r.status = 'failed' and r.updated_at >= ${since}::timestamptz - interval '1 minute')`

async function listOf(
  tx: Tx,
  {
    merchantCode,
    heldSince,
    paymentId,
    refundId,
    transactionId = null,
  }: Extract<HoldsBack, OfPayment>,
): Promise<OwnRequest[]> {
  return await tx<OwnRequest[]>`
    select ${tx.unsafe(COLUMNS)}
    from (
      select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id,
        ${paymentId}::text as payment_id, ${refundId}::uuid as refund_id
    ) as k cross join lateral (
      (select * from refunds as o where ${tx.unsafe(byKey('o', ['merchant_code', 'payment_id'], 'k'))} offset 0)
      union all
      (select * from refunds as o where o.payment_id is distinct from k.payment_id
        and ${tx.unsafe(byKey('o', ['merchant_code', 'refund_id'], 'k'))} limit 1)
      union all
      (${tx.unsafe(SURPLUS_REFUNDS)})
    ) as r
    where ${tx.unsafe(NOT_ENDED)} or ${hasFailedSince(tx, heldSince)} order by r.requested_at, r.refund_id`
}

/** How long before an account's hold a refund may have been requested that fails during it. */
const LONGEST_OPEN = '400 days'

/** An account may have many open refunds, so those that cannot be the principal's are left out in the query. */
async function listOfAccount(
  tx: Tx,
  { principal }: Principal,
  { merchantCode, heldSince = null }: HoldsBack,
): Promise<OwnRequest[]> {
  return await tx<OwnRequest[]>`
    select ${tx.unsafe(COLUMNS)} from (
      select * from refunds as r where r.merchant_code = ${merchantCode} and ${tx.unsafe(NOT_ENDED)}
      union all
      select * from refunds as r where r.merchant_code = ${merchantCode} and ${hasFailedSince(tx, heldSince)}
        and r.requested_at >= ${heldSince}::timestamptz - ${LONGEST_OPEN}::interval
    ) as r
    where r.requested_principal = ${principal} or r.on_behalf_of is not null
    order by r.requested_at, r.refund_id`
}

const MAY_DECIDE = `${hasScopeSql('k', 'ops')} and ${coversSql('r.merchant_code')} and ${LIVE_SQL}`

/**
 * Whether a live row `k` of `actors` that did not ask for one of the refunds may decide about it, and neither asked for
 * one of the `others` nor gave the first word that it came back. A person whom the requester named counts as another to
 * the requester: otherwise naming everyone else would let them decide alone.
 */
async function mayAnotherDecide(
  tx: Tx,
  { principal }: Principal,
  refunds: readonly RefundKey[],
  others: readonly string[] = [],
): Promise<boolean> {
  const merchantCode = refunds[0]?.merchantCode ?? ''
  const ids = refunds.map(({ refundId }) => refundId)
  const rows = await tx`
    select from (
      select o.* from (
        select ${merchantCode}::text as merchant_code, refund_id from unnest(${ids}::uuid[]) as refund_id
      ) as k cross join lateral (
        select * from refunds as o
        where ${tx.unsafe(byKey('o', ['merchant_code', 'refund_id'], 'k'))} limit 1) as o
    ) as r, actors as k
    where ${tx.unsafe(MAY_DECIDE)} and k.principal not in (${principal}, r.requested_principal)
      and (r.requested_principal = ${principal} or not ${tx.unsafe(namesActorSql('r.folded_on_behalf_of'))})
      and not exists (
        select from refunds as d where d.merchant_code = ${merchantCode} and d.refund_id = any(${others}::uuid[])
          and (k.principal = d.requested_principal or (d.status = 'returned' and k.principal = d.resolved_principal)
            or ${tx.unsafe(namesActorSql('d.folded_on_behalf_of'))}))
    limit 1`
  return rows.length > 0
}

/** Locks the transactions before the refunds, as everywhere; for an account's hold they are not locked yet. */
async function markSelfDecided(tx: Tx, own: readonly OwnRequest[]): Promise<void> {
  for (const key of listTransactionsOf(own)) await lockTransaction(tx, key)
  const merchantCode = own[0]?.merchantCode ?? ''
  const ids = own.map(({ refundId }) => refundId)
  await tx`
    update refunds set self_decided = true, updated_at = now()
    where merchant_code = ${merchantCode} and refund_id = any(${ids}::uuid[])`
}

type Requested = Pick<RefundRecord['refund'], 'requestedPrincipal' | 'foldedOnBehalfOf'>

/** Whether a principal asked for a refund, or it was asked for in their name: then another has to approve it. */
export function isOwnRequest(who: Principal, refund: Requested): boolean {
  return isRequestedBy(who, refund) || namesActor(who, refund.foldedOnBehalfOf)
}

type RefundKey = { merchantCode: string; refundId: string }

type DecidedRefund = RefundKey &
  Requested &
  Pick<RefundRow, 'status' | 'inferred' | 'resolution' | 'resolvedPrincipal'>

export async function readStanding(
  tx: Tx,
  refund: DecidedRefund,
  who: Principal,
): Promise<Pick<Circumstances, 'asked' | 'decidedLast' | 'alone'>> {
  const asked = isOwnRequest(who, refund)
  const decidedLast = isDecidedByPerson(refund) && refund.resolvedPrincipal === who.principal
  const alone = (asked || decidedLast) && !(await mayAnotherDecide(tx, who, [refund]))
  return { asked, decidedLast, alone }
}
