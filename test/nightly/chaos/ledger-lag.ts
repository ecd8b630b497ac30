import { runConcurrently } from '../../bench/refunds.ts'
import type { GatewayControl, OwnId } from './gateway.ts'

/** A ledger of the gateway that lags: QUERY_PT shows less of a payment refunded than has been. */
export type LedgerLag = {
  /** Makes a new payment that will be refunded known; one that is made meanwhile lags from its beginning. */
  add(payment: OwnId): Promise<void>
  /** From now on the newest payments show what was refunded of them until now. */
  begin(): Promise<void>
  /** All show the truth again. */
  end(): Promise<void>
}

/** How many payments lag: older ones seldom have a refund in progress. */
const NEWEST = 24

export function makeLedgerLag(gateway: Pick<GatewayControl, 'change' | 'readRefunded'>): LedgerLag {
  const newest: OwnId[] = []
  const lagging = new Set<OwnId>()
  let lags = false
  async function hold(payment: OwnId): Promise<void> {
    lagging.add(payment)
    const refundedAmount = await gateway.readRefunded(payment)
    // It may have ended meanwhile.
    if (lagging.has(payment)) await gateway.change(payment, { refundedAmountShown: refundedAmount })
    if (!lagging.has(payment)) await gateway.change(payment, { refundedAmountShown: null })
  }
  return {
    async add(payment) {
      newest.push(payment)
      if (newest.length > NEWEST) newest.shift()
      if (lags) await hold(payment)
    },
    async begin() {
      lags = true
      await runConcurrently([...newest], hold)
    },
    async end() {
      lags = false
      const held = [...lagging]
      lagging.clear()
      await runConcurrently(held, (one) => gateway.change(one, { refundedAmountShown: null }))
    },
  }
}
