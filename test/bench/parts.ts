import { measureAttacks } from './attacks/measure.ts'
import { measureBacklog } from './backlog.ts'
import { measureConsole } from './console.ts'
import { measureIndexes } from './indexes.ts'
import { measureAck, measureIntake } from './intake.ts'
import { measureMemory } from './memory.ts'
import { measureReads } from './reads.ts'
import { measureRequests, measureSending } from './refunds.ts'
import { measureRemoval } from './removal.ts'
import type { Measure } from './report.ts'
import { measureSeveral } from './several.ts'
import { type Stage, settleAll } from './stage.ts'
import { measureIdle, measureStart } from './start.ts'
import { measureStripe } from './stripe/measure.ts'
import { measureSync } from './sync.ts'
import { measureReadable, measureWaiters } from './waiters.ts'

/** A part of the bench, by the names with which `--only` chooses it. */
type Part = { names: readonly string[]; measure(stage: Stage, size: number): Promise<Measure[]> }

/** On empty tables: the removal removes what was written first. */
export const FIRST: readonly Part[] = [
  {
    names: ['start'],
    measure: async (stage) => [...(await measureStart()), await measureIdle(stage.web)],
  },
  { names: ['removal'], measure: measureRemoval },
]

/** At each size; what stores the least comes first. */
export const AT_EACH_SIZE: readonly Part[] = [
  { names: ['ack'], measure: measureAck },
  { names: ['reads'], measure: measureReads },
  { names: ['console'], measure: measureConsole },
  { names: ['waiters'], measure: async (stage, size) => [await measureWaiters(stage, size)] },
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
]

/** Once, with the most stored; what changes the tables comes last. */
export const LAST: readonly Part[] = [
  {
    names: ['attacks'],
    measure: async (stage, size) => {
      await settleAll(stage)
      return await measureAttacks(stage, size)
    },
  },
  { names: ['stripe'], measure: measureStripe },
  { names: ['processes'], measure: measureSeveral },
  { names: ['memory'], measure: async (stage, size) => [await measureMemory(stage, size)] },
  { names: ['backlog'], measure: measureBacklog },
  { names: ['indexes'], measure: (stage, size) => measureIndexes(stage.database.sql, size) },
]

const NAMES = [...FIRST, ...AT_EACH_SIZE, ...LAST].flatMap(({ names }) => names)
/** Tens of minutes with millions stored, and for the schema's comments only. */
const ONLY_WHEN_NAMED = ['indexes']

/**
 * Reads a comma list of part names; an empty one chooses all but the indexes, which have to be named.
 * @throws Error if a name is unknown
 */
export function readParts(list: string): (part: Part) => boolean {
  const chosen =
    list === '' ? NAMES.filter((name) => !ONLY_WHEN_NAMED.includes(name)) : list.split(',')
  const unknown = chosen.filter((name) => !NAMES.includes(name))
  if (unknown.length > 0) {
    throw new Error(`--only knows ${NAMES.join(', ')}, and not ${unknown.join(', ')}`)
  }
  return ({ names }) => names.some((name) => chosen.includes(name))
}
