import { setTimeout as pause } from 'node:timers/promises'
import { Agent, fetch } from 'undici'
import { z } from 'zod'
import { type AskedRefund, nameIn, nameRefundOf } from '../audit/ledgers.ts'
import { keyOf } from './accounts.ts'
import type { RefundWish } from './wishes.ts'

/** When a request was sent first and when it was answered (ms since the epoch). */
type Times = { beganMs: number; atMs: number }

/** What order systems were told. Everything is named within its account. */
export type OrderLog = {
  asked: (AskedRefund & { atMs: number })[]
  /** Every 202 response, those to repeated requests included. */
  refunds: (AskedRefund & Times)[]
  /** Transactions whose `POST …/sync` was answered with 202. */
  synced: ({ transactionId: string } & Times)[]
  /** Requests that were refused until their order system gave up. */
  refused: (AskedRefund & { code: string })[]
  /** Responses that no outage explains. */
  refusals: string[]
}

/** Order systems that request correctly: one key for each refund, repeated until 202. */
export type OrderSystem = {
  log: OrderLog
  /** Resolves with the refund's id, or with undefined when it was refused or time is up. */
  request(wish: RefundWish, transactionId: string): Promise<string | undefined>
  /** Resolves when the refund has ended or waits for a person. */
  untilEnded(merchantCode: string, refundId: string): Promise<void>
  /** Resolves with whether the service shows the payment, before time is up. */
  untilShown(merchantCode: string, paymentId: string, transactionId: string): Promise<boolean>
  /** Requests a sync until it is accepted. */
  sync(merchantCode: string, transactionId: string): Promise<void>
  /** Ends the waiting for ends of refunds: some wait for a person. */
  hurry(): void
  /** Ends all waiting. */
  giveUp(): void
}

type Asked = { headers?: Record<string, string>; body?: string }

const Answer = z.object({
  id: z.string().optional(),
  status: z.string().optional(),
  code: z.string().optional(),
})
/** Refusals that are retried: they may be temporary. */
const PASSING = ['payment_not_found', 'exceeds_refundable', 'payment_not_refundable']
/** After so many in a row they are not. */
const REFUSALS = 60
const ENDS = ['succeeded', 'failed', 'needs_review']
const RETRY_MS = 200
const SYNC_EVERY = 15
/** Connections of all order systems together: without a limit, each outage would open one for every request that waits. */
const CONNECTIONS = 64

/** After this time an order system takes no answer any more (ms). */
export const TIMEOUT_MS = 8_000

/** @param apiUrl the address that order systems use, through the proxies */
export function startOrderSystem(apiUrl: string): OrderSystem {
  const log: OrderLog = { asked: [], refunds: [], synced: [], refused: [], refusals: [] }
  const dispatcher = new Agent({ connections: CONNECTIONS })
  let waiting = true
  let hurrying = false

  async function ask(account: string, method: string, path: string, more: Asked = {}) {
    try {
      const response = await fetch(apiUrl + path, {
        ...more,
        method,
        headers: { authorization: `Bearer ${keyOf(account)}`, ...more.headers },
        signal: AbortSignal.timeout(TIMEOUT_MS),
        dispatcher,
      })
      return { status: response.status, body: Answer.parse(await response.json()) }
    } catch {
      return undefined
    }
  }
  async function syncOnce(account: string, transactionId: string): Promise<boolean> {
    const beganMs = Date.now()
    const asked = await ask(account, 'POST', `/v1/transactions/${transactionId}/sync`)
    if (asked?.status !== 202) return false
    const named = nameIn(account, transactionId)
    log.synced.push({ transactionId: named, beganMs, atMs: Date.now() })
    return true
  }
  /** Its notification may be lost for good: an order system can request a sync by id. */
  async function retryLater(attempt: number, account: string, transactionId: string) {
    if (attempt % SYNC_EVERY === 0) await syncOnce(account, transactionId)
    await pause(RETRY_MS)
  }
  async function request(wish: RefundWish, transactionId: string): Promise<string | undefined> {
    const { merchantCode: account, amount, receiver } = wish
    const refund = describe(wish)
    const headers = { 'content-type': 'application/json', 'idempotency-key': wish.key }
    const body = JSON.stringify(receiver ? { amount, receiver } : { amount })
    const path = `/v1/payments/${wish.paymentId}/refunds`
    if (!log.asked.some(({ key }) => key === refund.key)) {
      log.asked.push({ ...refund, atMs: Date.now() })
    }
    let refusals = 0
    let code = ''
    const stopAsking = () => void log.refused.push({ ...refund, code })
    for (let attempt = 1; waiting; attempt += 1) {
      const beganMs = Date.now()
      const answer = await ask(account, 'POST', path, { headers, body })
      if (answer?.status === 202 && answer.body.id !== undefined) {
        const refundId = nameIn(account, answer.body.id)
        log.refunds.push({ ...refund, refundId, beganMs, atMs: Date.now() })
        return answer.body.id
      }
      const isRefused = answer !== undefined && answer.status < 500 && answer.status !== 429
      if (isRefused) code = answer.body.code ?? ''
      if (isRefused && !PASSING.includes(code)) {
        log.refusals.push(`${refund.key}: ${answer.status} ${code}`)
        return undefined
      }
      if (wish.isTooMuch && code === 'exceeds_refundable') return undefined
      // An attempt without an answer shows nothing.
      if (isRefused) refusals = code === 'exceeds_refundable' ? refusals + 1 : 0
      if (refusals > REFUSALS) {
        stopAsking()
        return undefined
      }
      await retryLater(attempt, account, transactionId)
    }
    // Of a payment that is refunded whole the refusal has this code, as when a refund of all of it was lost by the set-back.
    if (refusals > 0 || code === 'payment_not_refundable') stopAsking()
    return undefined
  }
  return {
    log,
    request,
    async untilEnded(account, refundId) {
      while (waiting && !hurrying) {
        const answer = await ask(account, 'GET', `/v1/refunds/${refundId}`)
        if (ENDS.includes(answer?.body.status ?? '')) return
        await pause(2 * RETRY_MS)
      }
    },
    async untilShown(account, paymentId, transactionId) {
      for (let attempt = 1; waiting; attempt += 1) {
        const answer = await ask(account, 'GET', `/v1/payments/${paymentId}`)
        if (answer?.status === 200) return true
        await retryLater(attempt, account, transactionId)
      }
      return false
    },
    async sync(account, transactionId) {
      while (waiting && !(await syncOnce(account, transactionId))) await pause(RETRY_MS)
    },
    hurry() {
      hurrying = true
    },
    giveUp() {
      waiting = false
    },
  }
}

function describe({ merchantCode, key, paymentId, amount }: RefundWish): AskedRefund {
  const named = nameIn(merchantCode, key)
  const refundId = nameRefundOf(named)
  return { key: named, refundId, paymentId: nameIn(merchantCode, paymentId), amount }
}
