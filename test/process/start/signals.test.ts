import { execFileSync } from 'node:child_process'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeFolder } from '../../support/embedded.ts'
import { runMain, settingsFor } from '../../support/process.ts'
import { MERCHANT } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const database = useTestDatabase()

/** Starts a process that reads its accounts from a pipe, and returns when it waits there for them. */
async function startReading() {
  const file = join(makeFolder(), 'merchants.json')
  execFileSync('mkfifo', [file])
  const {
    GATEWAY_MERCHANT_CODE: _,
    GATEWAY_SECRET: __,
    ...settings
  } = settingsFor(database.url, 'http://127.0.0.1:9')
  const main = runMain({ ...settings, ROLE: 'web', MERCHANTS_FILE: file })
  const pipe = await open(file, 'w')
  return { ...main, pipe }
}

it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  '%s while a process reads its settings ends it with 0',
  async (signal) => {
    const { child, pipe, ended, output } = await startReading()
    child.kill(signal)
    await pipe.writeFile(JSON.stringify([MERCHANT]))
    await pipe.close()
    expect(await ended).toBe(0)
    expect(output()).toMatchObject({ err: '' })
    expect(output().out).not.toContain('"ready"')
  },
)

it('SIGTERM while an embedded database is migrated stops both, without an error and with 0', async () => {
  const { child, ended, output } = runMain({
    DATA_DIR: join(makeFolder(), 'data'),
    LOG_LEVEL: 'info',
    PORT: '0',
    SANDBOX_PORT: '0',
  })
  await waitUntil(() => output().out.includes('applied a migration'), { what: 'a migration' })
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
  expect(output().err).toBe('')
  expect(output().out).toMatch(/"signal":"SIGTERM",.*"stopping: .*\n(.*\n)*.*"msg":"stopped"}\n$/)
})
