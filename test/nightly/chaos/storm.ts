import { setTimeout as pause } from 'node:timers/promises'
import type { DatabaseHistory } from './database-moves.ts'
import { DEFAULT_MODE, type LedgerLag, moveGateway } from './gateway-moves.ts'
import { describeMove, type Move, type Plan } from './moves.ts'
import type { Stage } from './stage.ts'

/** How often each move happened. */
export type Counts = Map<string, number>

export type Storm = {
  counts: Counts
  /** Refunds that the gateway accepted and that failed there, named within their accounts. */
  failed: string[]
}

/** What moves act on. */
export type Scene = { stage: Stage; lag: LedgerLag; history: DatabaseHistory }

/**
 * Plays a plan to its end and logs every move. Each move heals its damage when its time is over; killed
 * processes restart by themselves.
 */
export async function playStorm(
  scene: Scene,
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
      const name = await makeMove(scene, move, failed)
      if (name === undefined) log(`left out, because nothing here can do it: ${move.kind}`)
      else counts.set(name, (counts.get(name) ?? 0) + 1)
    }
  }
  await Promise.all(Object.values(plan).map(play))
  return { counts, failed }
}

/**
 * Makes one move and waits until it is over.
 * @returns the name under which it is counted, undefined if it could not be made
 */
async function makeMove(
  { stage, lag, history }: Scene,
  move: Move,
  failed: string[],
): Promise<string | undefined> {
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
    case 'pause database':
    case 'copy database':
    case 'set back database':
    case 'fail over':
      return await history.play(move)
    case 'fault':
    case 'refund mode':
    case 'settle by hand':
    case 'lagging ledger':
      return await moveGateway(stage.gateway, lag, move, failed)
    case 'layout':
      await stage.change(move.layout)
      return 'change of layout'
    default:
      return await hurtLine(stage, move)
  }
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
export async function heal({ stage, lag }: Scene): Promise<void> {
  await lag.end()
  for (const line of Object.values(stage.lines)) await line.heal()
  stage.database.resume()
  for (const member of stage.members()) member.thaw()
  await stage.gateway.send('DELETE', '/faults')
  await stage.gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
  await Promise.all(stage.members().map((member) => member.untilReady()))
}
