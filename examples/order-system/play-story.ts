import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'

const Order = z.object({
  id: z.string(),
  amount: z.string(),
  transactionId: z.string(),
  status: z.string(),
  paymentId: z.string().optional(),
  reported: z.string().optional(),
  payAt: z.string().optional(),
  returns: z.array(
    z.object({
      returnId: z.string(),
      refund: z.object({ idempotencyKey: z.string() }),
      status: z.string(),
    }),
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

  const { id, amount, transactionId, status, payAt = '' } = await shop.order('250000')
  print(
    `1. A customer orders coffee for ${amount} VND. Order ${id} is ${status}: the gateway expects the payment`,
  )
  print(`   as ${transactionId}, and the shop waits until the service confirms it.`)

  await shop.pay(payAt)
  const paid = await shop.waitUntil(id, 'is paid', (order) => order.paymentId !== undefined)
  print(
    '2. The customer pays. The gateway notifies the service, which queries the gateway to verify it.',
  )
  print(`   Order ${id} is ${paid.status}, by payment ${paid.paymentId}.`)

  const oneBag = { returnId: 'R-1', amount: '100000', reason: 'one bag returned' }
  await shop.requestRefund(id, oneBag)
  const partly = await shop.waitUntilReturned(id, 0)
  print(
    `3. The customer returns a bag: 100000 VND is refunded under the key ${showKey(partly, 0)},`,
  )
  print(
    `   which the shop stored before it sent the request. The refund ${showStatus(partly, 0)}; order ${id} is ${partly.status}.`,
  )

  await shop.requestRefund(id, oneBag)
  const same = await shop.readOrder(id)
  print(
    `4. The customer presses the button again: still ${same.returns.length} return, and nothing more is refunded.`,
  )

  const refused = await shop.requestRefund(id, { returnId: 'R-2', amount: '200000' })
  const { error } = Refusal.parse(await refused.json())
  print(`5. A further refund of 200000 VND is refused: ${refused.status}, ${error}.`)

  await shop.requestRefund(id, { returnId: 'R-3', reason: 'the rest returned' })
  const all = await shop.waitUntilReturned(id, 2)
  print(
    `6. The customer returns the rest: what remains is refunded under the key ${showKey(all, 2)}.`,
  )
  print(`   The refund ${showStatus(all, 2)}; order ${id} is ${all.status}.`)

  const cheap = await shop.order('250000')
  await shop.pay(cheap.payAt ?? '', '1000')
  const short = await shop.waitUntil(
    cheap.id,
    'is checked',
    (order) => order.paymentId !== undefined,
  )
  print(
    `7. Another customer pays 1000 of 250000 VND. The payment succeeded, but order ${cheap.id} is ${short.status}:`,
  )
  print('   the shop compares amount and currency before it ships anything.')

  const twice = await shop.order('250000')
  await shop.pay(twice.payAt ?? '')
  await shop.waitUntil(twice.id, 'is paid', (order) => order.paymentId !== undefined)
  await shop.payAgain(twice)
  await shop.refundSurplus(twice.id)
  const once = await shop.waitUntilReturned(twice.id, 0)
  print(
    `8. A third customer pays 250000 VND twice. What was paid beyond one success is refunded under the key ${showKey(once, 0)},`,
  )
  print(`   however often the clerk asks for it. Order ${twice.id} is ${once.status}.`)

  const told = await shop.waitUntil(id, 'is reported', (order) => order.reported === 'refunded')
  print(
    `9. The service also sends final states to the shop's webhook, signed: the last one reports order ${id} as ${told.reported}.`,
  )
}

function connectToShop(shopUrl: string, signal: AbortSignal) {
  const send = (method: string, url: string, body?: object) =>
    fetch(url, {
      method,
      headers: { 'content-type': 'application/json' },
      signal,
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  const requestRefund = (id: string, input: object) =>
    send('POST', `${shopUrl}/orders/${id}/refund`, input)
  const readOrder = async (id: string) =>
    Order.parse(await (await send('GET', `${shopUrl}/orders/${id}`)).json())

  async function waitUntil(id: string, state: string, isReached: (order: Order) => boolean) {
    const end = performance.now() + POLL_FOR_MS
    for (;;) {
      const order = await readOrder(id)
      if (isReached(order)) return order
      if (performance.now() > end) {
        throw new Error(`Timed out waiting until order ${id} ${state}\n${JSON.stringify(order)}`)
      }
      await setTimeout(POLL_EVERY_MS, undefined, { signal })
    }
  }

  return {
    order: async (amount: string) =>
      Order.parse(await (await send('POST', `${shopUrl}/orders`, { amount })).json()),
    pay: (payAt: string, amount?: string) => send('PATCH', payAt, { status: 'SUCCESS', amount }),
    /** The same amount once more: another payment of the same transaction. */
    payAgain: ({ payAt = '', transactionId, amount }: Order) =>
      send('POST', new URL('/sandbox/transactions', payAt).href, {
        transactionId,
        payments: [{ amount, paymentMethod: 'CC', status: 'SUCCESS' }],
      }),
    requestRefund,
    /** Refused until the service knows of the second payment. */
    async refundSurplus(id: string) {
      const end = performance.now() + POLL_FOR_MS
      while ((await requestRefund(id, { returnId: 'S-1', surplus: true })).status !== 202) {
        if (performance.now() > end) throw new Error(`The surplus of order ${id} is not refunded`)
        await setTimeout(POLL_EVERY_MS, undefined, { signal })
      }
    },
    readOrder,
    waitUntil,
    waitUntilReturned: (id: string, index: number) =>
      waitUntil(
        id,
        `has refunded return ${index}`,
        ({ returns }) => returns[index]?.status === 'succeeded',
      ),
  }
}

function showKey({ returns }: Order, index: number): string {
  return returns[index]?.refund.idempotencyKey ?? 'none'
}

function showStatus({ returns }: Order, index: number): string {
  return returns[index]?.status ?? 'is unknown'
}
