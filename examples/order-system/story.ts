import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'

const Created = z.object({
  transactionId: z.string(),
  payments: z.tuple([z.object({ id: z.string() })]),
})

/**
 * Replace this with your gateway's checkout. The sandbox has none: this makes a payment in progress, and
 * the customer pays by changing its status.
 */
export function createCheckout(sandboxUrl: string) {
  return async (amount: string) => {
    const payments = [{ amount, paymentMethod: 'CC', status: 'PROCESSING' }]
    const response = await send('POST', `${sandboxUrl}/sandbox/transactions`, { amount, payments })
    if (!response.ok) throw new Error(`the gateway's checkout answered ${response.status}`)
    const made = Created.parse(await response.json())
    const payAt = `${sandboxUrl}/sandbox/payments/${encodeURIComponent(made.payments[0].id)}?ipn=true`
    return { transactionId: made.transactionId, payAt }
  }
}

function send(method: string, url: string, body?: object, signal?: AbortSignal): Promise<Response> {
  return fetch(url, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(signal ? { signal } : {}),
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
}

const Order = z.object({
  id: z.string(),
  amount: z.string(),
  transactionId: z.string(),
  status: z.string(),
  paymentId: z.string().optional(),
  reported: z.string().optional(),
  payAt: z.string().default(''),
  returns: z.array(
    z.object({ refund: z.object({ idempotencyKey: z.string() }), status: z.string() }),
  ),
})
type Order = z.infer<typeof Order>

const Refusal = z.object({ error: z.string() })

const POLL_EVERY_MS = 20
const POLL_FOR_MS = 30_000

/**
 * Plays a customer who orders, pays and returns the goods, and prints each step.
 * @throws Error if an expected state is not reached in time
 */
export async function playStory(
  shopUrl: string,
  print: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const shop = connectToShop(shopUrl, signal)

  const ordered = await shop.order('250000')
  const { id, amount, transactionId, status } = ordered
  print(`1. A customer orders coffee for ${amount} VND. Order ${id} is ${status}: the gateway expects the payment
   as ${transactionId}, and the shop waits until the service confirms it.`)

  const paid = await shop.pay(ordered)
  print(`2. The customer pays. The gateway notifies the service, which queries the gateway to verify it.
   Order ${id} is ${paid.status}, by payment ${paid.paymentId}.`)

  const oneBag = { returnId: 'R-1', amount: '100000', reason: 'one bag returned' }
  await shop.requestRefund(id, oneBag)
  const partly = await shop.waitUntilReturned(id, 0)
  print(`3. The customer returns a bag: 100000 VND is refunded under the key ${partly.key},
   which the shop stored before it sent the request. The refund ${partly.refund}; order ${id} is ${partly.status}.`)

  await shop.requestRefund(id, oneBag)
  const { returns } = await shop.readOrder(id)
  print(
    `4. The customer presses the button again: still ${returns.length} return, and nothing more is refunded.`,
  )

  const refused = await shop.requestRefund(id, { returnId: 'R-2', amount: '200000' })
  const { error } = Refusal.parse(await refused.json())
  print(`5. A further refund of 200000 VND is refused: ${refused.status}, ${error}.`)

  await shop.requestRefund(id, { returnId: 'R-3', reason: 'the rest returned' })
  const all = await shop.waitUntilReturned(id, 2)
  print(`6. The customer returns the rest: what remains is refunded under the key ${all.key}.
   The refund ${all.refund}; order ${id} is ${all.status}.`)

  const cheap = await shop.order('250000')
  const short = await shop.pay(cheap, '1000')
  print(`7. Another customer pays 1000 of 250000 VND. The payment succeeded, but order ${cheap.id} is ${short.status}:
   the shop compares amount and currency before it ships anything.`)

  const twice = await shop.order('250000')
  await shop.pay(twice)
  await shop.payAgain(twice)
  await shop.refundSurplus(twice.id)
  const once = await shop.waitUntilReturned(twice.id, 0)
  print(`8. A third customer pays 250000 VND twice. What was paid beyond one success is refunded under the key ${once.key},
   however often the clerk asks for it. Order ${twice.id} is ${once.status}.`)

  const told = await shop.waitUntil(id, 'is reported', (order) => order.reported === 'refunded')
  print(
    `9. The service also sends final states to the shop's webhook, signed: the last one reports order ${id} as ${told.reported}.`,
  )
}

function connectToShop(shopUrl: string, signal: AbortSignal) {
  async function poll(what: string, isDone: () => Promise<boolean>): Promise<void> {
    const end = performance.now() + POLL_FOR_MS
    while (!(await isDone())) {
      if (performance.now() > end) throw new Error(`Timed out waiting until ${what}`)
      await setTimeout(POLL_EVERY_MS, undefined, { signal })
    }
  }
  const order = async (amount: string) =>
    Order.parse(await (await send('POST', `${shopUrl}/orders`, { amount }, signal)).json())
  const readOrder = async (id: string) =>
    Order.parse(await (await send('GET', `${shopUrl}/orders/${id}`, undefined, signal)).json())
  const requestRefund = (id: string, input: object) =>
    send('POST', `${shopUrl}/orders/${id}/refund`, input, signal)

  async function waitUntil(id: string, state: string, isReached: (order: Order) => boolean) {
    await poll(`order ${id} ${state}`, async () => isReached(await readOrder(id)))
    return readOrder(id)
  }

  return {
    order,
    readOrder,
    requestRefund,
    waitUntil,
    /** Pays, and waits until the shop knows. */
    async pay({ id, payAt }: Order, amount?: string) {
      await send('PATCH', payAt, { status: 'SUCCESS', amount }, signal)
      return waitUntil(id, 'is paid', ({ paymentId }) => paymentId !== undefined)
    },
    /** The same amount once more: another payment of the same transaction. */
    payAgain({ payAt, transactionId, amount }: Order) {
      const payments = [{ amount, paymentMethod: 'CC', status: 'SUCCESS' }]
      const to = new URL('/sandbox/transactions', payAt).href
      return send('POST', to, { transactionId, payments }, signal)
    },
    /** Refused until the service knows of the second payment. */
    refundSurplus: (id: string) =>
      poll(`the surplus of order ${id} is refunded`, async () => {
        const answer = await requestRefund(id, { returnId: 'S-1', surplus: true })
        return answer.status === 202
      }),
    async waitUntilReturned(id: string, index: number) {
      const isReturned = ({ returns }: Order) => returns[index]?.status === 'succeeded'
      const { status, returns } = await waitUntil(id, `has refunded return ${index}`, isReturned)
      return { status, refund: returns[index]?.status, key: returns[index]?.refund.idempotencyKey }
    },
  }
}
