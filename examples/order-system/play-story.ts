import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'

const Order = z.object({
  id: z.string(),
  amount: z.string(),
  transactionId: z.string(),
  status: z.string(),
  paymentId: z.string().optional(),
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

const LOOK_EVERY_MS = 20
const GIVE_UP_AFTER_MS = 30_000

/**
 * A customer orders, pays and sends things back; each step is told in plain words.
 * @throws Error when something does not come about in time
 */
export async function playStory(
  shopUrl: string,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const send = (method: string, url: string, body?: object) =>
    fetch(url, {
      method,
      headers: { 'content-type': 'application/json' },
      signal,
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  const look = async (id: string) =>
    Order.parse(await (await send('GET', `${shopUrl}/orders/${id}`)).json())
  const refund = (id: string, wish: object) => send('POST', `${shopUrl}/orders/${id}/refund`, wish)

  async function lookUntil(id: string, what: string, holds: (order: Order) => boolean) {
    const end = performance.now() + GIVE_UP_AFTER_MS
    for (;;) {
      const order = await look(id)
      if (holds(order)) return order
      if (performance.now() > end) throw new Error(`In vain: ${what}\n${JSON.stringify(order)}`)
      await setTimeout(LOOK_EVERY_MS, undefined, { signal })
    }
  }
  const untilReturned = (id: string, nth: number) =>
    lookUntil(id, `return ${nth} ends`, ({ returns }) => returns[nth]?.status === 'succeeded')

  const ordered = await send('POST', `${shopUrl}/orders`, { amount: '250000' })
  const { id, amount, transactionId, status, payAt = '' } = Order.parse(await ordered.json())
  tell(
    `1. A customer orders coffee for ${amount} VND. Order ${id} is ${status}: the gateway waits for`,
  )
  tell(`   the money under ${transactionId}, and the shop waits for the service to say so.`)

  await send('PATCH', payAt, { status: 'SUCCESS' })
  const paid = await lookUntil(id, 'it is paid', (order) => order.paymentId !== undefined)
  tell(
    `2. The customer pays. The gateway notifies the service, which asks back before it believes it.`,
  )
  tell(`   Order ${id} is ${paid.status}, by payment ${paid.paymentId}.`)

  await refund(id, { returnId: 'R-1', amount: '100000', reason: 'one bag came back' })
  const partly = await untilReturned(id, 0)
  tell(`3. One bag comes back: 100000 VND are refunded, under key ${showKey(partly, 0)},`)
  tell(
    `   which the shop stored before it asked. The refund ${showEnd(partly, 0)}; order ${id} is ${partly.status}.`,
  )

  await refund(id, { returnId: 'R-1', amount: '100000', reason: 'one bag came back' })
  const same = await look(id)
  tell(
    `4. The customer presses the button again: ${same.returns.length} return, nothing more is refunded.`,
  )

  const refused = await refund(id, { returnId: 'R-2', amount: '200000' })
  tell(
    `5. Somebody asks for 200000 VND more: ${refused.status}, ${Refusal.parse(await refused.json()).error}.`,
  )

  await refund(id, { returnId: 'R-3', reason: 'the rest came back, too' })
  const all = await untilReturned(id, 2)
  tell(`6. The rest comes back, too: all that is left is refunded, under key ${showKey(all, 2)}.`)
  tell(`   The refund ${showEnd(all, 2)}; order ${id} is ${all.status}.`)
}

function showKey({ returns }: Order, nth: number): string {
  return returns[nth]?.refund.idempotencyKey ?? 'none'
}

function showEnd({ returns }: Order, nth: number): string {
  return returns[nth]?.status ?? 'is unknown'
}
