import { setTimeout as pause } from 'node:timers/promises'
import { nameIn } from '../audit/ledgers.ts'
import type { GatewayControl } from './gateway.ts'
import type { LedgerLag } from './ledger-lag.ts'
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
