import { measureCapacity } from './capacity.ts'
import { measureIntake } from './intake.ts'
import { measureMemory } from './memory.ts'
import { measureReads } from './reads.ts'
import { measureRefunds } from './refunds.ts'
import type { Measure } from './report.ts'
import type { Stage } from './stage.ts'
import { measureIdle, measureStart } from './start.ts'
import { measureStripe } from './stripe/measure.ts'
import { measureSync } from './sync.ts'

/** A part of the bench, with the name by which `--only` chooses it. */
type Part = { name: string; measure(stage: Stage, size: number): Promise<Measure[]> }

/** On empty tables. */
export const FIRST: readonly Part[] = [
  {
    name: 'start',
    measure: async ({ web }) => [...(await measureStart()), await measureIdle(web)],
  },
]

/** At each size; what stores the least comes first. */
export const AT_EACH_SIZE: readonly Part[] = [
  { name: 'reads', measure: measureReads },
  { name: 'refunds', measure: measureRefunds },
  { name: 'sync', measure: measureSync },
  { name: 'intake', measure: measureIntake },
  { name: 'capacity', measure: measureCapacity },
]

/** Once, with the most stored. */
export const LAST: readonly Part[] = [
  { name: 'stripe', measure: measureStripe },
  { name: 'memory', measure: async (stage, size) => [await measureMemory(stage, size)] },
]

const NAMES = [...FIRST, ...AT_EACH_SIZE, ...LAST].map(({ name }) => name)

/**
 * Reads a comma list of part names; an empty one chooses all.
 * @throws Error if a name is unknown
 */
export function readParts(list: string): (part: Part) => boolean {
  const chosen = list === '' ? NAMES : list.split(',')
  const unknown = chosen.filter((name) => !NAMES.includes(name))
  if (unknown.length > 0) {
    throw new Error(`--only knows ${NAMES.join(', ')}, and not ${unknown.join(', ')}`)
  }
  return ({ name }) => chosen.includes(name)
}
