import { measureCapacity } from './capacity.ts'
import { measureAck, measureIntake } from './intake.ts'
import { measureMemory } from './memory.ts'
import { measureReads } from './reads.ts'
import { measureRequests, measureSending } from './refunds.ts'
import type { Measure } from './report.ts'
import { type Stage, settleAll } from './stage.ts'
import { measureIdle, measureStart } from './start.ts'
import { measureStripe } from './stripe/measure.ts'
import { measureReadable, measureSync } from './sync.ts'

/** A part of the bench, by the names with which `--only` chooses it. */
type Part = { names: readonly string[]; measure(stage: Stage, size: number): Promise<Measure[]> }

/** On empty tables. */
export const FIRST: readonly Part[] = [
  {
    names: ['start'],
    measure: async (stage) => [...(await measureStart()), await measureIdle(stage.web)],
  },
]

/** At each size; what stores the least comes first. */
export const AT_EACH_SIZE: readonly Part[] = [
  { names: ['ack'], measure: measureAck },
  { names: ['reads'], measure: measureReads },
  {
    names: ['refunds'],
    measure: async (stage, size) => [
      await measureRequests(stage, size),
      await measureSending(stage, size),
    ],
  },
  {
    names: ['readable'],
    measure: async (stage, size) => {
      await settleAll(stage)
      return [await measureReadable(stage, size)]
    },
  },
  {
    names: ['sync'],
    measure: async (stage, size) => {
      await settleAll(stage)
      return await measureSync(stage, size)
    },
  },
  {
    names: ['intake', 'cost'],
    measure: async (stage, size) => {
      const { intake, cost } = await measureIntake(stage, size)
      await settleAll(stage)
      return [...intake, ...cost]
    },
  },
  { names: ['capacity'], measure: measureCapacity },
]

/** Once, with the most stored. */
export const LAST: readonly Part[] = [
  { names: ['stripe'], measure: measureStripe },
  { names: ['memory'], measure: async (stage, size) => [await measureMemory(stage, size)] },
]

const NAMES = [...FIRST, ...AT_EACH_SIZE, ...LAST].flatMap(({ names }) => names)

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
  return ({ names }) => names.some((name) => chosen.includes(name))
}
