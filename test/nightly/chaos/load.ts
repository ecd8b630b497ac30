import { setTimeout as pause } from 'node:timers/promises'
import { runConcurrently } from '../../bench/refunds.ts'
import type { PortalRefund } from '../audit/ledgers.ts'
import { nameIn } from '../audit/ledgers.ts'
import type { GatewayControl, OwnId } from './gateway.ts'
import type { LedgerLag } from './gateway-moves.ts'
import { type OrderLog, startOrderSystem, TIMEOUT_MS } from './order-system.ts'
import { type PortalWish, planWishes, type RefundWish, type Wish } from './wishes.ts'

export type Load = {
  /** Transactions created at the gateway, in order. */
  transactions: OwnId[]
  /** Refunds made at its portal, and when the service had shown their payment, if it had (ms since the epoch). */
  portal: (Omit<PortalRefund, 'isBefore'> & { shownMs: number | undefined })[]
  log: OrderLog
  /**
   * Lets order systems do what they do after the database was set back: request a sync of every transaction, and repeat
   * what was answered with 202 in the time that was lost (ms since the epoch).
   */
  recover(fromMs: number, toMs: number): void
  /** Stops new customers; resolves when every order system has its responses or has given up. */
  finish(withinMs: number): Promise<void>
}

export type LoadOptions = {
  seed: number
  /** New customers per second. */
  perS: number
  gateway: GatewayControl
  lag: LedgerLag
  /** The address that order systems use, through the proxies. */
  apiUrl: string
  /** Customers stay away while it returns true; by default they come, however busy the service is. */
  isBusy?: () => boolean
}

/** Plays customers who pay, order systems that refund, and people who refund at the gateway's portal. */
export function startLoad(options: LoadOptions): Load {
  const { seed, perS, gateway, lag, apiUrl, isBusy = () => false } = options
  const orders = startOrderSystem(apiUrl)
  const transactions: OwnId[] = []
  const portal: Load['portal'] = []
  const wishes: { wish: RefundWish; transactionId: string }[] = []
  const actors = new Set<Promise<void>>()
  let coming = true

  function act(actor: Promise<void>): void {
    const done = actor.finally(() => actors.delete(done))
    actors.add(done)
  }
  async function refund(wish: RefundWish, transactionId: string, untilEnded: boolean) {
    wishes.push({ wish, transactionId })
    const id = await orders.request(wish, transactionId)
    if (id === undefined) return
    if (wish.repeated) await orders.request(wish, transactionId)
    if (untilEnded) await orders.untilEnded(wish.merchantCode, id)
  }
  async function refundAtPortal(payment: OwnId, { amount, ipn }: PortalWish, shownMs?: number) {
    const requestId = await gateway.refundAtPortal(payment, { amount, ipn })
    const { merchantCode, id } = payment
    const paymentId = nameIn(merchantCode, id)
    portal.push({ requestId: nameIn(merchantCode, requestId), paymentId, amount, shownMs })
  }
  async function refundAtPortalLater(wish: Wish, payment: OwnId, planned: PortalWish) {
    const { merchantCode, transactionId } = wish
    if (!(await orders.untilShown(merchantCode, payment.id, transactionId))) return
    const shownMs = Date.now()
    await pause(planned.when === 'before' ? 0 : planned.when.afterMs)
    await refundAtPortal(payment, planned, shownMs)
  }
  async function pay(wish: Wish, payment: OwnId): Promise<void> {
    const { merchantCode, transactionId, payments, ipn, succeeds } = wish
    const isTooMuch = wish.refunds.some((one) => one.isTooMuch)
    await gateway.send('POST', '/transactions', {
      merchantCode,
      transactionId,
      payments,
      ipn: false,
    })
    const transaction = { merchantCode, id: transactionId }
    // While the ledger lags nobody can know what is too much.
    const isRefunded = wish.refunds.length + wish.portal.length > 0
    if (isRefunded && !isTooMuch) await lag.add(payment)
    for (const one of wish.portal) if (one.when === 'before') await refundAtPortal(payment, one)
    transactions.push(transaction)
    await gateway.notify(transaction, ipn)
    if (!succeeds) return
    await pause(succeeds.afterMs)
    await gateway.change(payment, { status: 'SUCCESS' }, { notified: succeeds.notified })
  }
  async function live(wish: Wish): Promise<void> {
    const { merchantCode, transactionId, refunds, atOnce } = wish
    const payment = { merchantCode, id: wish.payments.at(-1)?.id ?? '' }
    await pay(wish, payment)
    for (const one of wish.portal) {
      if (one.when !== 'before') act(refundAtPortalLater(wish, payment, one))
    }
    if (atOnce) await Promise.all(refunds.map((one) => refund(one, transactionId, false)))
    else for (const one of refunds) await refund(one, transactionId, true)
  }
  async function come(): Promise<void> {
    for (let n = 0; coming; n += 1) {
      for (const wish of planWishes(seed, n)) act(live(wish))
      do await pause(1_000 / perS)
      while (coming && isBusy())
    }
  }
  const source = come()
  return {
    transactions,
    portal,
    log: orders.log,
    recover(fromMs, toMs) {
      act(runConcurrently([...transactions], (one) => orders.sync(one.merchantCode, one.id)))
      const repeated = new Set<string>()
      const repeatLost = () => {
        const lost = new Set(
          orders.log.refunds
            .filter(({ beganMs, atMs }) => atMs >= fromMs && beganMs <= toMs)
            .map(({ key }) => key),
        )
        for (const { wish, transactionId } of wishes) {
          const key = nameIn(wish.merchantCode, wish.key)
          if (!lost.has(key) || repeated.has(key)) continue
          repeated.add(key)
          act(orders.request(wish, transactionId).then(() => undefined))
        }
      }
      repeatLost()
      // A 202 of that time may still be on its way.
      act(pause(TIMEOUT_MS).then(repeatLost))
    },
    async finish(withinMs) {
      coming = false
      await source
      const hurry = setTimeout(orders.hurry, withinMs / 4)
      const patience = setTimeout(orders.giveUp, withinMs)
      // Those who wait can send others.
      while (actors.size > 0) await Promise.all(actors)
      clearTimeout(hurry)
      clearTimeout(patience)
    },
  }
}
