import { afterAll, describe, expect, it } from 'vitest'
import { findDebianPrograms } from '../support/postgres-server.ts'
import { waitUntil } from '../support/wait-until.ts'
import { cancelWaits, preparePayment, readReadiness, setReadOnly } from './failover/outages.ts'
import { type Outcome, playFailover } from './failover/play.ts'
import { type Stage, startStage } from './failover/stage.ts'
import type { ReplicationMode } from './replication.ts'

const bin = findDebianPrograms()
if (!bin) console.info('no failover drill: pg_config finds no Postgres server with pg_basebackup')

const outcomes: Outcome[] = []

/** Runs a drill on a stage of its own, and keeps the logs if it fails. */
async function onStage(mode: ReplicationMode, drill: (stage: Stage) => Promise<void>) {
  const stage = await startStage(bin ?? '', mode)
  let isOver = false
  try {
    await drill(stage)
    isOver = true
  } finally {
    await stage.stop(!isOver)
  }
}

async function play(stage: Stage, mode: ReplicationMode) {
  const played = await playFailover(stage, mode)
  outcomes.push(played.outcome)
  const report = JSON.stringify(played, undefined, 1)
  console.info(report)
  return { ...played, report }
}

it('a machine of the CI has the programs for it', () => {
  expect(bin !== undefined || process.env.CI === undefined).toBe(true)
})

describe.skipIf(!bin)('the primary is killed under load, and the standby promoted', () => {
  afterAll(() => console.table(outcomes))

  it('synchronous: nothing acknowledged is lost, nothing moves twice, and no cancelled wait is acknowledged', async () => {
    await onStage('synchronous', async (stage) => {
      const { lost, forgotten, findings, refunds, report } = await play(stage, 'synchronous')
      expect({ lost, forgotten, findings }, report).toEqual({
        lost: [],
        forgotten: [],
        findings: [],
      })
      expect(Object.keys(refunds), report).toEqual(['succeeded'])

      await stage.replication.rebuildStandby()
      const send = await preparePayment(stage, 'WAITS')
      await stage.replication.standby().kill()
      for (const time of ['first', 'repeated']) {
        const answers = await cancelWaits(stage, send)
        expect(answers.notification, time).toBeGreaterThanOrEqual(500)
        expect(answers, time).toMatchObject({ refund: 503, retryAfter: '1' })
      }
      await stage.replication.standby().start()
      expect(await send()).toMatchObject({ notification: 200, refund: 202 })

      await setReadOnly(stage, 'on')
      await waitUntil(async () => (await readReadiness(stage)) === 503, { what: 'not ready' })
      const answers = await send()
      expect(answers.notification).toBeGreaterThanOrEqual(500)
      expect(answers).toMatchObject({ refund: 503, retryAfter: '1' })
      await setReadOnly(stage, 'off')
      await waitUntil(async () => (await readReadiness(stage)) === 200, { what: 'ready' })
      expect(await send()).toMatchObject({ notification: 200, refund: 202 })
    })
  }, 180_000)

  it('asynchronous: what the standby did not have is lost, and repeated requests move no money twice', async () => {
    await onStage('asynchronous', async (stage) => {
      const { lost, forgotten, findings, report } = await play(stage, 'asynchronous')
      expect(forgotten.length, report).toBeGreaterThan(0)
      const rules = new Set(lost.map(({ rule }) => rule))
      expect(rules, report).toContain('an acknowledged notification is stored')
      expect(rules, report).toContain('an acknowledged refund is stored as requested')
      expect(
        findings.filter(({ damage }) => damage === 'doubled'),
        report,
      ).toEqual([])
    })
  }, 180_000)
})
