import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chooseServer } from '../../support/start-database.ts'
import type { Guard } from '../guards/guard.ts'
import { GUARDS, LEAST_GUARDS } from '../guards.ts'
import { findTypeErrors } from './check-types.ts'
import { drawTenth, selectGuards } from './choose.ts'
import { judge } from './judge.ts'
import { copyTree, countOccurrences } from './tree.ts'
import { playInWorkers } from './workers.ts'

/**
 * Plays the ledger of guards: every row, or with `--only=TEXT` those whose file, test or claim contains it, or with
 * `GUARDS=tenth` a tenth drawn by the commit. Exits with 1 if a row does not prove its guard.
 */
const { values } = parseArgs({
  options: { only: { type: 'string', default: '' } },
  strict: false,
})
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const WORKERS = 2

const startedAt = performance.now()
const chosen = choose(String(values.only))
const trees = Array.from({ length: WORKERS }, () => copyTree(ROOT))
const server = await chooseServer()
const faults = new Map<Guard, string>()
process.once('exit', () => {
  for (const tree of trees) tree.remove()
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
await play()
await server.stop()
report()
process.exit(faults.size > 0 || chosen.length === 0 || GUARDS.length < LEAST_GUARDS ? 1 : 0)

function choose(only: string): Guard[] {
  const selected = selectGuards(GUARDS, only)
  if (process.env.GUARDS !== 'tenth') return selected
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' })
  return drawTenth(selected, commit)
}

async function play(): Promise<void> {
  const roots = trees.map(({ root }) => root)
  const [first = ''] = roots
  for (const guard of chosen) {
    note(guard, judge(guard, { occurrences: countOccurrences(first, guard) }))
  }
  // Beside each other, tests of one file find it transformed.
  const sorted = listSound().sort((a, b) => (a.test < b.test ? -1 : 1))
  const indexes = sorted.map((guard) => GUARDS.indexOf(guard))
  await playInWorkers(roots, indexes, server.url, ({ index, fault, tookMs }) => {
    const guard = GUARDS[index]
    if (guard === undefined) return
    if (fault === null) console.log(`red, ${Math.round(tookMs)} ms: ${guard.claim}`)
    else note(guard, fault)
  })
  const typeErrors = await findTypeErrors(first, listSound())
  for (const [guard, typeError] of typeErrors) {
    note(guard, judge(guard, { occurrences: 1, typeError }))
  }
}

/** Rows without a fault until now. */
function listSound(): Guard[] {
  return chosen.filter((guard) => !faults.has(guard))
}

function note(guard: Guard, fault: string | undefined): void {
  if (fault === undefined) return
  faults.set(guard, fault)
  console.log(writeFault(guard, fault))
}

/** Which row it is: where its text stands, and its first line. */
function writeFault({ file, text }: Guard, fault: string): string {
  const [line = ''] = text.trim().split('\n')
  return `NOT PROVED: ${file}, “${line.slice(0, 80)}”: ${fault}`
}

function report(): void {
  const proved = describe(listSound().length)
  console.log(`\n${proved} of ${GUARDS.length} proved, ${faults.size} not, in ${describeTime()}`)
  for (const [guard, fault] of faults) console.log(writeFault(guard, fault))
  if (chosen.length === 0)
    console.log('No row was chosen: --only has to be in a file, test or claim')
  if (GUARDS.length < LEAST_GUARDS) {
    console.log(`The ledger has ${GUARDS.length} rows, fewer than ${LEAST_GUARDS}`)
  }
}

function describe(count: number): string {
  return count === 1 ? '1 row' : `${count} rows`
}

function describeTime(): string {
  return `${Math.round((performance.now() - startedAt) / 1_000)} s`
}
