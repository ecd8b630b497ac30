import { z } from 'zod'

const Payment = z.object({
  id: z.string(),
  transactionId: z.string(),
  status: z.string(),
  amount: z.string(),
  refundedAmount: z.string(),
})
const Movement = z.object({ requestId: z.string(), paymentId: z.string(), amount: z.string() })
/** One entry of the journal: a call, or an attempt to deliver a notification. */
const Entry = z.object({
  outcome: z.string(),
  attempt: z.number().optional(),
  workCode: z.number().nullish(),
  transactionId: z.string().nullish(),
  requestId: z.string().nullish(),
  rawBodySha256: z.string().optional(),
})

export type GatewayPayment = z.infer<typeof Payment>
export type Movement = z.infer<typeof Movement>
export type JournalEntry = z.infer<typeof Entry>

/** The control routes of a sandbox gateway that runs as a process of its own. */
export type GatewayControl = {
  send(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<void>
  readPayments(transactionId: string): Promise<GatewayPayment[]>
  readLedger(): Promise<Movement[]>
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
    async readPayments(transactionId) {
      const found = await call('GET', `/transactions/${transactionId}`)
      return z.object({ payments: z.array(Payment) }).parse(found).payments
    },
    async readLedger() {
      return z.object({ data: z.array(Movement) }).parse(await call('GET', '/ledger')).data
    },
    async readJournal(command) {
      const found = await call('GET', `/calls?command=${command}`)
      return z.object({ data: z.array(Entry) }).parse(found).data
    },
  }
}
