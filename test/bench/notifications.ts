import { createHmac } from 'node:crypto'
import { sign } from './baselines/notification.ts'

export const ACCOUNT = {
  merchantCode: 'BENCH',
  secret: 'bench-secret',
  apiKey: 'bench-key-with-every-scope-0123456789',
}
export const STRIPE_SECRET = 'whsec_bench'

const run = process.pid.toString(36).toUpperCase()
let serial = 0

/** A signed notification, as large as real ones are, about a transaction nobody has heard of. */
export function makeNotification(): { transactionId: string; body: string } {
  serial += 1
  const time = new Date().toISOString().replace(/\D/g, '').slice(2, 14)
  const transactionId = `${time}${run}X${serial}`
  const params = {
    svc_Amount: 20_000_000,
    svc_Command: 'PAY',
    svc_Currency: 'VND',
    svc_Locale: 'vi',
    svc_MerchantCode: ACCOUNT.merchantCode,
    svc_MerchantTxnID: `M${transactionId}`,
    svc_OrderID: `O${transactionId}`,
    svc_OrderInfo: 'An order of two shirts and a hat',
    svc_ResponseCode: 0,
    svc_ResponseMsg: 'Success',
    svc_TransactionID: transactionId,
    svc_Version: '1',
  }
  const hash = sign(params, ACCOUNT.secret)
  return { transactionId, body: JSON.stringify({ ...params, svc_SecureHash: hash }) }
}

/** A signed `payment_intent.succeeded` of Stripe, about a payment intent of its own. */
export function makeStripeEvent(): { body: string; headers: Record<string, string> } {
  serial += 1
  const created = Math.floor(Date.now() / 1000)
  const id = `${created}${run}X${serial}`
  const intent = {
    id: `pi_${id}`,
    object: 'payment_intent',
    amount: 20_000_000,
    amount_capturable: 0,
    amount_received: 20_000_000,
    capture_method: 'automatic',
    confirmation_method: 'automatic',
    created,
    currency: 'vnd',
    description: 'An order of two shirts and a hat',
    livemode: false,
    metadata: { order: `O${id}` },
    payment_method_types: ['card'],
    status: 'succeeded',
  }
  const body = JSON.stringify({
    id: `evt_${id}`,
    object: 'event',
    api_version: '2020-08-27',
    created,
    data: { object: intent },
    livemode: false,
    type: 'payment_intent.succeeded',
  })
  const signature = createHmac('sha256', STRIPE_SECRET).update(`${created}.${body}`).digest('hex')
  return { body, headers: { 'stripe-signature': `t=${created},v1=${signature}` } }
}
