import { and, eq, sql } from 'drizzle-orm'
import type { Context } from '../../context.ts'
import { ipnEvents } from '../../db/schema.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { type RefundDetails, readRefundDetails } from '../../gateway/read-stored.ts'
import { isOpenCode, isResultCode } from '../../gateway/response-codes.ts'
import { compareAmounts } from '../../money.ts'
import { build } from '../../platform/postgres/drizzle.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { applyFailureNotification, applySuccessNotification } from '../apply-notification.ts'
import { decryptReceiver, maskAccount } from '../receiver.ts'
import { isUnsent, sendToReview } from '../transitions.ts'
import type { Finding, RefundDraft, RefundRow } from '../types.ts'
import type { LockedRefunds } from './lock-refunds.ts'
import type { RefundNotification } from './read-notifications.ts'
import { recordExternal } from './record-external.ts'

type NotificationContext = Pick<Context, 'config' | 'encryption'>

/**
 * Handles the refund notifications of a transaction, once each. A notification changes a refund of ours only if
 * its hash verified and merchant, payment, request id and amount are all ours: the hash joins values without
 * their names, so it does not prove which field a value belongs to. A verified success with another request id
 * is recorded as an external refund, for matching. Any other notification is only a hint to query.
 * The caller holds the rows of the transaction, its payments and its refunds.
 * @param locked gets the changed states of external refunds
 */
export async function handleNotifications(
  ctx: NotificationContext,
  tx: Tx,
  key: TransactionKey,
  { drafts, notifications, externalChanges }: LockedRefunds,
): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const one of notifications) {
    const own = drafts.find(({ now }) => now.refundId === one.requestId.toLowerCase())
    const finding = own && applyToOwn(ctx, own, one)
    if (finding) findings.push(finding)
    if (own) continue
    const external = await recordExternal(tx, key, one, readResult(one.code))
    externalChanges.push(...external.changes)
    findings.push(...external.findings)
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

function applyToOwn(
  ctx: NotificationContext,
  draft: RefundDraft,
  one: RefundNotification,
): Finding | undefined {
  const { refundId, paymentId, amount } = draft.now
  const same = namesRefund(one, draft.now)
  if (!one.verified || (same ? one.handledBefore : one.reading > 1)) return undefined
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
  if (result === undefined) {
    const reason = `the gateway notified its request id (code ${one.code}), but it was not sent from here`
    if (isUnsent(draft.now)) sendToReview(draft, 'no_evidence', { reason, ipnEventId: one.id })
    return undefined
  }
  const details = readDetails(ctx, draft.now, one)
  const apply = result === 'success' ? applySuccessNotification : applyFailureNotification
  const disagreement = apply(draft, { ...one, ...details, code: one.code ?? '' })
  return disagreement && { ...disagreement, paymentId, refundId }
}

/** The fee, the gateway's words and its reference, of which an undocumented reading is believed the words. */
function readDetails(
  { config, encryption }: NotificationContext,
  { receiver, refundId }: RefundRow,
  { body, documented }: RefundNotification,
): RefundDetails {
  const details = readRefundDetails(body ?? '', config.GATEWAY_FIELD_PREFIX)
  const known = receiver && decryptReceiver(encryption, receiver, 'receiver', refundId)
  const message = known
    ? details.message?.replaceAll(known.accountNumber, () => maskAccount(known.accountNumber))
    : details.message
  return documented ? { ...details, message } : { message, fee: undefined, reference: undefined }
}

/** Whether request id (a UUID, in whatever case), payment and amount of a notification are those of the refund. */
export function namesRefund(one: RefundNotification, own: RefundRow): boolean {
  return (
    one.requestId.toLowerCase() === own.refundId &&
    one.paymentId === own.paymentId &&
    one.amount !== null &&
    compareAmounts(one.amount, own.amount) === 0
  )
}

/** What a notification's code means; undefined for none, an open one, and one that no gateway writes. */
export function readResult(code: string | null): 'success' | 'failure' | undefined {
  if (code === null || !isResultCode(code) || isOpenCode(code)) return undefined
  return code === '0' ? 'success' : 'failure'
}
