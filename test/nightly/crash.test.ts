import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { bundle, linkPackage } from '../support/bundle.ts'
import { type Drilled, drill, nameDrill } from './crash-points/drill.ts'
import { PLAYS } from './crash-points/plays.ts'
import { mayDraw, readDraw } from './crash-points/points.ts'
import { countResults, listFindings } from './crash-points/report.ts'
import { CONNECTION_LOST, KILLED } from './crash-points/subjects.ts'

const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' })
const draw = readDraw(process.env.CRASH_POINTS, Boolean(process.env.CI), commit.trim())

const drills = [CONNECTION_LOST, KILLED]
  .flatMap((accident) =>
    PLAYS.map((play) => [nameDrill(accident, play), { accident, play }] as const),
  )
  .filter(([name]) => mayDraw(name, draw))

const drilled: Drilled[] = []
const folder = mkdtempSync(join(tmpdir(), 'ipn-worker-'))
/** The worker in one file of JavaScript: it is started hundreds of times. */
let worker = ''
beforeAll(() => {
  linkPackage(folder)
  worker = bundle('test/nightly/crash-points/worker.ts', folder, 'worker')
})
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
  console.table(drilled.map(countResults))
})

it.each(drills)(
  '%s, at every statement and every cut of the REFUND: the money moves once, and nothing is stuck',
  { timeout: 1_800_000 },
  async (_, { accident, play }) => {
    const result = await drill(accident, play, draw, worker)
    drilled.push(result)
    expect(listFindings(result)).toEqual([])
    expect(result.results.length).toBeGreaterThan(0)
  },
)
