import { setTimeout as pause } from 'node:timers/promises'
import { type Order, planOrder, requestUntilTaken, type TakenRefund } from './requests.ts'
import { pay, type Stage } from './stage.ts'

export type Load = {
  /** The orders whose customers have paid. */
  orders: readonly Order[]
  /** Every 202, in the order of their arrival. */
  taken: readonly TakenRefund[]
  /** Stops new customers; resolves when every order system has its answers, or has given up. */
  finish(withinMs: number): Promise<void>
}

/** How many customers come in a second, and the code of a refusal that order systems wait out. */
export type LoadOptions = { perS?: number; waitsFor?: string }

/** Plays customers who pay, and order systems that request refunds until they are accepted. */
export function startLoad(
  { gateway, apiUrl }: Pick<Stage, 'gateway' | 'apiUrl'>,
  { perS = 8, waitsFor }: LoadOptions = {},
): Load {
  const orders: Order[] = []
  const taken: TakenRefund[] = []
  const actors: Promise<void>[] = []
  let coming = true
  let waiting = true

  async function play(order: Order): Promise<void> {
    await pay({ gateway }, order.transactionId, order.paymentId)
    orders.push(order)
    for (const request of order.refunds) {
      const isOver = () => !waiting
      const one = await requestUntilTaken(apiUrl, order.transactionId, request, isOver, waitsFor)
      if (one) taken.push(one)
    }
  }
  async function come(): Promise<void> {
    for (let n = 0; coming; n += 1) {
      actors.push(play(planOrder(n)))
      await pause(1_000 / perS)
    }
  }
  const source = come()
  return {
    orders,
    taken,
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

/**
 * Repeats every accepted request with the same key and body, until it is accepted again or the time is over. The money
 * of lost refunds has gone from what is left: until each is recognised in a repeated one, there may be too little.
 */
export async function repeatAll(
  { apiUrl }: Pick<Stage, 'apiUrl'>,
  { orders, taken }: Load,
  withinMs: number,
): Promise<TakenRefund[]> {
  const known = new Set(taken.map(({ key }) => key))
  const end = performance.now() + withinMs
  const isOver = () => performance.now() > end
  const repeated = orders.flatMap(({ transactionId, refunds }) =>
    refunds
      .filter(({ key }) => known.has(key))
      .map((one) => requestUntilTaken(apiUrl, transactionId, one, isOver, 'exceeds_refundable')),
  )
  return (await Promise.all(repeated)).flatMap((one) => one ?? [])
}
