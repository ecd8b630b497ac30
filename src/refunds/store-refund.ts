import { and, eq } from 'drizzle-orm'
import { describeActor, prepareEntry } from '../access/audit.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import { externalRefunds, refunds } from '../db/schema.ts'
import {
  type ChangeRow,
  type NewEvent,
  prepareChanges,
  prepareRecording,
} from '../events/record-events.ts'
import type { Fingerprint } from '../platform/crypto/encryption.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { completeRow, insertRow } from '../platform/postgres/row-set.ts'
import { type LastStatement, pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { makeDue, notifyTransactionChanged } from '../transactions/due.ts'
import { buildRefundEvent, readExternalEvents, recordExternalChanges } from './events.ts'
import { deriveExternalState } from './external-view.ts'
import { encryptReceiver, maskReceiver, type Receiver } from './receiver.ts'
import type { PriorEvidence } from './request-facts.ts'
import type { AcceptedRefund } from './request-rules.ts'
import type { ShownRefund } from './view.ts'

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
 * Prepares the statements that store a refund with its history, audit entry and event, and make its transaction due.
 * They travel with the commit. Unique constraints on its id and its key refuse a second one. The caller holds the rows
 * that it was judged by.
 */
export async function prepareRefund(
  ctx: Pick<Context, 'encryption' | 'log'>,
  tx: Tx,
  accepted: AcceptedRefund,
  identity: RequestIdentity,
): Promise<{ stored: ShownRefund; last: LastStatement | undefined }> {
  const { access, refundId, key, facts, judged, surplus } = accepted
  const { merchantCode, transactionId } = key
  const subject = surplus === undefined ? 'payment' : 'surplus'
  const operation = OPERATIONS[access.isPerson ? 'person' : 'key'][subject]
  const row = buildRow(ctx, accepted, identity)
  const stored = { refund: completeRow(refunds, row), order: facts.order }
  const event = buildRefundEvent(ctx.encryption, key, 'refund.created', stored)
  const writes = [
    insertRow(tx, refunds, row),
    prepareChanges(tx, listSteps(accepted)),
    prepareEntry(tx, ctx.log, access, { operation, merchantCode, objectId: refundId }),
    reopen(tx, key),
  ]
  notifyAfterCommit(tx, SYNC_DUE)
  notifyTransactionChanged(tx, { merchantCode, transactionId })
  const external = judged.status === 'succeeded' ? judged.known?.external : undefined
  if (!external) {
    const recording = prepareRecording(tx, [event])
    return { stored, last: () => pipeline(...writes, recording?.() ?? false) }
  }
  // Rare enough for round trips of their own.
  await pipeline(...writes)
  const more = await takeOver(tx, accepted, external)
  return { stored, last: prepareRecording(tx, [event, ...more]) }
}

/** With a value for every column that has one, so that the insert and what is shown of it are made from the same row. */
function buildRow(
  { encryption }: Pick<Context, 'encryption'>,
  { access, refundId, key, params, surplus, facts, judged }: AcceptedRefund,
  { idempotencyKey, fingerprint }: RequestIdentity,
): typeof refunds.$inferInsert {
  const { now, today, payment, foldedOnBehalfOf } = facts
  const { receiver, reason = null, onBehalfOf, metadata = {} } = params
  const { status, amount, known } = judged
  const encrypt = (one: Receiver, column: 'receiver' | 'receiver_shown') =>
    encryptReceiver(encryption, one, column, refundId)
  const proven = known?.proves ? known : undefined
  return {
    ...{ ...key, refundId, amount, reason, status },
    metadata: sortMembers(metadata),
    ...{ idempotencyKey, fingerprint: fingerprint.value, fingerprintKeyId: fingerprint.keyId },
    // One that has succeeded is never sent.
    receiver: receiver && status !== 'succeeded' ? encrypt(receiver, 'receiver') : null,
    receiverShown: receiver ? encrypt(maskReceiver(receiver), 'receiver_shown') : null,
    surplus: surplus !== undefined,
    ...{ requestedBy: access.name, requestedPrincipal: access.principal },
    ...{ onBehalfOf, foldedOnBehalfOf },
    needsApproval: status === 'awaiting_approval',
    dueAt: status === 'pending' ? now : null,
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
    ...{ requestedAt: now, updatedAt: now },
  }
}

/** In the order in which `jsonb` keeps members, so that the first answer is the same to the letter as later ones. */
function sortMembers(given: Record<string, string>): Record<string, string> {
  const members = Object.entries(given).map(([name, value]) => [Buffer.from(name), value] as const)
  members.sort(([a], [b]) => a.length - b.length || a.compare(b))
  return Object.fromEntries(members.map(([name, value]) => [name.toString(), value]))
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

function reopen(tx: Tx, { merchantCode, transactionId }: AcceptedRefund['key']) {
  return tx`
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
