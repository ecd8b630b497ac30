import { randomInt } from 'node:crypto'
import { expect, it } from 'vitest'
import { writeCommand, writeReport } from '../scenarios/chaos/report.ts'
import { runChaos } from '../scenarios/chaos/run.ts'

const STORM_MS = 30_000
const PER_S = 6

it('half a minute of killed processes, a killed database, cut connections and a misbehaving gateway: nothing acknowledged is lost, nothing doubled, nothing stuck', async () => {
  const seed = Number(process.env.CHAOS_SEED ?? (process.env.CI ? 1 : randomInt(1_000_000)))
  const command = writeCommand(seed, STORM_MS, PER_S)
  console.log(command)
  const lines = [command]
  const log = (line: string) => void lines.push(line)
  const result = await runChaos({
    seed,
    stormMs: STORM_MS,
    perS: PER_S,
    quietMs: 100_000,
    webhooks: false,
    log,
  }).catch((error: unknown) => {
    throw new Error(lines.join('\n'), { cause: error })
  })
  const told = [...lines, writeReport(result)].join('\n')
  expect(result.problems, told).toEqual([])
  expect(result.refusals, told).toEqual([])
  const { counts, ledgers } = result
  expect(counts.get('kill -9 database'), told).toBeGreaterThanOrEqual(1)
  const kills = [...counts].filter(([name]) => /^kill -9 (web|worker|all)/.test(name))
  expect(
    kills.reduce((sum, [, n]) => sum + n, 0),
    told,
  ).toBeGreaterThanOrEqual(3)
  expect(ledgers.stored.notifications.length, told).toBeGreaterThan(50)
  expect(ledgers.moved.movements.length, told).toBeGreaterThan(20)
}, 200_000)
