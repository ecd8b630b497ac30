import type { Tx } from '../db/client.ts'
import { isOpenCode } from '../gateway/codes.ts'
import { selectRefundNotifications } from '../ipn/refund-notifications.ts'
import { compareAmounts } from '../money.ts'
import type { TransactionKey } from '../payments/apply.ts'
import type { RefundWork } from './rows.ts'
import { type Disagreement, takeFailure, takeSuccess } from './transitions.ts'

/** A refund's notification that nobody acted on yet. */
export type RefundNotification = {
  id: number
  requestId: string
  paymentId: string | null
  amount: string | null
  code: string | null
  verified: boolean
  receivedAt: string
  /** It was received before the snapshot at hand was asked for. */
  beforeSnapshot: boolean
}

export type Finding = Disagreement & { paymentId: string; refundId?: string }

/**
 * Acts on the refund notifications that concern a transaction, once each. One may settle a refund of
 * ours only if its hash verified and merchant, payment, request id and amount are all ours: the hash
 * joins values without names, so alone it does not prove which field said what. A verified success with
 * a foreign request id becomes a row that explains growth. Anything else was a hint to ask, no more.
 * The caller holds the rows of the transaction, its payments and its refunds.
 * @param notifications from `readUnhandled`
 */
export async function takeNotifications(
  tx: Tx,
  key: TransactionKey,
  works: readonly RefundWork[],
  notifications: readonly RefundNotification[],
): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const one of notifications) {
    const own = works.find(({ now }) => now.refundId === one.requestId.toLowerCase())
    const finding = own ? takeOwn(own, one) : await takeForeign(tx, key, one)
    if (finding) findings.push(finding)
  }
  if (notifications.length === 0) return findings
  await tx`
    update ipn_events set handled_at = now()
    where merchant_code = ${key.merchantCode} and id = any(${notifications.map(({ id }) => id)}::bigint[])`
  return findings
}

/**
 * The refund notifications that concern a transaction and that nobody acted on, oldest first.
 * @param asOf when the snapshot at hand was sent, if there is one
 */
export async function readUnhandled(
  tx: Tx,
  key: TransactionKey,
  asOf: string | null,
): Promise<RefundNotification[]> {
  return await tx<RefundNotification[]>`
    select e.id, e.request_id as "requestId", e.payment_id as "paymentId", e.amount, e.code,
      e.verdict = 'verified' as verified, e.first_received_at::text as "receivedAt",
      coalesce(e.first_received_at < ${asOf}::timestamptz, false) as "beforeSnapshot"
    from (${selectRefundNotifications(tx, key)}) as e
    where e.handled_at is null
    order by e.id`
}

function takeOwn(work: RefundWork, one: RefundNotification): Finding | undefined {
  const { refundId, paymentId, amount } = work.now
  const same =
    one.requestId === refundId &&
    one.paymentId === paymentId &&
    one.amount !== null &&
    compareAmounts(one.amount, amount) === 0
  if (!one.verified) return undefined
  if (!same) {
    return {
      kind: 'notification_mismatch',
      ours: `request ${refundId}, payment ${paymentId}, amount ${amount}`,
      theirs: `request ${one.requestId}, payment ${one.paymentId}, amount ${one.amount}`,
      paymentId,
      refundId,
    }
  }
  const end = readEnd(one.code)
  const disagreement =
    end === 'success'
      ? takeSuccess(work, one.id)
      : end === 'failure'
        ? takeFailure(work, one.id, {
            code: one.code ?? '',
            at: one.receivedAt,
            beforeSnapshot: one.beforeSnapshot,
          })
        : undefined
  return disagreement && { ...disagreement, paymentId, refundId }
}

/** One that came before the payment was first seen, with its amount refunded by then, explains no growth. */
async function takeForeign(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  { id, requestId, paymentId, amount, code, verified, receivedAt }: RefundNotification,
): Promise<undefined> {
  if (!verified || readEnd(code) !== 'success' || paymentId === null || amount === null) return
  if (compareAmounts(amount, '0') === 0) return
  await tx`
    insert into foreign_refunds (merchant_code, request_id, payment_id, amount, ipn_event_id)
    select merchant_code, ${requestId}, payment_id, ${amount}, ${id} from payments
    where merchant_code = ${merchantCode} and payment_id = ${paymentId} and transaction_id = ${transactionId}
      and not (${receivedAt}::timestamptz < first_seen_at and refunded_at_first >= ${amount})
    on conflict do nothing`
}

/** A code that is no plain whole number is no end either: `05` may be a `0` cut elsewhere. */
function readEnd(code: string | null): 'success' | 'failure' | undefined {
  if (code === null || !/^(0|-?[1-9]\d{0,8})$/.test(code) || isOpenCode(code)) return undefined
  return code === '0' ? 'success' : 'failure'
}
