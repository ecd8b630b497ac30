import { computeSecureHash } from '../../src/gateway/signature.ts'

export const ACCOUNT = {
  merchantCode: 'BENCH',
  secret: 'bench-secret',
  apiKey: 'bench-key-with-every-scope-0123456789',
}

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
  const hash = computeSecureHash(params, ACCOUNT.secret, { prefix: 'svc', exclude: [] })
  return { transactionId, body: JSON.stringify({ ...params, svc_SecureHash: hash }) }
}
