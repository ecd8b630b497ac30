import { z } from 'zod'
import type { Movement, PaymentFacts } from '../audit/ledgers.ts'
import { nameIn } from '../audit/ledgers.ts'

const Payment = z.object({
  id: z.string(),
  transactionId: z.string(),
  status: z.string(),
  amount: z.string(),
  refundedAmount: z.string(),
})
const MovedMoney = z.object({
  requestId: z.string(),
  paymentId: z.string(),
  merchantCode: z.string(),
  amount: z.string(),
  at: z.iso.datetime(),
})
/** One entry of the journal: a call, or an attempt to deliver a notification. */
const Entry = z.object({
  at: z.iso.datetime(),
  outcome: z.string(),
  merchantCode: z.string().nullish(),
  attempt: z.number().optional(),
  workCode: z.number().nullish(),
  transactionId: z.string().nullish(),
  requestId: z.string().nullish(),
  rawBodySha256: z.string().optional(),
})
const Opened = z.object({ requestId: z.string() })

export type JournalEntry = z.infer<typeof Entry>
/** What an object of an account is named by at the gateway. */
export type OwnId = { merchantCode: string; id: string }

type Method = 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The control routes of a sandbox gateway that runs as a process of its own. */
export type GatewayControl = {
  send(method: Method, path: string, body?: object): Promise<void>
  /** Changes a payment. */
  change(payment: OwnId, members: object, options?: { notified: boolean }): Promise<void>
  /** What has been refunded of a payment, by the gateway's own account. */
  readRefunded(payment: OwnId): Promise<string>
  /** Sends the notification of a transaction. */
  notify(transaction: OwnId, plan: object): Promise<void>
  /** Refunds a payment as on the gateway's portal; returns the request id. */
  refundAtPortal(payment: OwnId, body: object): Promise<string>
  /** The payments of a transaction, and all movements of money, named within their accounts. */
  readPayments(transaction: OwnId): Promise<PaymentFacts[]>
  readLedger(): Promise<(Movement & { atMs: number })[]>
  /** Calls received with that command, or notifications delivered, oldest first. */
  readJournal(command: 'REFUND' | 'ipn'): Promise<JournalEntry[]>
}

/** @param url the gateway itself, not its proxy: control is never disturbed */
export function controlGateway(url: string): GatewayControl {
  async function call(method: string, path: string, body?: object): Promise<unknown> {
    const response = await fetch(`${url}/sandbox${path}`, {
      method,
      // One kept alive may be closed by the gateway in the moment in which it is used again.
      headers: { connection: 'close' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  return {
    async send(method, path, body) {
      await call(method, path, body)
    },
    async change({ merchantCode, id }, members, { notified } = { notified: false }) {
      const query = `merchantCode=${merchantCode}${notified ? '&ipn=true' : ''}`
      await call('PATCH', `/payments/${id}?${query}`, members)
    },
    async readRefunded({ merchantCode, id }) {
      const found = await call('PATCH', `/payments/${id}?merchantCode=${merchantCode}`, {})
      return Payment.parse(found).refundedAmount
    },
    async notify({ merchantCode, id }, plan) {
      await call('POST', `/transactions/${id}/ipn?merchantCode=${merchantCode}`, plan)
    },
    async refundAtPortal({ merchantCode, id }, body) {
      const path = `/payments/${id}/portal-refund?merchantCode=${merchantCode}`
      return Opened.parse(await call('POST', path, body)).requestId
    },
    async readPayments({ merchantCode, id }) {
      const found = await call('GET', `/transactions/${id}?merchantCode=${merchantCode}`)
      const { payments } = z.object({ payments: z.array(Payment) }).parse(found)
      return payments.map((payment) => ({
        ...payment,
        id: nameIn(merchantCode, payment.id),
        transactionId: nameIn(merchantCode, payment.transactionId),
      }))
    },
    async readLedger() {
      const found = z.object({ data: z.array(MovedMoney) }).parse(await call('GET', '/ledger'))
      return found.data.map(({ merchantCode, requestId, paymentId, amount, at }) => ({
        requestId: nameIn(merchantCode, requestId),
        paymentId: nameIn(merchantCode, paymentId),
        amount,
        atMs: Date.parse(at),
      }))
    },
    async readJournal(command) {
      const found = await call('GET', `/calls?command=${command}`)
      return z.object({ data: z.array(Entry) }).parse(found).data
    },
  }
}
