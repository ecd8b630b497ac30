import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import type { PgInsertValue } from 'drizzle-orm/pg-core'
import { describeActor, recordEntry } from '../access/audit.ts'
import { foldName } from '../access/principal.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import { externalRefunds, refunds } from '../db/schema.ts'
import { formatTransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import {
  type ChangeRow,
  type NewEvent,
  prepareRecording,
  recordChanges,
} from '../events/record-events.ts'
import { subtractAmount } from '../money.ts'
import type { Fingerprint } from '../platform/crypto/encryption.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import {
  confirmCommits,
  pipeline,
  runInTransaction,
  runPipelined,
} from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { makeDue, notifyTransactionChanged } from '../transactions/due.ts'
import { buildRefundEvent, readExternalEvents, recordExternalChanges } from './events.ts'
import { deriveExternalState } from './external-view.ts'
import {
  deriveRefundId,
  findTarget,
  formatParams,
  isRefusal,
  type RefundTarget,
  type RequestedRefund,
  replayRefund,
} from './idempotency.ts'
import { encryptReceiver, maskReceiver, type Receiver } from './receiver.ts'
import { lockAndReadFacts, type PriorEvidence } from './request-facts.ts'
import { type AcceptedRefund, judgeRequest, requireSendable } from './request-rules.ts'
import type { RefundParams } from './request-schema.ts'
import { chooseAsked } from './surplus.ts'
import type { ShownRefund } from './view.ts'

/**
 * Accepts a refund, in one transaction that locks, reads, judges and stores it. The same idempotency key with the same
 * parameters returns the refund that it created the first time.
 * @throws DomainError when the refund is refused, StaleVersionError when something has changed since the caller read
 *   it; nothing is stored then
 */
export async function requestRefund(
  ctx: Context,
  access: Access,
  merchants: readonly string[],
  idempotencyKey: string,
  params: RefundParams,
): Promise<RequestedRefund> {
  const find = (sql: Tx) => findTarget(sql, merchants, params, idempotencyKey)
  const asked = formatParams(params)
  let isNew = false
  try {
    return await runPipelined<RefundTarget, RequestedRefund>(ctx.db.sql, {
      open: find,
      work: async (tx, target) => {
        const replayed = replayRefund(ctx, target, asked)
        if (replayed) return { value: replayed, last: () => confirmCommits(tx) }
        isNew = true
        const { merchantCode } = target
        const refundId = deriveRefundId(merchantCode, idempotencyKey)
        ctx.tracing.remember(formatTransactionKey(target))
        const judged = await lockAndJudge(ctx, tx, access, target, params, refundId)
        const fingerprint = ctx.encryption.fingerprint(asked)
        const identity = { idempotencyKey, fingerprint }
        const { stored, more } = await storeRefund(ctx, tx, judged, identity)
        const event = buildRefundEvent(ctx.encryption, target, 'refund.created', stored)
        const value = { refundId, merchantCode, replayed: false as const, stored }
        return { value, last: prepareRecording(tx, [event, ...more]) }
      },
    })
  } catch (error) {
    // A copy of this request may have been stored while this one waited for the locks. It may be the reason for the
    // refusal, because it left too little to refund or changed the version. Its refund is the answer then.
    if (!isNew || !isRefusal(error)) throw error
    const replayed = replayRefund(ctx, await find(ctx.db.sql), asked)
    if (!replayed) throw error
    await confirmCommits(ctx.db.sql)
    return replayed
  }
}

/** Locks the API key's day, the order, the transaction and the payment, in this order, and judges the request. */
async function lockAndJudge(
  { config }: Pick<Context, 'config'>,
  tx: Tx,
  access: Access,
  target: RefundTarget,
  params: RefundParams,
  refundId: string,
): Promise<AcceptedRefund> {
  requireSendable(config, target.merchantCode, params)
  const zone = config.CAPS_TIME_ZONE
  const asked = await chooseAsked(tx, access, target, params, { refundId, zone })
  const { merchantCode, transactionId } = target
  const key = { merchantCode, transactionId, paymentId: asked.paymentId }
  const facts = await lockAndReadFacts(tx, access, key, { refundId, zone })
  if (!facts) {
    const detail = `Payment ${asked.paymentId} has changed in this moment; repeat the request with the same key`
    throw new DomainError('unavailable', detail)
  }
  return { ...asked, key, facts, judged: judgeRequest(facts, asked, config) }
}

export type PreviewedRefund = Awaited<ReturnType<typeof previewRefund>>

/** Judges a refund as a request would, with the same refusals, and stores nothing. Amounts are decimal strings. */
export async function previewRefund(
  ctx: Pick<Context, 'config' | 'db'>,
  access: Access,
  merchants: readonly string[],
  params: RefundParams,
) {
  const refundId = randomUUID()
  const target = await findTarget(ctx.db.sql, merchants, params, refundId)
  return await runAndRollBack(ctx, async (tx) => {
    const asked = await lockAndJudge(ctx, tx, access, target, params, refundId)
    const { amount, status } = asked.judged
    const { refundable } = asked.facts.payment
    return {
      ...{ paymentId: asked.paymentId, surplus: asked.surplus, amount, refundable },
      currency: asked.facts.order.currency,
      refundableAfter: subtractAmount(refundable, amount),
      needsApproval: status === 'awaiting_approval',
    }
  })
}

async function runAndRollBack<T extends object>(
  { db: { sql } }: Pick<Context, 'db'>,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const rollBack = new Error('the preview is rolled back')
  let result: T | undefined
  await runInTransaction(sql, async (tx) => {
    result = await work(tx)
    throw rollBack
  }).catch((error: unknown) => {
    if (error !== rollBack) throw error
  })
  if (!result) throw new Error('the preview has no result')
  return result
}

/** The operations in the audit log: of API keys and of people, for a payment and for a surplus. */
const OPERATIONS = {
  key: {
    payment: 'POST /v1/payments/{paymentId}/refunds',
    surplus: 'POST /v1/transactions/{transactionId}/surplus-refund',
  },
  person: {
    payment: 'POST /console/payments/{merchant}/{id}/refund',
    surplus: 'POST /console/transactions/{merchant}/{id}/surplus',
  },
}

const PROVEN = 'the gateway notified its success before the refund was stored; it is not sent again'
const KNOWN =
  'the gateway notified this request id before the refund was stored, and its success is not known beyond doubt; it is not sent again'

type RequestIdentity = { idempotencyKey: string; fingerprint: Fingerprint }

/**
 * Stores a refund with its history and audit entry, and makes its transaction due. Unique constraints on its id and
 * its key refuse a second one. The caller holds the rows that it was judged by.
 * @returns with `more`: the events to record after that of the refund
 */
async function storeRefund(
  ctx: Pick<Context, 'encryption' | 'log'>,
  tx: Tx,
  accepted: AcceptedRefund,
  identity: RequestIdentity,
): Promise<{ stored: ShownRefund; more: readonly NewEvent[] }> {
  const { access, refundId, key, facts, judged, surplus } = accepted
  const { merchantCode, transactionId } = key
  const subject = surplus === undefined ? 'payment' : 'surplus'
  const operation = OPERATIONS[access.isPerson ? 'person' : 'key'][subject]
  const [[refund]] = await pipeline(
    build(tx)
      .insert(refunds)
      .values(buildRow(ctx, accepted, identity))
      .returning()
      .execute(),
    recordChanges(tx, listSteps(accepted)),
    recordEntry(tx, ctx.log, access, { operation, merchantCode, objectId: refundId }),
    reopen(tx, key),
  )
  if (!refund) throw new Error('the refund was not stored')
  notifyAfterCommit(tx, SYNC_DUE)
  notifyTransactionChanged(tx, { merchantCode, transactionId })
  const external = judged.status === 'succeeded' ? judged.known?.external : undefined
  const more = external ? await takeOver(tx, accepted, external) : []
  return { stored: { refund, order: facts.order }, more }
}

function buildRow(
  { encryption }: Pick<Context, 'encryption'>,
  { access, refundId, key, params, surplus, facts: { today, payment }, judged }: AcceptedRefund,
  { idempotencyKey, fingerprint }: RequestIdentity,
): PgInsertValue<typeof refunds> {
  const { receiver, reason = null, onBehalfOf, metadata = {} } = params
  const { status, amount, known } = judged
  const encrypt = (one: Receiver, column: 'receiver' | 'receiver_shown') =>
    encryptReceiver(encryption, one, column, refundId)
  const proven = known?.proves ? known : undefined
  return {
    ...{ ...key, refundId, amount, reason, metadata, status },
    ...{ idempotencyKey, fingerprint: fingerprint.value, fingerprintKeyId: fingerprint.keyId },
    // One that has succeeded is never sent.
    receiver: receiver && status !== 'succeeded' ? encrypt(receiver, 'receiver') : null,
    receiverShown: receiver ? encrypt(maskReceiver(receiver), 'receiver_shown') : null,
    surplus: surplus !== undefined,
    ...{ requestedBy: access.name, requestedPrincipal: access.principal },
    ...{ onBehalfOf, foldedOnBehalfOf: onBehalfOf && foldPerson(onBehalfOf) },
    needsApproval: status === 'awaiting_approval',
    dueAt: status === 'pending' ? sql`now()` : null,
    requestedNumber: payment.want + 1, // `reopen` raises it.
    matched: proven?.external?.matched ?? false,
    inFirstSight: proven?.external?.outcome === 'part_of_first_sight',
    successNotifiedAt: proven?.notifiedAt ?? null,
    review: status === 'needs_review' ? 'contradicted' : null,
    // What was sent before its row was lost was counted then, and no check before sending applies to it.
    ...(known
      ? {}
      : {
          capKeyId: today && access.chainId,
          capDay: today?.day,
          capCurrency: payment.verifiedCurrency,
          requestedCurrency: payment.requestedCurrency,
        }),
  }
}

/** A person who is named by e-mail address or id is stored by name, because whoever decides is compared with that. */
function foldPerson(text: string) {
  const folded = foldName(text)
  return sql<string>`coalesce((
    select folded_person from actors where kind = 'person' and (folded_email = ${folded} or id::text = ${folded})
    order by ended_at is not null, created_at desc limit 1), ${folded})`
}

function listSteps({ access, refundId, key, params, surplus, judged }: AcceptedRefund) {
  const { reason, onBehalfOf } = params
  const { status, known } = judged
  const what = surplus !== undefined ? 'what was paid beyond one success, ' : ''
  const forWhom = onBehalfOf === undefined ? '' : ` on behalf of ${onBehalfOf}`
  const cause = `${what}requested ${describeActor(access)}${forWhom}${reason ? `: ${reason}` : ''}`
  const first: ChangeRow = {
    ...{ ...key, refundId, field: 'status', before: null, after: known ? 'pending' : status },
    cause,
  }
  if (!known) return [first]
  const { proves, ipnEventId } = known
  const step = { before: 'pending', after: status, ipnEventId, cause: proves ? PROVEN : KNOWN }
  return [first, { ...first, ...step }]
}

async function reopen(
  tx: Tx,
  { merchantCode, transactionId }: AcceptedRefund['key'],
): Promise<void> {
  await tx`
    update transactions t set final = false, version = version + 1, updated_at = now(), ${makeDue(tx)}
    from ${tx.unsafe(CLOCK)}
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
}

/** Marks an external refund as one of ours whose row was lost. Returns the events to record at the end. */
async function takeOver(
  tx: Tx,
  { key, refundId }: AcceptedRefund,
  { externalId, matched, outcome }: PriorEvidence,
): Promise<NewEvent[]> {
  if (externalId === null || outcome === 'own') return []
  const { merchantCode, paymentId } = key
  await build(tx)
    .update(externalRefunds)
    .set({ outcome: 'own', matched: false })
    .where(and(eq(externalRefunds.merchantCode, merchantCode), eq(externalRefunds.id, externalId)))
  const reason = `it is refund ${refundId}, whose row was lost and is stored again`
  const before = deriveExternalState({ matched, outcome })
  const changes = [{ externalId, paymentId, before, after: 'own' as const, cause: { reason } }]
  await recordExternalChanges(tx, key, changes)
  return await readExternalEvents(tx, merchantCode, changes)
}
