import { z } from 'zod'

const Movements = z.object({
  data: z.array(z.object({ requestId: z.string(), paymentId: z.string(), amount: z.string() })),
})
const Deliveries = z.object({
  data: z.array(z.object({ outcome: z.string(), rawBodySha256: z.string().optional() })),
})

export type Movement = z.infer<typeof Movements>['data'][number]

/** The control routes of the sandbox gateway, which runs as a process of its own and loses nothing. */
export type Gateway = {
  /** Makes a paid transaction and sends its notification. */
  pay(transactionId: string, paymentId: string, amount: string): Promise<void>
  /** Every movement of money. */
  readLedger(): Promise<Movement[]>
  /** The SHA-256 of every notification that the service acknowledged. */
  readAcknowledged(): Promise<Set<string>>
}

/** Refunds are executed a moment after they were accepted, whatever is left of the payment. */
const REFUND_MODE = { guardsBalance: false, settleMs: 300 }

export async function controlGateway(url: string): Promise<Gateway> {
  async function call(method: string, path: string, body?: object): Promise<unknown> {
    const response = await fetch(`${url}/sandbox${path}`, {
      method,
      // One kept alive may be closed by the gateway in the moment in which it is used again.
      headers: { connection: 'close', 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  await call('PUT', '/refund-mode', REFUND_MODE)
  return {
    async pay(transactionId, id, amount) {
      const payments = [{ id, amount, paymentMethod: 'CC', status: 'SUCCESS' }]
      await call('POST', '/transactions', { transactionId, payments, ipn: { copies: 1 } })
    },
    async readLedger() {
      return Movements.parse(await call('GET', '/ledger')).data
    },
    async readAcknowledged() {
      const { data } = Deliveries.parse(await call('GET', '/calls?command=ipn'))
      const taken = data.filter(({ outcome }) => outcome === 'acknowledged')
      return new Set(taken.flatMap(({ rawBodySha256 }) => rawBodySha256 ?? []))
    },
  }
}
