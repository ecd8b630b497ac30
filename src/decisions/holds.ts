import { type Actor, describeActor } from '../access/audit.ts'
import { DomainError } from '../errors.ts'
import { recordChanges } from '../events/record-events.ts'
import type { StoredHold } from '../payments/view.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { buildUpdatedEvents } from '../refunds/events.ts'
import { type HoldSubject, requireAnotherToRelease } from './hold-subject.ts'
import { describeSelfDecided, listTransactionsOf, type OwnRefund } from './second-person.ts'
import { buildPaymentEvent, decide } from './unit-of-work.ts'

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
  const { merchantCode, target, id } = subject
  const { held, reason, operation } = change
  const of = subject.target === 'merchant' ? undefined : subject
  return await decide(ctx, {
    ...{ merchantCode, actor, operation, objectId: id },
    ...{ locksAccount: true, transactionId: of?.transaction.transactionId },
    apply: async (tx) => {
      const before = await lockHeld(tx, subject)
      if (!before) {
        const detail = `${describe(subject)} has just changed; repeat the request`
        throw new DomainError('unavailable', detail)
      }
      if (!held && before.hold === null) {
        throw new DomainError('not_held', `${describe(subject)} is not held; nothing to release`)
      }
      const own = held ? [] : await requireAnotherToRelease(tx, actor, subject)
      const hold = await writeHold(tx, actor, subject, change)
      await tx`
        insert into hold_changes (merchant_code, target, target_id, held, reason, actor)
        values (${merchantCode}, ${target}, ${id}, ${held}, ${reason}, ${actor.name})`
      await recordHold(tx, subject, { before: before.hold, hold, change, actor, own })
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

function describe({ target, id }: HoldSubject): string {
  return `${target.charAt(0).toUpperCase()}${target.slice(1)} ${id}`
}

/** Locks the payment, then the refund, and reads the hold; the rows of the account and the transaction are locked. */
async function lockHeld(tx: Tx, subject: HoldSubject): Promise<{ hold: StoredHold } | undefined> {
  const { merchantCode, id } = subject
  if (subject.target === 'merchant') {
    const [account] = await tx<{ hold: StoredHold }[]>`
      select hold from merchant_accounts where merchant_code = ${merchantCode}`
    return account
  }
  const { transaction, paymentId } = subject
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

/** The hold of an account belongs to no transaction: only the refunds that are marked show its release. */
async function recordHold(
  tx: Tx,
  subject: HoldSubject,
  { before, hold, change: { held, reason }, actor, own }: Recorded,
): Promise<void> {
  const by = actor.id === null ? `with ${actor.name}` : describeActor(actor)
  const ofAccount = subject.target === 'merchant' ? 'hold of the account released' : undefined
  const done = ofAccount ?? (held ? 'held' : 'hold released')
  const change = {
    ...{ field: 'hold', before: before?.reason ?? null, after: hold?.reason ?? null },
    cause: `${done} ${by}${describeSelfDecided(actor, own)}: ${reason}`,
  }
  if (subject.target === 'merchant') {
    const keys = own.map(({ merchantCode, transactionId, paymentId, refundId }) => {
      return { merchantCode, transactionId, paymentId, refundId }
    })
    await recordChanges(
      tx,
      keys.map((key) => ({ ...key, ...change })),
    )
    return
  }
  const { transaction, paymentId, target, id } = subject
  const refund = target === 'refund' ? { refundId: id } : {}
  await recordChanges(tx, [{ ...transaction, paymentId, ...refund, ...change }])
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
