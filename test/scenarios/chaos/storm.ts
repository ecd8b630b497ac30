import { setTimeout as pause } from 'node:timers/promises'
import { describeMove, type Move, type Plan } from './moves.ts'
import type { Stage } from './stage.ts'

/** How often what happened. */
export type Counts = Map<string, number>

export type Storm = {
  counts: Counts
  /** Refunds that the gateway took and that failed there. */
  failed: string[]
}

export const DEFAULT_MODE = { guardsBalance: false, settleMs: 300 }

/**
 * Plays a plan to its end; every move is told as it is made. Whatever a move hurt is healed when its time
 * is over; what was killed comes back by itself.
 */
export async function playStorm(
  stage: Stage,
  plan: Plan,
  log: (line: string) => void,
): Promise<Storm> {
  const counts: Counts = new Map()
  const failed: string[] = []
  const began = performance.now()
  async function play(moves: readonly Move[]): Promise<void> {
    for (const move of moves) {
      await pause(Math.max(0, move.atMs - (performance.now() - began)))
      log(describeMove(move))
      const name = await makeMove(stage, move, failed)
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
  }
  await Promise.all(Object.values(plan).map(play))
  return { counts, failed }
}

/** Makes one move and waits until it is over. Returns what it counts as. */
async function makeMove(stage: Stage, move: Move, failed: string[]): Promise<string> {
  switch (move.kind) {
    case 'kill': {
      const member = choose(stage, move)
      member.kill()
      return `kill -9 ${member.name}`
    }
    case 'kill behind a stall': {
      // What it has taken in meanwhile is in its memory alone: nothing of it may be acknowledged.
      stage.lines.database.stall('all')
      await pause(move.forMs)
      const member = choose(stage, move)
      member.kill()
      stage.lines.database.heal()
      return `kill -9 ${member.name}`
    }
    case 'freeze': {
      const member = choose(stage, move)
      member.freeze()
      await pause(move.forMs)
      member.thaw()
      return `freeze ${member.name}`
    }
    case 'kill database':
      await stage.database.kill()
      await pause(move.forMs)
      await stage.database.start()
      return 'kill -9 database'
    case 'pause database':
      stage.database.pause()
      await pause(move.forMs)
      stage.database.resume()
      return 'pause database'
    case 'fault':
      await stage.gateway.send('POST', '/faults', move.fault)
      await pause(move.forMs)
      await stage.gateway.send('DELETE', '/faults')
      return `gateway: ${move.fault.kind}`
    case 'refund mode':
      await stage.gateway.send('PUT', '/refund-mode', move.mode)
      await pause(move.forMs)
      await stage.gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
      return 'gateway: refund mode'
    case 'settle by hand':
      await stage.gateway.send('PUT', '/refund-mode', { ...DEFAULT_MODE, settleMs: null })
      await pause(move.forMs)
      await stage.gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
      failed.push(...(await settleByHand(stage, move.failing)))
      return 'gateway: settled by hand'
    case 'layout':
      await stage.change(move.layout)
      return 'change of layout'
    default:
      return await hurtLine(stage, move)
  }
}

/** Ends what the gateway took and left open; a part of it fails, which only its notification tells. */
async function settleByHand({ gateway }: Stage, failing: number): Promise<string[]> {
  const moved = new Set((await gateway.readLedger()).map(({ requestId }) => requestId))
  const taken = (await gateway.readJournal('REFUND'))
    .filter(({ workCode }) => workCode === 0)
    .flatMap(({ requestId }) => requestId ?? [])
  const failed: string[] = []
  for (const [index, id] of taken.filter((one) => !moved.has(one)).entries()) {
    const fails = index % 10 < failing * 10
    const outcome = fails ? 'failure' : 'success'
    // It may have ended by itself a moment ago.
    const made = await gateway.send('POST', `/refunds/${id}/settle`, { outcome }).then(
      () => true,
      () => false,
    )
    if (made && fails) failed.push(id)
  }
  return failed
}

async function hurtLine(stage: Stage, move: Extract<Move, { where: string }>): Promise<string> {
  const line = stage.lines[move.where]
  if (move.kind === 'cut') line.cut()
  else {
    if (move.kind === 'refuse') {
      line.refuse()
      line.cut()
    } else {
      line.stall(move.kind === 'stall all' ? 'all' : 'answers')
    }
    await pause(move.forMs)
    // The answers that were held back are lost: work was done that nobody has heard of.
    if (move.kind === 'stall answers') line.cut()
    line.heal()
  }
  return `line to ${move.where}: ${move.kind}`
}

function choose(stage: Stage, { who, pick }: { who: 'serving' | 'working'; pick: number }) {
  const members = who === 'serving' ? stage.serving() : stage.working()
  const member = members[pick % members.length]
  if (!member) throw new Error(`nobody is ${who}`)
  return member
}

/** The storm is over: everything works again, and whatever is open at the gateway goes on. */
export async function heal(stage: Stage): Promise<void> {
  for (const line of Object.values(stage.lines)) line.heal()
  stage.database.resume()
  for (const member of stage.members()) member.thaw()
  await stage.gateway.send('DELETE', '/faults')
  await stage.gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
  await Promise.all(stage.members().map((member) => member.untilReady()))
}
