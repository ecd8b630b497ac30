import { setTimeout as pause } from 'node:timers/promises'
import { describeMove, type Move, type Plan } from './moves.ts'
import type { Stage } from './stage.ts'

/** How often each move happened. */
export type Counts = Map<string, number>

export type Storm = {
  counts: Counts
  /** Refunds that the gateway accepted and that failed there. */
  failed: string[]
}

export const DEFAULT_MODE = { guardsBalance: false, settleMs: 300 }

/**
 * Plays a plan to its end and logs every move. Each move heals its damage when its time is over; killed
 * processes restart by themselves.
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

/**
 * Makes one move and waits until it is over.
 * @returns the name under which it is counted
 */
async function makeMove(stage: Stage, move: Move, failed: string[]): Promise<string> {
  switch (move.kind) {
    case 'kill': {
      const member = choose(stage, move)
      member.kill()
      return `kill -9 ${member.name}`
    }
    case 'kill behind a stall': {
      // What it has received meanwhile is in memory only and must not be acknowledged.
      stage.lines.database.stall('all')
      await pause(move.forMs)
      const member = choose(stage, move)
      member.kill()
      await stage.lines.database.heal()
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

/** Ends the refunds the gateway accepted and left open. Some fail, which only their notifications report. */
async function settleByHand({ gateway }: Stage, failing: number): Promise<string[]> {
  const moved = new Set((await gateway.readLedger()).map(({ requestId }) => requestId))
  const taken = (await gateway.readJournal('REFUND'))
    .filter(({ workCode }) => workCode === 0)
    .flatMap(({ requestId }) => requestId ?? [])
  const failed: string[] = []
  for (const [index, id] of taken.filter((one) => !moved.has(one)).entries()) {
    const fails = index % 10 < failing * 10
    const outcome = fails ? 'failure' : 'success'
    // It may have just ended by itself.
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
    // The held answers are lost: the work was done, but its caller gets no result.
    if (move.kind === 'stall answers') line.cut()
    await line.heal()
  }
  return `line to ${move.where}: ${move.kind}`
}

function choose(stage: Stage, { who, pick }: { who: 'serving' | 'working'; pick: number }) {
  const members = who === 'serving' ? stage.serving() : stage.working()
  const member = members[pick % members.length]
  if (!member) throw new Error(`no process is ${who}`)
  return member
}

/** Ends all damage after the storm; refunds open at the gateway continue. */
export async function heal(stage: Stage): Promise<void> {
  for (const line of Object.values(stage.lines)) await line.heal()
  stage.database.resume()
  for (const member of stage.members()) member.thaw()
  await stage.gateway.send('DELETE', '/faults')
  await stage.gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
  await Promise.all(stage.members().map((member) => member.untilReady()))
}
