import { readdirSync } from 'node:fs'
import { z } from 'zod'
import { Guard } from './guards/guard.ts'

const FOLDER = new URL('./guards/', import.meta.url)
/** Every file exports a list. */
const Lists = z.record(z.string(), z.array(Guard))

const names = readdirSync(FOLDER)
  .map((file) => file.replace(/\.ts$/, ''))
  .filter((name) => name !== 'guard')
const lists = await Promise.all(
  names.toSorted().map(async (name) => Lists.parse({ ...(await import(`./guards/${name}.ts`)) })),
)

/** Every guard and the test that notices its absence. Played by `npm run test:nightly -- guards`. */
export const GUARDS: readonly Guard[] = lists.flatMap((list) => Object.values(list).flat())

/** How many rows there are at least. It falls only with a feature that is removed. */
export const LEAST_GUARDS = 496
