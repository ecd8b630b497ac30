import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { RECEIVER } from '../../support/ask.ts'
import { ACCOUNT } from './stage.ts'

/** A customer's payment, and the refunds that an order system requests of it, each with a key of its own. */
export type Order = { transactionId: string; paymentId: string; refunds: RefundRequest[] }
export type RefundRequest = { key: string; paymentId: string; amount: string }
/** A refund request that was answered with 202. */
export type TakenRefund = RefundRequest & { refundId: string }

const AGAIN_MS = 100
const PATIENCE_MS = 60_000
/** An answer that comes later is of no use to an order system. */
const TIMEOUT_MS = 40_000
const Taken = z.object({ id: z.string() })
const Refusal = z.object({ code: z.string() })

/** Plans the order with this number: refunds of different amounts, together less than was paid. */
export function planOrder(n: number): Order {
  const paymentId = `FP${n}`
  const part = n % 240
  const refunds = [100 + part, 400 + part].map((amount, index) => ({
    key: `FK${n}-${index}`,
    paymentId,
    amount: String(amount),
  }))
  return { transactionId: `F${n}`, paymentId, refunds }
}

/** Calls the API; undefined when nothing was answered. */
export async function call(
  apiUrl: string,
  path: string,
  init: RequestInit = {},
): Promise<Response | undefined> {
  const headers = { authorization: `Bearer ${ACCOUNT.apiKey}`, ...init.headers }
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  return await fetch(apiUrl + path, { signal, ...init, headers }).catch(() => undefined)
}

export function requestRefund(
  apiUrl: string,
  { key, paymentId, amount }: RefundRequest,
): Promise<Response | undefined> {
  return call(apiUrl, `/v1/payments/${paymentId}/refunds`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ amount, receiver: RECEIVER }),
  })
}

/** Makes the transaction known and due: one commit. */
export async function requestSync(apiUrl: string, transactionId: string): Promise<boolean> {
  const path = `/v1/transactions/${transactionId}/sync`
  const answer = await call(apiUrl, path, { method: 'POST', signal: AbortSignal.timeout(2_000) })
  return answer?.status === 202
}

/**
 * Requests a refund with the same key until it is accepted. A payment that the service does not know may have been lost
 * with its notification.
 * @param isOver gives up once it returns true
 * @param waitsFor the code of a refusal that may pass; of any other an order system has to learn
 * @throws Error when the request is refused
 */
export async function requestUntilTaken(
  apiUrl: string,
  transactionId: string,
  request: RefundRequest,
  isOver: () => boolean,
  waitsFor?: string,
): Promise<TakenRefund | undefined> {
  for (let attempt = 1; !isOver(); attempt += 1) {
    const answer = await requestRefund(apiUrl, request)
    if (answer?.status === 202) {
      return { ...request, refundId: Taken.parse(await answer.json()).id }
    }
    // 429: the key may ask again in a moment.
    if (answer && ![404, 429].includes(answer.status) && answer.status < 500) {
      const refusal = await answer.text()
      const { code } = Refusal.parse(JSON.parse(refusal))
      if (code !== waitsFor) throw new Error(`${request.key}: ${answer.status} ${refusal}`)
    }
    if (answer?.status === 404 && attempt % 10 === 0) await requestSync(apiUrl, transactionId)
    await pause(AGAIN_MS)
  }
  return undefined
}

/** Writes until one write is acknowledged. Returns how long that took since then (s). */
export async function measureOutage(
  apiUrl: string,
  transactionId: string,
  since: number,
): Promise<number> {
  while (!(await requestSync(apiUrl, transactionId))) {
    if (performance.now() - since > PATIENCE_MS) throw new Error('the service did not come back')
    await pause(AGAIN_MS / 2)
  }
  return (performance.now() - since) / 1_000
}
