import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type BuiltWorker, buildWorker } from './crash-points/build-worker.ts'
import { type Drilled, drill, nameDrill } from './crash-points/drill.ts'
import { PLAYS } from './crash-points/plays.ts'
import { mayDraw, readDraw } from './crash-points/points.ts'
import { listFindings, writeReport } from './crash-points/report.ts'
import { CONNECTION_LOST, KILLED } from './crash-points/subjects.ts'

const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' })
const draw = readDraw(process.env.CRASH_POINTS, Boolean(process.env.CI), commit.trim())

const drills = [CONNECTION_LOST, KILLED]
  .flatMap((accident) =>
    PLAYS.map((play) => [nameDrill(accident, play), { accident, play }] as const),
  )
  .filter(([name]) => mayDraw(name, draw))

const drilled: Drilled[] = []
let worker: BuiltWorker | undefined
beforeAll(() => {
  worker = buildWorker()
})
afterAll(() => {
  worker?.remove()
  console.info(writeReport(drilled))
})

it.each(drills)(
  '%s, at every statement and every cut of the REFUND: the money moves once, and nothing is stuck',
  { timeout: 1_800_000 },
  async (_, { accident, play }) => {
    const result = await drill(accident, play, draw, worker?.file ?? '')
    drilled.push(result)
    expect(listFindings(result), writeReport([result])).toEqual([])
    expect(result.results.length).toBeGreaterThan(0)
  },
)
