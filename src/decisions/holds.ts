import { type Actor, describeActor, recordWrite } from '../access/audit.ts'
import { SYNC_DUE } from '../db/names.ts'
import { pickOrder } from '../db/order-facts.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { type NewEvent, recordChanges, recordEvents } from '../events/record-events.ts'
import { buildPaymentEvents } from '../payments/apply-payments.ts'
import type { StoredHold } from '../payments/view.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { buildRefundEvent, readRefunds } from '../refunds/events.ts'
import { makeDue, notifyTransactionChanged } from '../transactions/due.ts'
import { readTransactions } from '../transactions/find-transactions.ts'
import { type HoldSubject, requireAnotherToRelease } from './hold-subject.ts'
import {
  buildSelfDecidedEvents,
  describeSelfDecided,
  listTransactionsOf,
  type OwnRefund,
} from './second-person.ts'
import { recheckTransaction } from './unit-of-work.ts'

/** A hold to set or to release, and why. */
export type HoldChange = { held: boolean; reason: string; operation: string }

type HoldContext = { sql: Sql; log: Log; encryption: Pick<Encryption, 'decrypt'> }

/**
 * Sets or releases a hold, with its history, its audit entry and its event. Once a hold is set, no further attempt to
 * send what is held can be recorded: commits that record one lock the account's row, and this waits for them. What
 * was sent before is not affected, and deadlines continue. Setting a hold again replaces its reason. Whoever asked for a
 * refund does not release the hold on it that somebody else set, while another may decide.
 * @returns the hold as it is now
 * @throws DomainError `not_held`, `same_person`, or `unavailable` when the payment is moving to another transaction
 */
export async function changeHold(
  ctx: HoldContext,
  actor: Actor,
  subject: HoldSubject,
  change: HoldChange,
): Promise<StoredHold> {
  return await runInTransaction(ctx.sql, async (tx) => {
    const before = await lockSubject(tx, subject)
    if (!before) {
      const detail = `${describe(subject)} has just changed; repeat the request`
      throw new DomainError('unavailable', detail)
    }
    if (!change.held && before.hold === null) {
      throw new DomainError('not_held', `${describe(subject)} is not held; nothing to release`)
    }
    const own = change.held ? [] : await requireAnotherToRelease(tx, actor, subject)
    const hold = await writeHold(tx, actor, subject, change)
    await tx`
      insert into hold_changes (merchant_code, target, target_id, held, reason, actor)
      values (${subject.merchantCode}, ${subject.target}, ${subject.id}, ${change.held}, ${change.reason},
        ${actor.name})`
    const { merchantCode, id: objectId } = subject
    await recordWrite(tx, ctx.log, actor, { operation: change.operation, merchantCode, objectId })
    const recorded = { before: before.hold, hold, change, actor, own }
    await (subject.target === 'merchant'
      ? recordOwnOfAccount(ctx, tx, recorded)
      : recordInTransaction(ctx, tx, subject, recorded))
    return hold
  })
}

function describe({ target, id }: HoldSubject): string {
  return `${target.charAt(0).toUpperCase()}${target.slice(1)} ${id}`
}

/** Locks in order: the account's row, the transaction, the payment, the refund. */
async function lockSubject(
  tx: Tx,
  subject: HoldSubject,
): Promise<{ hold: StoredHold } | undefined> {
  const { merchantCode, id } = subject
  const [account] = await tx<{ hold: StoredHold }[]>`
    select hold from merchant_accounts where merchant_code = ${merchantCode} for update`
  if (subject.target === 'merchant') return account
  const { transaction, paymentId } = subject
  await tx`
    select from transactions
    where merchant_code = ${merchantCode} and transaction_id = ${transaction.transactionId} for update`
  const [payment] = await tx<{ hold: StoredHold }[]>`
    select hold from payments where merchant_code = ${merchantCode} and payment_id = ${paymentId}
      and transaction_id = ${transaction.transactionId} for update`
  if (subject.target === 'payment' || !payment) return payment
  const [refund] = await tx<{ hold: StoredHold }[]>`
    select hold from refunds where merchant_code = ${merchantCode} and refund_id = ${id} for update`
  return refund
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
  const [row] =
    target === 'merchant'
      ? await tx<{ hold: StoredHold }[]>`
          update merchant_accounts set hold = ${hold} where merchant_code = ${merchantCode}
          returning hold`
      : target === 'payment'
        ? await tx<{ hold: StoredHold }[]>`
            update payments set hold = ${hold}, updated_at = now()
            where merchant_code = ${merchantCode} and payment_id = ${id} returning hold`
        : await tx<{ hold: StoredHold }[]>`
            update refunds set hold = ${hold}, updated_at = now()
            where merchant_code = ${merchantCode} and refund_id = ${id} returning hold`
  return row?.hold ?? null
}

type Recorded = {
  before: StoredHold
  hold: StoredHold
  change: HoldChange
  actor: Actor
  /** Refunds of the actor that are marked, because nobody else could release the hold on them. */
  own: readonly OwnRefund[]
}

function describeBy({ actor, own }: Recorded): string {
  const by = actor.id === null ? `with ${actor.name}` : describeActor(actor)
  return `${by}${describeSelfDecided(actor, own)}`
}

/** The hold of an account belongs to no transaction: only the refunds that are marked show its release. */
async function recordOwnOfAccount(ctx: HoldContext, tx: Tx, recorded: Recorded): Promise<void> {
  const { before, change, own } = recorded
  const cause = `hold of the account released ${describeBy(recorded)}: ${change.reason}`
  const rows = own.map(({ merchantCode, transactionId, paymentId, refundId }) => {
    const key = { merchantCode, transactionId, paymentId, refundId }
    return { ...key, field: 'hold', before: before?.reason ?? null, after: null, cause }
  })
  await recordChanges(tx, rows)
  for (const key of listTransactionsOf(own)) await recheckTransaction(tx, key)
  await recordEvents(tx, await buildSelfDecidedEvents(ctx, tx, own))
}

/** Records the change in the timeline and the feed. Released refunds are checked, and sent, at once. */
async function recordInTransaction(
  ctx: HoldContext,
  tx: Tx,
  subject: Exclude<HoldSubject, { target: 'merchant' }>,
  recorded: Recorded,
): Promise<void> {
  const { merchantCode, transaction, paymentId } = subject
  const { before, hold, own } = recorded
  const { held, reason } = recorded.change
  const refund = subject.target === 'refund' ? { refundId: subject.id } : {}
  const cause = `${held ? 'held' : 'hold released'} ${describeBy(recorded)}: ${reason}`
  const field = 'hold'
  const change = { field, before: before?.reason ?? null, after: hold?.reason ?? null, cause }
  await recordChanges(tx, [{ ...transaction, paymentId, ...refund, ...change }])
  if (!held) {
    await tx`
      update refunds set due_at = now()
      where merchant_code = ${merchantCode} and payment_id = ${paymentId} and status in ('pending', 'unknown')`
    notifyAfterCommit(tx, SYNC_DUE)
  }
  await tx`
    update transactions t set version = version + 1, updated_at = now() ${held ? tx`` : tx`, ${makeDue(ctx.sql)}`}
    where merchant_code = ${merchantCode} and transaction_id = ${transaction.transactionId}`
  notifyTransactionChanged(tx, transaction)
  // The event of a refund that is held shows its mark.
  const marked = subject.target === 'payment' ? own : []
  const events = await buildEvents(ctx, tx, transaction, subject)
  await recordEvents(tx, [...events, ...(await buildSelfDecidedEvents(ctx, tx, marked))])
}

async function buildEvents(
  { encryption }: HoldContext,
  tx: Tx,
  transaction: TransactionKey,
  { target, merchantCode, id }: HoldSubject,
): Promise<NewEvent[]> {
  if (target === 'refund') {
    const shown = await readRefunds(tx, merchantCode, [id])
    return shown.map((one) => buildRefundEvent(encryption, transaction, 'refund.updated', one))
  }
  const [found] = (await readTransactions(tx, [transaction])).values()
  if (!found) return []
  const change = { paymentId: id, field: 'hold', before: '', after: '' }
  const order = pickOrder(found.transaction)
  return buildPaymentEvents(
    [change],
    found.payments.map((payment) => ({ ...payment, order })),
  )
}
