import { type Actor, describeActor } from '../access/audit.ts'
import type { Principal } from '../access/principal.ts'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { DomainError, requireOnly } from '../errors.ts'
import { recordChanges } from '../events/record-events.ts'
import { Id, isUuid } from '../http/fields.ts'
import type { StoredHold } from '../payments/view.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { buildUpdatedEvents } from '../refunds/events.ts'
import {
  describeSelfDecided,
  findMayEnd,
  type HoldsBack,
  listTransactionsOf,
  type MayEnd,
  type OwnRequest,
  requireAnother,
} from './second-person.ts'
import { buildPaymentEvent, decide } from './unit-of-work.ts'

export const HOLD_TARGETS = ['merchant', 'payment', 'refund'] as const

/** What can be held: an account, a payment with all its refunds, or a single refund. */
export type HoldTarget = (typeof HOLD_TARGETS)[number]

type Held = { merchantCode: string; target: HoldTarget; id: string }

type ListedHold = Held & { reason: string; by: string; at: string }

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

export async function readAccountHold(sql: Sql, merchantCode: string): Promise<StoredHold> {
  const [row] = await sql<{ hold: StoredHold }[]>`
    select hold from merchant_accounts where merchant_code = ${merchantCode}`
  return row?.hold ?? null
}

export type HoldSubject = { merchantCode: string; id: string } & (
  | { target: 'merchant' }
  | { target: 'payment' | 'refund'; transaction: TransactionKey; paymentId: string }
)

const TARGETS = {
  merchant: { table: 'merchant_accounts', column: 'merchant_code', type: 'text' },
  payment: { table: 'payments', column: 'payment_id', type: 'text' },
  refund: { table: 'refunds', column: 'refund_id', type: 'uuid' },
} as const satisfies Record<HoldTarget, object>

/**
 * @param merchants the accounts the caller may act for
 * @param id unvalidated text from the request
 * @throws DomainError `merchant_not_found`, `payment_not_found`, `refund_not_found`, `ambiguous_merchant`
 */
export async function findSubject(
  sql: Sql,
  merchants: readonly string[],
  target: HoldTarget,
  id: string,
): Promise<HoldSubject> {
  return requireOnly(await selectSubjects(sql, merchants, target, id), target, id)
}

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
  const { table, column, type } = TARGETS[target]
  const rows = await sql<(TransactionKey & { paymentId: string })[]>`
    select o.merchant_code as "merchantCode", o.transaction_id as "transactionId", o.payment_id as "paymentId"
    from (
      select merchant_code, ${id}::${sql.unsafe(type)} as ${sql(column)}
      from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
    ) as k cross join lateral (
      select merchant_code, transaction_id, payment_id from ${sql(table)} as o
      where ${sql.unsafe(byKey('o', ['merchant_code', column], 'k'))} limit 1) as o`
  return rows.map(({ merchantCode, transactionId, paymentId }) => ({
    ...{ target, merchantCode, paymentId, transaction: { merchantCode, transactionId } },
    id: target === 'payment' ? id : id.toLowerCase(),
  }))
}

type HoldChange = {
  held: boolean
  reason: string
  operation: string
  /** Since when the hold is set that a person was shown, empty for none. Another one stays. */
  shownSince?: string | undefined
}

type HoldContext = Pick<Context, 'db' | 'log'> & { encryption: Pick<Encryption, 'decrypt'> }

/**
 * Sets or releases a hold. Once it is set, no further attempt to send what is held can be recorded: commits that
 * record one lock the account's row, and this waits for them. Setting it again replaces the reason. Whoever asked for
 * a refund may not release a hold on it that somebody else set, while another person may.
 * @returns the hold as it is now
 * @throws DomainError `not_held`, `not_decidable` with `changed` if another hold was shown, `same_person`, or
 *   `unavailable` when the payment is moving to another transaction
 */
export async function changeHold(
  ctx: HoldContext,
  actor: Actor,
  subject: HoldSubject,
  change: HoldChange,
): Promise<StoredHold> {
  const { merchantCode, target, id } = subject
  const { held, operation } = change
  const of = subject.target === 'merchant' ? undefined : subject
  const name = `${target.charAt(0).toUpperCase()}${target.slice(1)} ${id}`
  return await decide(ctx, {
    ...{ merchantCode, actor, operation, objectId: id },
    ...{ locksAccount: true, transactionId: of?.transaction.transactionId },
    apply: async (tx) => {
      const before = await lockHeld(tx, subject)
      if (!before) {
        throw new DomainError('unavailable', `${name} has just changed; repeat the request`)
      }
      if (!held && before.hold === null) {
        throw new DomainError('not_held', `${name} is not held; nothing to release`)
      }
      const since = before.hold?.since ?? ''
      if (since !== (change.shownSince ?? since)) {
        const detail = `The hold of ${name} has changed since it was shown; it stays as it is`
        throw new DomainError('not_decidable', detail, { changed: true })
      }
      const own = held ? [] : await requireAnotherToRelease(tx, actor, subject)
      const hold = await writeHold(tx, actor, subject, change)
      await recordHold(tx, subject, [before.hold, hold], actor, change, own)
      if (of && !held) await makeRefundsDue(tx, of)
      // The event of a refund that is held shows its mark.
      const shown = target === 'refund' ? [id] : own.map(({ refundId }) => refundId)
      return {
        value: hold,
        changed: of ? [of.transaction] : listTransactionsOf(own),
        buildEvents: async () => [
          ...(of?.target === 'payment' ? await buildPaymentEvent(tx, of.transaction, id) : []),
          ...(await buildUpdatedEvents(ctx, tx, { merchantCode, refundIds: shown })),
        ],
        log: held ? 'hold set' : 'hold released',
      }
    },
  })
}

/** Locks the payment, then the refund. The account's row and the transaction's are locked already. */
async function lockHeld(tx: Tx, subject: HoldSubject): Promise<{ hold: StoredHold } | undefined> {
  const { merchantCode, target, id } = subject
  if (subject.target !== 'merchant') {
    const { transaction, paymentId } = subject
    const payment = await tx`
      select from payments where merchant_code = ${merchantCode} and payment_id = ${paymentId}
        and transaction_id = ${transaction.transactionId} for update`
    if (payment.length === 0) return undefined
  }
  const { table, column } = TARGETS[target]
  const lock = target === 'merchant' ? tx`` : tx`for update`
  const [row] = await tx<{ hold: StoredHold }[]>`
    select hold from ${tx(table)}
    where merchant_code = ${merchantCode} and ${tx(column)} = ${id} ${lock}`
  return row
}

async function writeHold(
  tx: Tx,
  { name }: Actor,
  { target, merchantCode, id }: HoldSubject,
  { held, reason }: HoldChange,
): Promise<StoredHold> {
  const hold = held
    ? tx`jsonb_build_object('reason', ${reason}::text, 'by', ${name}::text,
        'since', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`
    : tx`null`
  const { table, column } = TARGETS[target]
  const touch = target === 'merchant' ? tx`` : tx`, updated_at = now()`
  const [row] = await tx<{ hold: StoredHold }[]>`
    update ${tx(table)} set hold = ${hold}${touch}
    where merchant_code = ${merchantCode} and ${tx(column)} = ${id} returning hold`
  return row?.hold ?? null
}

/** An account's hold belongs to no transaction: only the actor's own refunds that are marked show its release. */
async function recordHold(
  tx: Tx,
  subject: HoldSubject,
  [before, after]: [StoredHold, StoredHold],
  actor: Actor,
  { held, reason }: HoldChange,
  own: readonly OwnRequest[],
): Promise<void> {
  const { merchantCode, target, id } = subject
  const principal = actor.id === null ? null : actor.principal
  await tx`
    insert into hold_changes (merchant_code, target, target_id, held, reason, actor, principal)
    values (${merchantCode}, ${target}, ${id}, ${held}, ${reason}, ${actor.name}, ${principal})`
  const by = actor.id === null ? `with ${actor.name}` : describeActor(actor)
  const released = target === 'merchant' ? 'hold of the account released' : 'hold released'
  const change = {
    ...{ field: 'hold', before: before?.reason ?? null, after: after?.reason ?? null },
    cause: `${held ? 'held' : released} ${by}${describeSelfDecided(actor, own)}: ${reason}`,
  }
  const refundId = target === 'refund' ? id : null
  const of =
    subject.target === 'merchant'
      ? own
      : [{ ...subject.transaction, paymentId: subject.paymentId, refundId }]
  const rows = of.map(({ transactionId, paymentId, refundId }) => {
    return { merchantCode, transactionId, paymentId, refundId, ...change }
  })
  await recordChanges(tx, rows)
}

/** Released refunds are checked, and sent, at once. */
async function makeRefundsDue(
  tx: Tx,
  { merchantCode, paymentId }: Exclude<HoldSubject, { target: 'merchant' }>,
): Promise<void> {
  await tx`
    update refunds set due_at = now()
    where merchant_code = ${merchantCode} and payment_id = ${paymentId} and status in ('pending', 'unknown')`
}

function describeHeld({ merchantCode, target, id }: Held): HoldsBack {
  if (target === 'merchant') return { merchantCode, ofAccount: true }
  const paymentId = target === 'payment' ? id : null
  return { merchantCode, paymentId, refundId: target === 'refund' ? id : null }
}

/**
 * What a hold holds back; undefined if the principal alone has set it since it was last released. Setting it again
 * takes it over from nobody. What was set on the command line, or by nobody known, is somebody else's.
 */
async function findSetByAnother(
  tx: Tx,
  who: Principal,
  held: Held,
): Promise<HoldsBack | undefined> {
  const { merchantCode, target, id } = held
  const setters = await tx<{ principal: string | null; at: string }[]>`
    select principal, at::text from hold_changes as h
    where merchant_code = ${merchantCode} and target = ${target} and target_id = ${id} and held and h.id > (
      select coalesce(max(r.id), 0) from hold_changes as r
      where r.merchant_code = ${merchantCode} and r.target = ${target} and r.target_id = ${id} and not r.held)
    order by h.id`
  const isOwn = setters.length > 0 && setters.every(({ principal }) => principal === who.principal)
  return isOwn ? undefined : { ...describeHeld(held), heldSince: setters[0]?.at ?? null }
}

/** Whether somebody may release a hold, to be offered; the release checks it again. */
export async function findMayRelease(tx: Tx, who: Principal, held: Held): Promise<MayEnd> {
  const ends = await findSetByAnother(tx, who, held)
  return ends ? await findMayEnd(tx, who, ends) : 'free'
}

/**
 * Checks the release of a hold as `requireAnother` does, except for whoever set it. The caller holds what is held.
 * @returns the refunds that are marked `selfDecided`
 * @throws DomainError `same_person`
 */
async function requireAnotherToRelease(tx: Tx, actor: Actor, held: Held): Promise<OwnRequest[]> {
  // The command line is used by the operator of the machine, who needs no permission.
  const ends = actor.id === null ? undefined : await findSetByAnother(tx, actor, held)
  if (actor.id === null || !ends) return []
  return await requireAnother(tx, actor, ends, `release the hold of ${held.target} ${held.id}`)
}
