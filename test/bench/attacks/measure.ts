import { fork } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { findBuilt } from '../build.ts'
import { keepChild } from '../children.ts'
import { latencyOf } from '../load-client.ts'
import { ACCOUNT, makeNotification, OTHER } from '../notifications.ts'
import { type Started, startService } from '../processes.ts'
import { type Measure, median, percentile } from '../report.ts'
import { alternate, compare } from '../rounds.ts'
import type { Stage } from '../stage.ts'
import { prepareAttacks, SCENARIOS, type Scenario } from './scenarios.ts'

/** Notifications a second of the account that is not attacked. */
const RATE = 50
/** How long an attack goes on before the other account is looked at (ms). */
const WARM_MS = 1_000

type Round = { p99: number; refused: number }

/**
 * How long one account waits while another one's key, or somebody without a key, does their worst: p99 under attack
 * over p99 of an idle service. The process serves and works, as one that runs alone does.
 */
export async function measureAttacks(stage: Stage, size: number): Promise<Measure[]> {
  await prepareAttacks(stage.database.sql)
  const folder = await mkdtemp(join(tmpdir(), 'ipn-attacks-'))
  const file = join(folder, 'merchants.json')
  const accounts = [ACCOUNT, OTHER].map(({ merchantCode, secret }) => ({ merchantCode, secret }))
  await writeFile(file, JSON.stringify(accounts))
  const { database, gateway, profiles } = stage
  const service = await startService(database.url, gateway.url, 'all', profiles, {
    MERCHANTS_FILE: file,
    GATEWAY_MERCHANT_CODE: '',
    GATEWAY_SECRET: '',
  })
  try {
    const measures: Measure[] = []
    for (const scenario of SCENARIOS) {
      const measure = await measureScenario(stage, size, service, scenario)
      console.log(`${measure.name}: ${measure.result.toFixed(2)}  ${measure.value}`)
      measures.push(measure)
    }
    return measures
  } finally {
    await service.stop()
    await rm(folder, { recursive: true })
  }
}

async function measureScenario(
  stage: Stage,
  size: number,
  { url }: Started,
  scenario: Scenario,
): Promise<Measure> {
  const look = async (): Promise<Round> =>
    scenario.measures === 'settled' ? await watchSettling(stage, url) : await watchAck(stage, url)
  const of = await alternate(['idle', 'attacked'] as const, 3, async (name) => {
    if (name === 'idle') return await look()
    const attacker = keepChild(fork(findBuilt('test/bench/attacks/attacker.ts'), { execArgv: [] }))
    attacker.send(scenario.job(url))
    await sleep(WARM_MS)
    try {
      return await look()
    } finally {
      attacker.kill('SIGKILL')
      await sleep(WARM_MS)
    }
  })
  const measure = compare({
    name: `p99 of another account (${scenario.measures}) under ${scenario.name} / idle`,
    size,
    unit: 'ms',
    digits: 1,
    service: of('attacked').map(({ p99 }) => p99),
    baseline: of('idle').map(({ p99 }) => p99),
    target: { atMost: 3 },
  })
  const refused = of('attacked').reduce((sum, round) => sum + round.refused, 0)
  return refused === 0 ? measure : { ...measure, value: `${measure.value}, ${refused} refused` }
}

async function watchAck({ load, effort }: Stage, url: string): Promise<Round> {
  const job = { kind: 'ipn', account: OTHER, urls: [url], connections: 32, rate: RATE } as const
  const result = await load.tryRun({ ...job, forMs: effort.roundMs })
  const sent = Object.values(result.statuses).reduce((sum, count) => sum + count, 0)
  return { p99: latencyOf(result, 99), refused: sent - result.count }
}

/** From sending a notification to a payment that can be read, one after the other. */
async function watchSettling({ effort }: Stage, url: string): Promise<Round> {
  const pool = new Pool(url, { headersTimeout: 60_000 })
  const taken: number[] = []
  let refused = 0
  const ends = performance.now() + effort.roundMs
  while (performance.now() < ends) {
    const started = performance.now()
    if (!(await readPaid(pool))) refused += 1
    taken.push(performance.now() - started)
  }
  await pool.close()
  return { p99: taken.length > 1 ? percentile(taken, 99) : median(taken), refused }
}

async function readPaid(pool: Pool): Promise<boolean> {
  const { transactionId, body } = makeNotification(OTHER)
  const headers = { 'content-type': 'application/json' }
  const ack = await pool.request({ path: '/ipn', method: 'POST', headers, body })
  await ack.body.dump()
  const path = `/v1/transactions/${transactionId}?wait=30`
  const authorization = `Bearer ${OTHER.apiKey}`
  const answer = await pool.request({ path, method: 'GET', headers: { authorization } })
  return (await answer.body.text()).includes('"state":"paid"')
}
