import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../errors.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { lockCaps } from '../request/caps.ts'
import { refuseReceiver } from '../request/check-receiver.ts'
import { type RefundTarget, type ReplayColumns, readReplay } from '../request/find-target.ts'
import { formatSurplusParams } from '../request/idempotency.ts'
import { draftIntent, runAndRollBack, summarise } from '../request/preview-refund.ts'
import { acceptRefund } from '../request/request-refund.ts'
import { refuseUnsendable, storeWithCaps } from '../request/store-intent.ts'
import type { RefundIntent, RequestedRefund, RequestParams } from '../request/types.ts'
import { choosePayment } from './choose-payment.ts'

/** The transaction of a surplus refund, and the refund that the idempotency key already belongs to, if any. */
export type SurplusTarget = Omit<RefundTarget, 'paymentId'>

/**
 * Finds the transaction and the refund of the idempotency key, before anything else is checked.
 * @param merchants the accounts the caller may use
 * @throws DomainError `transaction_not_found`, `ambiguous_merchant`
 */
export async function findSurplusTarget(
  { sql }: { sql: Tx },
  merchants: readonly string[],
  transactionId: string,
  idempotencyKey: string,
): Promise<SurplusTarget> {
  const [row, second] = await sql<(Omit<SurplusTarget, 'replay'> & ReplayColumns)[]>`
    select t.merchant_code as "merchantCode", t.transaction_id as "transactionId",
      r.refund_id as "refundId", r.fingerprint as value, r.fingerprint_key_id as "keyId"
    from (
      select merchant_code, ${transactionId}::text as transaction_id, ${idempotencyKey}::text as idempotency_key
      from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
    ) as k cross join lateral (
      select merchant_code, transaction_id from transactions as t
      where ${sql.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'k'))} limit 1
    ) as t left join lateral (
      select * from refunds as r
      where ${sql.unsafe(byKey('r', ['merchant_code', 'idempotency_key'], 'k'))} limit 1) as r on true`
  if (!row) throw new DomainError('transaction_not_found', `No transaction ${transactionId}`)
  if (second) {
    const detail = `Several merchant accounts have a transaction ${transactionId}; select one with ?merchantCode=`
    throw new DomainError('ambiguous_merchant', detail)
  }
  const { merchantCode } = row
  return { merchantCode, transactionId: row.transactionId, replay: readReplay(row) }
}

/** A request to refund what was paid for an order beyond one success. */
export type SurplusParams = RequestParams & { transactionId: string }

/**
 * Accepts a refund of what was paid beyond one success of the transaction's order, as `requestRefund` does for a payment.
 * @param merchants the accounts the caller may use
 * @throws DomainError when the refund is refused; nothing is stored then
 */
export async function requestSurplusRefund(
  ctx: Context,
  access: Access,
  merchants: readonly string[],
  idempotencyKey: string,
  params: SurplusParams,
): Promise<RequestedRefund> {
  const { transactionId } = params
  return await acceptRefund<SurplusTarget>(ctx, idempotencyKey, {
    asked: formatSurplusParams(transactionId, params),
    find: (sql) => findSurplusTarget({ sql }, merchants, transactionId, idempotencyKey),
    store: (tx, target, intent) => storeSurplus(ctx, tx, { access, target, params, intent }),
  })
}

/**
 * Computes what a surplus refund would do, by storing its intent and rolling back.
 * @param merchants the accounts the caller may use
 * @throws DomainError the refusal the refund would get
 */
export async function previewSurplusRefund(
  ctx: Pick<Context, 'config' | 'encryption' | 'sql'>,
  access: Access,
  merchants: readonly string[],
  params: SurplusParams,
) {
  const intent = draftIntent()
  const { transactionId } = params
  const target = await findSurplusTarget(ctx, merchants, transactionId, intent.refundId)
  return summarise(
    await runAndRollBack(ctx, (tx) => storeSurplus(ctx, tx, { access, target, params, intent })),
  )
}

type SurplusToStore = {
  access: Access
  target: SurplusTarget
  params: SurplusParams
  intent: RefundIntent
}

/** Locks in order: the key's day, the transactions of the order, the payment. */
async function storeSurplus(
  ctx: Pick<Context, 'config' | 'encryption' | 'sql'>,
  tx: Tx,
  { access, target, params, intent }: SurplusToStore,
) {
  refuseUnsendable(ctx, target.merchantCode)
  refuseReceiver(ctx.config, params.receiver)
  const caps = await lockCaps(tx, access, ctx.config)
  const { paymentId, amount, surplus } = await choosePayment(tx, target, params, intent.refundId)
  const toStore = {
    access,
    target: { ...target, paymentId },
    // The order's version was compared, which is not that of the one transaction.
    params: { ...params, paymentId, amount, expectedVersion: undefined },
    intent,
    surplus,
  }
  const stored = await storeWithCaps(ctx, tx, toStore, caps)
  return { ...stored, paymentId, surplus }
}
