import { setTimeout as pause } from 'node:timers/promises'
import { runConcurrently } from '../../bench/refunds.ts'
import { nameIn } from '../audit/ledgers.ts'
import type { GatewayControl, OwnId } from './gateway.ts'
import type { Move } from './moves.ts'

export type GatewayMove = Extract<
  Move,
  { kind: 'fault' | 'refund mode' | 'settle by hand' | 'lagging ledger' }
>

export const DEFAULT_MODE = { guardsBalance: false, settleMs: 300 }

/**
 * Makes one move and waits until it is over.
 * @param failed receives the refunds that the gateway had accepted and that failed by it, named within their accounts
 * @returns the name under which it is counted
 */
export async function moveGateway(
  gateway: GatewayControl,
  lag: LedgerLag,
  move: GatewayMove,
  failed: string[],
): Promise<string> {
  switch (move.kind) {
    case 'fault':
      await gateway.send('POST', '/faults', move.fault)
      await pause(move.forMs)
      await gateway.send('DELETE', '/faults')
      return `gateway: ${move.fault.kind}`
    case 'refund mode':
      await gateway.send('PUT', '/refund-mode', move.mode)
      await pause(move.forMs)
      await gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
      return 'gateway: refund mode'
    case 'settle by hand':
      await gateway.send('PUT', '/refund-mode', { ...DEFAULT_MODE, settleMs: null })
      await pause(move.forMs)
      await gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
      failed.push(...(await settleByHand(gateway, move.failing)))
      return 'gateway: settled by hand'
    case 'lagging ledger':
      await lag.begin()
      await pause(move.forMs)
      await lag.end()
      return 'gateway: lagging ledger'
  }
}

/** Ends the refunds the gateway accepted and left open. Some fail, which only their notifications report. */
async function settleByHand(gateway: GatewayControl, failing: number): Promise<string[]> {
  const moved = new Set((await gateway.readLedger()).map(({ requestId }) => requestId))
  const open = (await gateway.readJournal('REFUND')).flatMap(
    ({ workCode, merchantCode, requestId }) => {
      if (workCode !== 0 || !merchantCode || !requestId) return []
      const name = nameIn(merchantCode, requestId)
      return moved.has(name)
        ? []
        : [{ name, path: `/refunds/${requestId}/settle?merchantCode=${merchantCode}` }]
    },
  )
  const failed: string[] = []
  for (const [index, { name, path }] of open.entries()) {
    const fails = index % 10 < failing * 10
    const outcome = fails ? 'failure' : 'success'
    // It may have just ended by itself.
    const made = await gateway.send('POST', path, { outcome }).then(
      () => true,
      () => false,
    )
    if (made && fails) failed.push(name)
  }
  return failed
}

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
