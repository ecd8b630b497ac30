import { makeRandom } from '../../../src/sandbox/random.ts'

/** A fault, and how long it lasts. */
export type Move = { atMs: number; forMs: number } & (
  | { kind: 'kill'; who: 'serving' | 'working'; pick: number }
  | { kind: 'kill behind a stall'; who: 'serving' | 'working'; pick: number }
  | { kind: 'freeze'; who: 'serving' | 'working'; pick: number }
  | { kind: 'kill database' | 'pause database' | 'copy database' | 'fail over' }
  | { kind: 'set back database'; processes: 'go on' | 'restart' }
  | { kind: 'lagging ledger' }
  | { kind: 'cut' | 'refuse' | 'stall all' | 'stall answers'; where: Line }
  | { kind: 'fault'; fault: Fault }
  | { kind: 'refund mode'; mode: object }
  | { kind: 'settle by hand'; failing: number }
  | { kind: 'layout'; layout: Layout }
)

/** The connections that lead through a proxy. */
export type Line = 'database' | 'gateway' | 'intake'
export type Layout = 'split' | 'all'
export type Fault = {
  command: 'QUERY_PT' | 'REFUND' | '*'
  kind: string
  probability: number
  delayMs?: number
  code?: number
}

/** Tracks that are played in parallel. */
export type Plan = {
  accidents: Move[]
  lines: Move[]
  gateway: Move[]
  ledger: Move[]
  layouts: Move[]
  /** What happens to the database once: its standby takes over, later it is set back. */
  history: Move[]
}

/** The pauses between moves (ms from the end of one to the next), and the longest durations. */
type Pace = { gapMs: readonly [number, number]; freezeMs: number; layoutMs: number }
const SHORT: Pace = { gapMs: [500, 1_600], freezeMs: 3_000, layoutMs: 16_000 }
const LONG: Pace = { gapMs: [1_500, 6_000], freezeMs: 20_000, layoutMs: 90_000 }
const LONG_FROM_MS = 120_000

type Draft = Move extends infer M ? (M extends Move ? Omit<M, 'atMs'> : never) : never

/**
 * Plans every fault of a storm, determined by the seed alone. The moves of one track follow one another, and
 * the tracks are independent: a process dies while a connection is stalled and the gateway misbehaves.
 */
export function planMoves(seed: number, stormMs: number): Plan {
  const pace = stormMs >= LONG_FROM_MS ? LONG : SHORT
  const track = (stream: number, draw: Draw, at = pace) =>
    planTrack(makeDice(seed, stream), stormMs, at, draw)
  return {
    accidents: track(0, drawAccidents),
    lines: track(1, drawLines),
    gateway: track(2, drawGateway),
    ledger: track(3, drawLedger, { ...pace, gapMs: LAG_GAP_MS }),
    layouts: planLayouts(stormMs, pace),
    history: planHistory(makeDice(seed, 4), stormMs),
  }
}

type Draw = (dice: Dice, pace: Pace) => Draft[]
/** Most of the time the ledger shows the truth. */
const LAG_GAP_MS: Pace['gapMs'] = [2_000, 5_000]

/** Draws kinds from a bag that is refilled when it is empty, so that each has its turn. */
function planTrack(dice: Dice, stormMs: number, pace: Pace, draw: Draw): Move[] {
  const moves: Move[] = []
  let bag: Draft[] = []
  for (let atMs = dice.between(...pace.gapMs); atMs < stormMs; ) {
    if (bag.length === 0) bag = dice.shuffle(draw(dice, pace))
    const next = bag.pop()
    if (next === undefined) break
    moves.push({ ...next, atMs })
    atMs += next.forMs + dice.between(...pace.gapMs)
  }
  return moves
}

function drawAccidents(dice: Dice, { freezeMs }: Pace): Draft[] {
  const pick = () => dice.between(0, 9)
  return [
    { kind: 'kill', who: 'serving', pick: pick(), forMs: 0 },
    { kind: 'kill', who: 'working', pick: pick(), forMs: 0 },
    { kind: 'kill', who: 'working', pick: pick(), forMs: 0 },
    { kind: 'kill behind a stall', who: 'serving', pick: pick(), forMs: dice.between(500, 1_500) },
    { kind: 'kill behind a stall', who: 'working', pick: pick(), forMs: dice.between(500, 1_500) },
    { kind: 'kill database', forMs: dice.between(0, 1_500) },
    { kind: 'pause database', forMs: dice.between(1_000, 3_000) },
    { kind: 'freeze', who: 'working', pick: pick(), forMs: dice.between(1_000, freezeMs) },
    { kind: 'freeze', who: 'serving', pick: pick(), forMs: dice.between(500, 2_000) },
  ]
}

function drawLines(dice: Dice): Draft[] {
  const lines = ['database', 'gateway', 'intake'] as const
  const forMs = () => dice.between(300, 2_500)
  return [
    ...lines.map((where): Draft => ({ kind: 'cut', where, forMs: 0 })),
    ...lines.map((where): Draft => ({ kind: 'stall all', where, forMs: forMs() })),
    ...lines.map((where): Draft => ({ kind: 'stall answers', where, forMs: forMs() })),
    { kind: 'refuse', where: dice.oneOf(lines), forMs: forMs() },
  ]
}

function drawGateway(dice: Dice): Draft[] {
  const fault = (fault: Omit<Fault, 'command' | 'probability'>): Draft => ({
    kind: 'fault',
    forMs: dice.between(500, 2_500),
    fault: {
      command: dice.oneOf(['QUERY_PT', 'REFUND', '*']),
      probability: dice.oneOf([0.3, 0.6, 1]),
      ...fault,
    },
  })
  const mode = (ipn: string): Draft => ({
    kind: 'refund mode',
    forMs: dice.between(1_000, 3_000),
    mode: { ipn, guardsBalance: false, settleMs: dice.oneOf([0, 50, 300]) },
  })
  const silences = ['http500', 'reset', 'garbage', 'truncate', 'acceptThenReset', 'acceptThenHang']
  return [
    fault({ kind: 'delay', delayMs: dice.between(50, 1_500) }),
    ...silences.map((kind) => fault({ kind })),
    fault({ kind: 'acceptThenCode', code: dice.oneOf([1, 33, 99]) }),
    fault({ kind: 'code', code: dice.oneOf([1, 32, 213]) }),
    ...['early', 'late', 'twice', 'never'].map(mode),
    { kind: 'settle by hand', failing: dice.oneOf([0.3, 1]), forMs: dice.between(500, 1_500) },
  ]
}

/** Less than REFUND_CONFIRM_FAILED_MS of the stage: that has to exceed the lag of a gateway's ledger. */
function drawLedger(dice: Dice): Draft[] {
  return [{ kind: 'lagging ledger', forMs: dice.between(800, 4_000) }]
}

/** The standby takes over first: one that had followed until then could not follow a database that is set back. */
function planHistory(dice: Dice, stormMs: number): Move[] {
  const part = (from: number, to: number) => dice.between(from * stormMs, to * stormMs)
  const copyAtMs = part(0.35, 0.45)
  const backAtMs = copyAtMs + dice.between(2_000, Math.min(LOST_MS, 0.25 * stormMs))
  const processes = dice.oneOf(['go on', 'restart'] as const)
  return [
    { kind: 'fail over', atMs: part(0.15, 0.3), forMs: 0 },
    { kind: 'copy database', atMs: copyAtMs, forMs: 0 },
    { kind: 'set back database', processes, atMs: backAtMs, forMs: 0 },
  ]
}

/** The longest time whose commits are lost. */
const LOST_MS = 20_000

function planLayouts(stormMs: number, { layoutMs }: Pace): Move[] {
  const changes = Math.max(1, Math.floor((stormMs - 1) / layoutMs))
  return Array.from({ length: changes }, (_, index) => ({
    kind: 'layout',
    layout: index % 2 === 0 ? 'all' : 'split',
    atMs: (index + 1) * layoutMs,
    forMs: 0,
  }))
}

/** Formats a move as a line of the log. */
export function describeMove({ atMs, forMs, ...move }: Move): string {
  const { kind, ...more } = move
  const details = Object.values(more).map((value) =>
    typeof value === 'object' ? JSON.stringify(value) : String(value),
  )
  const length = forMs > 0 ? ` for ${forMs} ms` : ''
  return `${(atMs / 1_000).toFixed(1).padStart(6)} s  ${kind} ${details.join(' ')}${length}`
}

/** Reproducible random choices. */
export type Dice = {
  /** An integer from `from` to `to`, both inclusive. */
  between(from: number, to: number): number
  chance(probability: number): boolean
  oneOf<T>(items: readonly [T, ...T[]]): T
  shuffle<T>(items: readonly T[]): T[]
}

/** @param stream separates the choices of one part of a run from those of another with the same seed */
export function makeDice(seed: number, stream: number): Dice {
  const random = makeRandom(
    (Math.imul(seed, 0x9e37_79b1) ^ Math.imul(stream + 1, 0x85eb_ca6b)) >>> 0,
  )
  const between = (from: number, to: number) => from + Math.floor(random() * (to - from + 1))
  return {
    between,
    chance: (probability) => random() < probability,
    oneOf: (items) => items[between(0, items.length - 1)] ?? items[0],
    shuffle(items) {
      const left = [...items]
      return items.flatMap(() => left.splice(between(0, left.length - 1), 1))
    },
  }
}
