import { parseArgs } from 'node:util'
import { createBaselineTables } from './baselines/tables.ts'
import { startServer } from './database.ts'
import { fill, OF_BASELINES, OF_SERVICE } from './fill.ts'
import { AT_EACH_SIZE, FIRST, LAST, readParts } from './parts.ts'
import { drawPlot } from './plot.ts'
import { build, stopOnExit } from './processes.ts'
import {
  compareSizes,
  describeMachine,
  type Measure,
  writeReport,
  writeSize,
  writeTable,
} from './report.ts'
import { type Effort, type Stage, startStage } from './stage.ts'

const FOLDER = 'bench-results'
const FULL: Effort = {
  rounds: 5,
  roundMs: 4_000,
  synced: 4_000,
  refunded: 200,
  notified: 50_000,
}
/** Shows that everything works; its figures mean nothing. */
const SHORT: Effort = {
  rounds: 1,
  roundMs: 500,
  synced: 200,
  refunded: 20,
  notified: 2_000,
}

/** Everything in one run on one machine, each figure beside its baseline. */
const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '10000,1000000,5000000' },
    /** Only these parts, a comma list; all when not set. */
    only: { type: 'string', default: '' },
    short: { type: 'boolean', default: false },
    /** Writes a CPU profile of each process of the service. */
    profile: { type: 'boolean', default: false },
  },
})
const sizes = values.sizes.split(',').map(Number)
const isChosen = readParts(values.only)
const measures: Measure[] = []
const failures: string[] = []

stopOnExit()
await build()
const server = await startServer()
const machine = describeMachine(server.name)
try {
  const beside = await server.create('baselines')
  await createBaselineTables(beside.sql)
  const profiles = values.profile ? `${FOLDER}/profiles` : undefined
  const stage = await startStage(server, beside, values.short ? SHORT : FULL, profiles)
  try {
    await measureAll(stage)
  } finally {
    await stage.stop()
  }
} finally {
  await server.stop()
}
measures.push(...compareSizes(measures, sizes))
await writeReport(measures, machine, FOLDER)
await drawPlot(measures, FOLDER)
console.log(`\n${machine}\n\n${writeTable(measures)}\n\nwritten to ${FOLDER}`)
for (const failure of failures) console.log(failure)
process.exitCode = failures.length > 0 ? 1 : 0

async function measureAll(stage: Stage): Promise<void> {
  let stored = 0
  await runParts(FIRST, stage, stored)
  for (const size of sizes) {
    console.log(`filling up to ${writeSize(size)} transactions`)
    await fill(stage.database.sql, OF_SERVICE, stored, size)
    await fill(stage.beside.sql, OF_BASELINES, stored, size)
    stored = size
    await runParts(AT_EACH_SIZE, stage, stored)
  }
  await runParts(LAST, stage, stored)
}

/** A part that fails does not take the others with it. */
async function runParts(parts: typeof FIRST, stage: Stage, size: number): Promise<void> {
  for (const part of parts.filter(isChosen)) {
    try {
      const of = await part.measure(stage, size)
      for (const { name, result, value, baseline } of of) {
        console.log(`${writeSize(size)}: ${name}: ${result.toFixed(2)}  ${value}  ${baseline}`)
      }
      measures.push(...of)
    } catch (error) {
      failures.push(`${part.name} at ${writeSize(size)} failed: ${String(error)}`)
      console.log(error)
    }
    await writeReport(measures, machine, FOLDER)
  }
}
