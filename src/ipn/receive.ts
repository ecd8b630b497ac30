import { createHash } from 'node:crypto'
import type { Context } from '../context.ts'
import { listExcluded } from '../gateway/kinds.ts'
import { verifySecureHash } from '../gateway/signature.ts'
import {
  type Notification,
  parseFormParams,
  parseJsonParams,
  readNotification,
} from '../gateway/translate.ts'
import type { StepPlan } from '../trace.ts'

export type Delivery = {
  format: 'json' | 'form'
  body: string
  contentType: string
  address: string
  headers: Record<string, string>
}

/** `stored` is said only after the commit; every other verdict stored nothing and queued nothing. */
export type Receipt =
  | { verdict: 'stored' }
  | { verdict: 'malformed' | 'unknown_merchant' | 'bad_signature'; why: string }

/**
 * Takes in one notification: reads it, finds the account, checks the signature, stores it.
 * Nothing here waits for the gateway.
 * @throws InboxFullError and database errors: the gateway has to send again
 */
export async function receiveNotification(ctx: Context, delivery: Delivery): Promise<Receipt> {
  const { GATEWAY_FIELD_PREFIX: prefix, IPN_SIGNATURE: rule } = ctx.config
  const parsed =
    delivery.format === 'json' ? parseJsonParams(delivery.body) : parseFormParams(delivery.body)
  if ('problem' in parsed) return { verdict: 'malformed', why: parsed.problem }
  const { params } = parsed
  const notification = readNotification(params, prefix)
  if ('problem' in notification) return { verdict: 'malformed', why: notification.problem }

  const { merchantCode } = notification
  const accounts = ctx.config.accounts
  if (merchantCode === undefined && accounts.length > 1) {
    return { verdict: 'malformed', why: `${prefix}_MerchantCode is missing` }
  }
  const account = accounts.find(
    (one) => one.merchantCode === (merchantCode ?? accounts[0].merchantCode),
  )
  if (!account) return { verdict: 'unknown_merchant', why: `unknown ${prefix}_MerchantCode` }

  const secrets = [account.secret, account.previousSecret].filter((one) => one !== undefined)
  const exclude = listExcluded(notification.kind === 'payment' ? 'ipn' : 'refund-ipn', {
    ipnHashExclude: ctx.config.IPN_HASH_EXCLUDE,
    refundHashExclude: ctx.config.GATEWAY_REFUND_HASH_EXCLUDE,
  })
  const verdict = verifySecureHash(params, secrets, { prefix, exclude })
  if (rule !== 'off' && verdict !== 'verified' && !(rule === 'optional' && verdict === 'missing')) {
    return { verdict: 'bad_signature', why: `${prefix}_SecureHash is ${verdict}` }
  }

  const store = () =>
    ctx.inbox.store({
      merchantCode: account.merchantCode,
      fingerprint: createHash('sha256')
        .update(`${account.merchantCode}\n`)
        .update(delivery.body)
        .digest(),
      notification,
      verdict,
      body: delivery.body,
      contentType: delivery.contentType,
      address: delivery.address,
      headers: delivery.headers,
      traceParent: ctx.tracing.traceParent(),
    })
  await ctx.tracing.run(() => describeStoring(account.merchantCode, notification), store)
  return { verdict: 'stored' }
}

/** The query it leads to goes on from here. */
function describeStoring(merchantCode: string, notification: Notification): StepPlan {
  const subject =
    notification.kind === 'payment'
      ? { 'ipn.transaction_id': notification.transactionId }
      : { 'ipn.refund_id': notification.requestId }
  return {
    name: 'store notification',
    kind: 'producer',
    attributes: { 'ipn.merchant_code': merchantCode, ...subject },
  }
}
