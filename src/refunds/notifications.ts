import type { Tx } from '../db/client.ts'
import { compareAmounts } from '../money.ts'
import type { TransactionKey } from '../payments/apply.ts'
import type { RefundWork } from './rows.ts'
import { type Disagreement, takeFailure, takeSuccess } from './transitions.ts'

/** A refund's notification that nobody acted on yet. */
type RefundNotification = {
  id: number
  requestId: string
  paymentId: string | null
  amount: string | null
  code: string | null
  verified: boolean
  receivedAt: string
  /** The request id is one of ours, in whatever transaction. */
  ours: boolean
}

export type Finding = Disagreement & { paymentId: string; refundId?: string }

/**
 * Acts on the refund notifications that concern a transaction, once each. One may settle a refund of
 * ours only if its hash verified and merchant, payment, request id and amount are all ours: the hash
 * joins values without names, so alone it does not prove which field said what. A verified success with
 * a foreign request id becomes a row that explains growth. Anything else was a hint to ask, no more.
 * The caller holds the rows of the transaction, its payments and its refunds.
 */
export async function takeNotifications(
  tx: Tx,
  key: TransactionKey,
  works: readonly RefundWork[],
): Promise<Finding[]> {
  const notifications = await readUnhandled(tx, key)
  const findings: Finding[] = []
  for (const one of notifications) {
    const own = works.find(({ now }) => now.refundId === one.requestId)
    const finding = own ? takeOwn(own, one) : await takeForeign(tx, key, one)
    if (finding) findings.push(finding)
  }
  await tx`
    update ipn_events set handled_at = now()
    where merchant_code = ${key.merchantCode} and id = any(${notifications.map(({ id }) => id)}::bigint[])`
  return findings
}

async function readUnhandled(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<RefundNotification[]> {
  return await tx<RefundNotification[]>`
    select e.id, e.request_id as "requestId", e.payment_id as "paymentId", e.amount, e.code,
      e.verdict = 'verified' as verified, e.first_received_at::text as "receivedAt",
      case when e.request_id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then exists (
        select 1 from refunds r
        where r.merchant_code = e.merchant_code and r.refund_id = e.request_id::uuid) else false end as ours
    from ipn_events e
    where e.merchant_code = ${merchantCode} and e.kind = 'refund' and e.handled_at is null and (
      e.payment_id in (select p.payment_id from payments p
        where p.merchant_code = ${merchantCode} and p.transaction_id = ${transactionId})
      or e.request_id in (select r.refund_id::text from refunds r
        where r.merchant_code = ${merchantCode} and r.transaction_id = ${transactionId}))
    order by e.id`
}

function takeOwn(work: RefundWork, one: RefundNotification): Finding | undefined {
  const { refundId, paymentId, amount } = work.now
  const same =
    one.paymentId === paymentId && one.amount !== null && compareAmounts(one.amount, amount) === 0
  if (!one.verified) return undefined
  if (!same) {
    return {
      kind: 'notification_mismatch',
      ours: `payment ${paymentId}, amount ${amount}`,
      theirs: `payment ${one.paymentId}, amount ${one.amount}`,
      paymentId,
      refundId,
    }
  }
  const end = readEnd(one.code)
  const disagreement =
    end === 'success'
      ? takeSuccess(work, one.id)
      : end === 'failure'
        ? takeFailure(work, one.id, { code: one.code ?? '', at: one.receivedAt })
        : undefined
  return disagreement && { ...disagreement, paymentId, refundId }
}

async function takeForeign(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  { id, requestId, paymentId, amount, code, verified, ours }: RefundNotification,
): Promise<undefined> {
  if (!verified || ours || readEnd(code) !== 'success' || paymentId === null || amount === null)
    return
  if (compareAmounts(amount, '0') === 0) return
  await tx`
    insert into foreign_refunds (merchant_code, request_id, payment_id, amount, ipn_event_id)
    select merchant_code, ${requestId}, payment_id, ${amount}, ${id} from payments
    where merchant_code = ${merchantCode} and payment_id = ${paymentId} and transaction_id = ${transactionId}
    on conflict do nothing`
}

/** Codes 9 and 99 are no end, and neither is one that cannot be read. */
function readEnd(code: string | null): 'success' | 'failure' | undefined {
  if (code === null || !/^-?\d{1,9}$/.test(code) || code === '9' || code === '99') return undefined
  return Number(code) === 0 ? 'success' : 'failure'
}
