import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import type { GatewayControl } from './gateway.ts'
import { planWish, type RefundWish, type Wish } from './wishes.ts'

/** A refund request that was answered with 202. */
export type AcknowledgedRefund = {
  key: string
  refundId: string
  paymentId: string
  amount: string
}

export type Load = {
  /** Transactions created at the gateway, in order. */
  transactionIds: string[]
  /** Every 202 response, those to repeated requests included. */
  refunds: AcknowledgedRefund[]
  /** Transactions whose `POST …/sync` was answered with 202. */
  synced: string[]
  /** Responses that no outage explains. */
  refusals: string[]
  /** Stops new customers; resolves when every order system has its responses or has given up. */
  finish(withinMs: number): Promise<void>
}

export type LoadOptions = {
  seed: number
  /** New transactions per second. */
  perS: number
  gateway: GatewayControl
  /** The address that order systems use, through the proxies. */
  apiUrl: string
  key: string
}

const Answer = z.object({
  id: z.string().optional(),
  status: z.string().optional(),
  code: z.string().optional(),
})
/** Refusals that are retried: they may be temporary. */
const PASSING = ['payment_not_found', 'exceeds_refundable', 'payment_not_refundable']
const ENDS = ['succeeded', 'failed', 'needs_review']
const RETRY_MS = 200
const SYNC_EVERY = 15

/** Plays customers who pay, and order systems that refund correctly: one key for each refund, retried until 202. */
export function startLoad({ seed, perS, gateway, apiUrl, key }: LoadOptions): Load {
  const state: Omit<Load, 'finish'> = { transactionIds: [], refunds: [], synced: [], refusals: [] }
  const actors = new Set<Promise<void>>()
  let coming = true
  let waiting = true

  async function ask(method: string, path: string, headers: Record<string, string>, body?: string) {
    try {
      const response = await fetch(apiUrl + path, {
        method,
        headers: { authorization: `Bearer ${key}`, ...headers },
        signal: AbortSignal.timeout(8_000),
        ...(body === undefined ? {} : { body }),
      })
      return { status: response.status, body: Answer.parse(await response.json()) }
    } catch {
      return undefined
    }
  }

  async function requestOnce({ key: idempotencyKey, paymentId, amount, receiver }: RefundWish) {
    const headers = { 'content-type': 'application/json', 'idempotency-key': idempotencyKey }
    const body = JSON.stringify(receiver ? { amount, receiver } : { amount })
    return await ask('POST', `/v1/payments/${paymentId}/refunds`, headers, body)
  }

  /** Resolves with the refund's id, or with undefined when it was refused or time is up. */
  async function requestUntilTaken(wish: RefundWish, transactionId: string) {
    for (let attempt = 1; waiting; attempt += 1) {
      const answer = await requestOnce(wish)
      if (answer?.status === 202 && answer.body.id !== undefined) {
        const { key: idempotencyKey, paymentId, amount } = wish
        state.refunds.push({ key: idempotencyKey, refundId: answer.body.id, paymentId, amount })
        return answer.body.id
      }
      const code = answer?.body.code ?? ''
      if (answer && answer.status < 500 && answer.status !== 429 && !PASSING.includes(code)) {
        state.refusals.push(`${wish.key}: ${answer.status} ${code}`)
        return undefined
      }
      // Its notification may be lost for good: an order system can request a sync by id.
      if (attempt % SYNC_EVERY === 0) {
        const asked = await ask('POST', `/v1/transactions/${transactionId}/sync`, {})
        if (asked?.status === 202) state.synced.push(transactionId)
      }
      await pause(RETRY_MS)
    }
    return undefined
  }

  async function refund(wish: RefundWish, transactionId: string, untilEnded: boolean) {
    const id = await requestUntilTaken(wish, transactionId)
    if (id === undefined) return
    if (wish.repeated) await requestUntilTaken(wish, transactionId)
    while (untilEnded && waiting) {
      const answer = await ask('GET', `/v1/refunds/${id}`, {})
      if (ENDS.includes(answer?.body.status ?? '')) return
      await pause(2 * RETRY_MS)
    }
  }

  async function live({ transactionId, payments, ipn, succeeds, refunds, atOnce }: Wish) {
    await gateway.send('POST', '/transactions', { transactionId, payments, ipn })
    state.transactionIds.push(transactionId)
    if (succeeds) {
      await pause(succeeds.afterMs)
      const path = `/payments/${payments.at(-1)?.id}${succeeds.notified ? '?ipn=true' : ''}`
      await gateway.send('PATCH', path, { status: 'SUCCESS' })
    }
    if (atOnce) {
      await Promise.all(refunds.map((wish) => refund(wish, transactionId, false)))
    } else {
      for (const wish of refunds) await refund(wish, transactionId, true)
    }
  }

  async function come() {
    for (let n = 0; coming; n += 1) {
      const actor = live(planWish(seed, n)).finally(() => actors.delete(actor))
      actors.add(actor)
      await pause(1_000 / perS)
    }
  }
  const source = come()
  return {
    ...state,
    async finish(withinMs) {
      coming = false
      await source
      const patience = setTimeout(() => {
        waiting = false
      }, withinMs)
      await Promise.all(actors)
      clearTimeout(patience)
    },
  }
}
