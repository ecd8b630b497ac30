import { parseArgs } from 'node:util'
import { build } from './build.ts'
import { startBenchDatabase } from './database.ts'
import { fill } from './fill.ts'
import { measureIndexes } from './indexes.ts'
import { measureAck, measureCost, measureIntake } from './intake.ts'
import { measureMemory, measureScale } from './long.ts'
import { drawPlots } from './plot.ts'
import { measureReads, measureWaiters } from './reads.ts'
import { measureRequest, measureSending } from './refunds.ts'
import { measureRemoval } from './removal.ts'
import { describeMachine, type Measure, writeReport, writeSize } from './report.ts'
import { type Stage, startStage } from './stage.ts'
import { measureIdle, measureStart } from './start.ts'
import { measureReadable, measureSync, settleAll } from './sync.ts'

const FOLDER = 'bench-results'

/** Everything in one run on one machine, each figure beside its baseline. */
const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '10000,1000000,5000000' },
    /** Leaves out what takes minutes: memory after 500 thousand, and several processes. */
    short: { type: 'boolean', default: false },
    /** Only these, a comma list: intake, cost, reads, waiters, readable, sync, refunds, removal; indexes has to be named. */
    only: { type: 'string', default: '' },
    /** Writes a CPU profile of each serving or working process. */
    profile: { type: 'boolean', default: false },
  },
})
const sizes = values.sizes.split(',').map(Number)
await build()
const measures: Measure[] = await measureStart()
const database = await startBenchDatabase()
const machine = describeMachine(database.name)
let stage: Stage | undefined
try {
  stage = await startStage(database, values.profile ? `${FOLDER}/profiles` : undefined)
  measures.push(await measureIdle(stage.web))
  // On empty tables: what is removed is what was written first.
  if (wanted('removal') && !(values.short && !values.only))
    measures.push(...(await measureRemoval(stage)))
  let stored = 0
  for (const size of sizes) {
    console.log(`filling up to ${writeSize(size)} transactions`)
    await fill(database.sql, stored, size)
    stored = size
    measures.push(...(await measureAll(stage, size)))
  }
  measures.push(...compareSizes(measures, sizes))
  if (!values.short) {
    measures.push(...(await measureScale(stage, stored)), await measureMemory(stage, stored))
  }
} finally {
  await stage?.stop()
  await database.stop()
}
await writeReport(measures, machine, FOLDER)
await drawPlots(measures, FOLDER)

function wanted(group: string): boolean {
  return !values.only || values.only.split(',').includes(group)
}

async function measureAll(on: Stage, size: number): Promise<Measure[]> {
  const of: Measure[] = []
  if (wanted('intake')) {
    const { measures: intake, oneInsertRate } = await measureIntake(on, size)
    of.push(...intake, ...(await measureAck(on, size, oneInsertRate)))
  }
  if (wanted('cost')) of.push(...(await measureCost(on, size)))
  await settleAll(on)
  if (wanted('reads')) of.push(...(await measureReads(on, size)))
  if (wanted('waiters')) of.push(await measureWaiters(on, size))
  if (wanted('readable')) of.push(await measureReadable(on, size))
  if (wanted('sync')) of.push(await measureSync(on, size))
  if (wanted('refunds')) {
    of.push(...(await measureRequest(on, size)), await measureSending(on, size))
  }
  if (values.only.includes('indexes')) of.push(...(await measureIndexes(database.sql, size)))
  for (const { name, result, value, baseline } of of) {
    console.log(`${writeSize(size)}: ${name}: ${result.toFixed(2)}  ${value}  ${baseline}`)
  }
  return of
}

/** What grows with the number of stored transactions, between the least and the most. */
function compareSizes(all: readonly Measure[], of: readonly number[]): Measure[] {
  const [least, most] = [Math.min(...of), Math.max(...of)]
  return all.flatMap(({ name, size, growing }) => {
    const small = all.find((one) => one.name === name && one.size === least)?.growing
    if (!growing || !small || size !== most || least === most) return []
    return {
      name: `${name.split(' / ')[0]}: at ${writeSize(most)} / at ${writeSize(least)}`,
      size,
      result: growing.figure / small.figure,
      value: growing.figure.toFixed(2),
      baseline: small.figure.toFixed(2),
      target: { atMost: growing.atMost },
    }
  })
}
