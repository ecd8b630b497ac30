import { listHashExclusions } from '../gateway/message-kinds.ts'
import { parseFormParams, parseJsonParams } from '../gateway/parse-params.ts'
import { type Notification, readNotification } from '../gateway/read-notification.ts'
import { verifySecureHash } from '../gateway/signature.ts'
import type { SpanOptions } from '../platform/telemetry/tracing.ts'
import type { IpnContext } from './context.ts'
import { readSigned } from './read-signed.ts'
import { RecutError } from './store-readings.ts'
import type { IpnRequest } from './types.ts'

/** `stored` means committed. With every other verdict nothing was stored and nothing queued. */
export type Receipt =
  | { verdict: 'stored' }
  | { verdict: 'malformed' | 'unknown_merchant' | 'bad_signature' | 'recut'; why: string }

/**
 * Processes one notification: parses it, finds the account, checks the signature, stores it. Never waits for
 * the gateway.
 * @throws InboxFullError, and database errors: the gateway has to send the notification again
 */
export async function receiveNotification(
  { config, inbox, tracing }: Pick<IpnContext, 'config' | 'inbox' | 'tracing'>,
  request: IpnRequest,
): Promise<Receipt> {
  const { GATEWAY_FIELD_PREFIX: prefix, IPN_SIGNATURE: rule } = config
  const parsed =
    request.format === 'json' ? parseJsonParams(request.body) : parseFormParams(request.body)
  if ('problem' in parsed) return { verdict: 'malformed', why: parsed.problem }
  const { params } = parsed
  const notification = readNotification(params, prefix)
  if ('problem' in notification) return { verdict: 'malformed', why: notification.problem }

  const { merchantCode } = notification
  const accounts = config.accounts
  if (merchantCode === undefined && accounts.length > 1) {
    return { verdict: 'malformed', why: `${prefix}_MerchantCode is missing` }
  }
  const account = accounts.find(
    (one) => one.merchantCode === (merchantCode ?? accounts[0].merchantCode),
  )
  if (!account) return { verdict: 'unknown_merchant', why: `unknown ${prefix}_MerchantCode` }

  const secrets = [account.secret, account.previousSecret].filter((one) => one !== undefined)
  const exclude = listHashExclusions(notification.kind === 'payment' ? 'ipn' : 'refund-ipn', {
    ipnHashExclude: config.IPN_HASH_EXCLUDE,
    refundHashExclude: config.GATEWAY_REFUND_HASH_EXCLUDE,
  })
  const signatureRule = { prefix, exclude }
  const verdict = verifySecureHash(params, secrets, signatureRule)
  if (rule !== 'off' && verdict !== 'verified' && !(rule === 'optional' && verdict === 'missing')) {
    return { verdict: 'bad_signature', why: `${prefix}_SecureHash is ${verdict}` }
  }

  const store = () =>
    inbox.store({
      merchantCode: account.merchantCode,
      ...readSigned(params, {
        merchantCode: account.merchantCode,
        kind: notification.kind,
        verdict,
        rule: signatureRule,
        known: config.IPN_KNOWN_MEMBERS,
        body: request.body,
      }),
      notification,
      verdict,
      body: request.body,
      contentType: request.contentType,
      address: request.address,
      headers: request.headers,
      traceParent: tracing.traceParent(),
    })
  try {
    await tracing.run(() => describeStoring(account.merchantCode, notification), store)
  } catch (error) {
    if (error instanceof RecutError) return { verdict: 'recut', why: error.message }
    throw error
  }
  return { verdict: 'stored' }
}

/** The span that stores a notification: the query that follows continues its trace. */
function describeStoring(merchantCode: string, notification: Notification): SpanOptions {
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
