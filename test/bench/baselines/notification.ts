import { isSigned } from './signature.ts'

const SECRET = process.env.GATEWAY_SECRET ?? ''

/** What the baselines store of a notification. */
export type Notification = { transactionId: string; orderId: string; body: string }

/** Parses a notification; undefined if its hash is wrong. */
export function readNotification(body: string): Notification | undefined {
  const params: Record<string, unknown> = JSON.parse(body)
  if (!isSigned(params, SECRET)) return undefined
  return {
    transactionId: String(params.svc_TransactionID),
    orderId: String(params.svc_OrderID),
    body,
  }
}
