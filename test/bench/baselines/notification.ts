import { createHash, timingSafeEqual } from 'node:crypto'

type Params = Record<string, unknown>

/** `svc_SecureHash`: SHA-256 over the values, sorted by their names and joined, and the secret. */
export function sign(params: Params, secret: string, exclude: readonly string[] = []): string {
  const values = Object.keys(params)
    .filter((name) => name.startsWith('svc_') && name !== 'svc_SecureHash')
    .filter((name) => !exclude.includes(name))
    .sort()
    .map((name) => params[name])
    .join('')
  return createHash('sha256').update(values).update(secret).digest('hex')
}

/** Whether the parameters carry the hash that `sign` computes, compared in constant time. */
export function isSigned(params: Params, secret: string): boolean {
  const given = Buffer.from(String(params.svc_SecureHash), 'hex')
  const expected = Buffer.from(sign(params, secret), 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}

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
