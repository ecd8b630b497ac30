import { createHash } from 'node:crypto'
import { CUTS, type Cut } from './request-proxy.ts'
import type { Edge } from './statement-proxy.ts'
import type { Accident } from './subjects.ts'

/** A place on the path at which something happens. */
export type Point = { name: string } & (
  | { kind: 'statement'; statement: string; edge: Edge }
  | { kind: 'call'; cut: Cut }
)

/** Lists the points of a play: both sides of every statement, and every cut of the REFUND, if it sends one. */
export function listPoints(
  statements: readonly string[],
  sends: boolean,
  accident: Accident['name'],
): Point[] {
  const edges = ['before', 'after'] as const
  const ofStatements = statements.flatMap((statement) =>
    edges.map(
      (edge): Point => ({
        kind: 'statement',
        name: `${statement}, ${edge}`,
        statement,
        edge,
      }),
    ),
  )
  // A process that is refused lives on: it is killed once it is connected.
  const cuts = CUTS.filter((cut) => accident !== 'kill -9' || cut !== 'before the connection')
  const ofCalls = cuts.map((cut): Point => ({ kind: 'call', name: `REFUND, ${cut}`, cut }))
  return sends ? [...ofStatements, ...ofCalls] : ofStatements
}

/** Which points are played: all of them, a fifth drawn by a commit, or those whose name begins with a text. */
export type Draw =
  | { kind: 'all' }
  | { kind: 'fifth'; seed: string }
  | { kind: 'named'; text: string }

/** @param choice `all`, `fifth`, or the beginning of names; by default a fifth in CI, otherwise all */
export function readDraw(choice: string | undefined, isCi: boolean, commit: string): Draw {
  const chosen = choice || (isCi ? 'fifth' : 'all')
  if (chosen === 'all') return { kind: 'all' }
  return chosen === 'fifth' ? { kind: 'fifth', seed: commit } : { kind: 'named', text: chosen }
}

/** Whether points of this drill may be drawn. */
export function mayDraw(of: string, draw: Draw): boolean {
  if (draw.kind !== 'named') return true
  return `${of}: `.startsWith(draw.text) || draw.text.startsWith(`${of}: `)
}

const PART = 5

/**
 * Draws points, in their order. Two seeds draw different fifths, so that successive commits play different points.
 * @param of names what the points belong to
 */
export function drawPoints(points: readonly Point[], of: string, draw: Draw): Point[] {
  if (draw.kind === 'all') return [...points]
  if (draw.kind === 'named') {
    return points.filter(({ name }) => `${of}: ${name}`.startsWith(draw.text))
  }
  const rank = ({ name }: Point) =>
    createHash('sha256').update(`${draw.seed} ${of} ${name}`).digest('hex')
  const ranked = points.map((point) => ({ point, rank: rank(point) }))
  const drawn = ranked
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, Math.ceil(points.length / PART))
  return points.filter((point) => drawn.some((one) => one.point === point))
}
