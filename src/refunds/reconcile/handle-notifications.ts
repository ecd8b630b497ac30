import { and, eq, sql } from 'drizzle-orm'
import { ipnEvents } from '../../db/schema.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { isOpenCode } from '../../gateway/response-codes.ts'
import { compareAmounts } from '../../money.ts'
import { build } from '../../platform/postgres/query-builder.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { selectRefundNotifications } from '../../transactions/select-refund-notifications.ts'
import { applyFailureNotification, applySuccessNotification } from '../apply-notification.ts'
import { isUnsent, sendToReview } from '../transitions.ts'
import type { Finding, RefundDraft } from '../types.ts'

/** A refund notification that is not handled yet. */
export type RefundNotification = {
  id: number
  requestId: string
  paymentId: string | null
  amount: string | null
  code: string | null
  verified: boolean
  /** Not the reading of its hash that is trusted. */
  hint: boolean
  /** In the form that the gateway publishes. */
  published: boolean
  /** A notification with its hash, request id, payment and amount was handled before. */
  handledBefore: boolean
  receivedAt: string
  /** It was received before the current snapshot's query was sent. */
  beforeSnapshot: boolean
}

/**
 * Handles the refund notifications of a transaction, once each. A notification changes a refund of ours only if
 * its hash verified and merchant, payment, request id and amount are all ours: the hash joins values without
 * their names, so it does not prove which field a value belongs to. A verified success with another request id
 * is recorded as an external refund, for matching. Any other notification is only a hint to query.
 * The caller holds the rows of the transaction, its payments and its refunds.
 * @param notifications from `readUnhandledNotifications`
 */
export async function handleNotifications(
  tx: Tx,
  key: TransactionKey,
  drafts: readonly RefundDraft[],
  notifications: readonly RefundNotification[],
): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const one of notifications) {
    const own = drafts.find(({ now }) => now.refundId === one.requestId.toLowerCase())
    const finding = own ? applyToOwn(own, one) : await recordExternal(tx, key, one)
    if (finding) findings.push(finding)
  }
  if (notifications.length === 0) return findings
  const ids = notifications.map(({ id }) => id)
  await build(tx)
    .update(ipnEvents)
    .set({ handledAt: sql`now()` })
    .where(
      and(
        eq(ipnEvents.merchantCode, key.merchantCode),
        sql`${ipnEvents.id} = any(${sql.param(ids)}::bigint[])`,
      ),
    )
  return findings
}

/**
 * Reads the unhandled refund notifications of a transaction, oldest first.
 * @param asOf when the current snapshot's query was sent (database time); null without one
 */
export async function readUnhandledNotifications(
  tx: Tx,
  key: TransactionKey,
  asOf: string | null,
): Promise<RefundNotification[]> {
  return await tx<RefundNotification[]>`
    select e.id, e.request_id as "requestId", e.payment_id as "paymentId", e.amount, e.code,
      e.verdict = 'verified' as verified, e.hint, e.published, exists (select from ipn_events o
        where o.merchant_code = e.merchant_code and o.signed_key = e.signed_key and o.id <> e.id
          and o.request_id = e.request_id and o.payment_id is not distinct from e.payment_id
          and o.amount is not distinct from e.amount and o.handled_at is not null) as "handledBefore",
      e.first_received_at::text as "receivedAt",
      coalesce(e.first_received_at < ${asOf}::timestamptz, false) as "beforeSnapshot"
    from (${selectRefundNotifications(tx, key, { unhandled: true })}) as e
    order by e.id`
}

function applyToOwn(draft: RefundDraft, one: RefundNotification): Finding | undefined {
  const { refundId, paymentId, amount } = draft.now
  const same =
    one.requestId === refundId &&
    one.paymentId === paymentId &&
    one.amount !== null &&
    compareAmounts(one.amount, amount) === 0
  if (!one.verified || (same ? one.handledBefore : one.hint)) return undefined
  if (!same) {
    const reason = 'the gateway notified its request id with another payment or amount'
    // Sent from a row that was lost: sent once more, it would move twice.
    if (isUnsent(draft.now)) sendToReview(draft, 'contradicted', { reason, ipnEventId: one.id })
    return {
      kind: 'notification_mismatch',
      ours: `request ${refundId}, payment ${paymentId}, amount ${amount}`,
      theirs: `request ${one.requestId}, payment ${one.paymentId}, amount ${one.amount}`,
      paymentId,
      refundId,
    }
  }
  const result = readResult(one.code)
  if (result === undefined) return undefined
  const apply = result === 'success' ? applySuccessNotification : applyFailureNotification
  const disagreement = apply(draft, { ...one, code: one.code ?? '' })
  return disagreement && { ...disagreement, paymentId, refundId }
}

/**
 * Records a verified success as an external refund, which is reserved until growth shows it. A failure that is
 * notified after it releases it, and another success after that reserves it again.
 */
async function recordExternal(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  one: RefundNotification,
): Promise<undefined> {
  const { id, requestId, paymentId, amount, code, verified, receivedAt } = one
  const result = readResult(code)
  // Of two readings nobody can say which one is right: both are reserved, until growth shows one.
  if (one.hint && !one.published) return
  if (!verified || result === undefined || paymentId === null || amount === null) return
  if (compareAmounts(amount, '0') === 0) return
  if (result === 'failure') {
    if (one.hint) return
    await tx`
      update foreign_refunds set outcome = 'released', matched = false
      where merchant_code = ${merchantCode} and request_id = ${requestId} and payment_id = ${paymentId}
        and amount = ${amount} and outcome is distinct from 'own'`
    return
  }
  await tx`
    insert into foreign_refunds as f
      (merchant_code, request_id, payment_id, amount, ipn_event_id, notified_at)
    select merchant_code, ${requestId}, payment_id, ${amount}, ${id}, ${receivedAt} from payments
    where merchant_code = ${merchantCode} and payment_id = ${paymentId} and transaction_id = ${transactionId}
    on conflict (merchant_code, request_id, payment_id, amount) do update set outcome = null
    where f.outcome = 'released'`
}

/** Undefined for an open code, and for one that is not a canonical integer: `05` may be a `0` split elsewhere. */
function readResult(code: string | null): 'success' | 'failure' | undefined {
  if (code === null || !/^(0|-?[1-9]\d{0,8})$/.test(code) || isOpenCode(code)) return undefined
  return code === '0' ? 'success' : 'failure'
}
