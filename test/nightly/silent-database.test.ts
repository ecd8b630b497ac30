import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { listen } from '../support/gateway.ts'
import { runMain, settingsFor } from '../support/process.ts'

// It waits for two time-outs of a connection, ten seconds.
it('a start at a database that does not answer says what it waits for, and ends', async () => {
  const port = await listen(createServer())
  const { ended, output } = runMain(
    settingsFor(`postgres://u:hunter2@127.0.0.1:${port}/x`, 'http://127.0.0.1:9'),
  )
  expect(await ended).toBe(1)
  expect(output().out).toContain(
    'the database at DATABASE_URL has not answered for 5 s; the start ends after at most 20 s without an answer',
  )
  expect(output().err).toMatch(
    /^The database at DATABASE_URL is unreachable \(CONNECT_TIMEOUT\).*\n$/,
  )
})
