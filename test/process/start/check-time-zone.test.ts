import { expect, it } from 'vitest'
import { runCheck } from '../../../src/cli/check.ts'
import { settingsFor } from '../../support/process.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

it('--check fails for a time zone that the database does not know, as the start does', async () => {
  // Node accepts it; the list of Postgres has no such name.
  const CAPS_TIME_ZONE = 'VST'
  const { ok, checks } = await runCheck({
    ...settingsFor(database.url, 'http://127.0.0.1:9'),
    CAPS_TIME_ZONE,
  })
  expect(ok).toBe(false)
  expect(checks.find(({ name }) => name === 'database')).toMatchObject({ status: 'failed' })
})
