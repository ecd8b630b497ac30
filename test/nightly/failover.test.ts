import { expect, it } from 'vitest'
import { findDebianPrograms } from '../support/postgres-server.ts'
import { playFailover } from './failover/play.ts'
import { startStage } from './failover/stage.ts'

const bin = findDebianPrograms()
if (!bin) console.info('no failover drill: pg_config finds no Postgres server with pg_basebackup')

it('a machine of the CI has the programs for it', () => {
  expect(bin !== undefined || process.env.CI === undefined).toBe(true)
})

// The chaos suite and the runbooks lose a primary whose standby is synchronous: there nothing is lost.
it.skipIf(!bin)(
  'a primary is killed under load, and its asynchronous standby promoted: what it did not have is lost, and repeated requests move no money twice',
  async () => {
    const stage = await startStage(bin ?? '')
    let isOver = false
    try {
      const played = await playFailover(stage)
      const { lost, forgotten, findings } = played
      const report = JSON.stringify(played, undefined, 1)
      console.info(report)
      expect(forgotten.length, report).toBeGreaterThan(0)
      const rules = new Set(lost.map(({ rule }) => rule))
      expect(rules, report).toContain('an acknowledged notification is stored')
      expect(rules, report).toContain('an acknowledged refund is stored as requested')
      expect(
        findings.filter(({ damage }) => damage === 'doubled'),
        report,
      ).toEqual([])
      isOver = true
    } finally {
      await stage.stop(!isOver)
    }
  },
  180_000,
)
