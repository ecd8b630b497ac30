import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { withKey } from '../support/api.ts'
import { forgetNewest } from '../support/migrations.ts'
import { runMain, runNode, settingsFor } from '../support/process.ts'
import { KEY } from '../support/service.ts'
import { useTestDatabase } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

const database = useTestDatabase()

const GATEWAY = 'http://127.0.0.1:9'

async function waitForEnd({ ended, output }: Pick<ReturnType<typeof runMain>, 'ended' | 'output'>) {
  const code = await ended
  const { out, err } = output()
  return { code, out, lines: err.trimEnd().split('\n') }
}

const runToEnd = (env: Record<string, string>) => waitForEnd(runMain(env))

const Package = z.object({ scripts: z.object({ start: z.string() }) })

/** Runs what `npm start` runs. */
function runStart(env: Record<string, string>) {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const { scripts } = Package.parse(JSON.parse(file))
  const [exec, node, ...args] = scripts.start.split(' ')
  expect([exec, node]).toEqual(['exec', 'node'])
  return waitForEnd(runNode(args, env))
}

it('the demo with a gateway and a key of your own prints the source of the key and three commands to try', async () => {
  const { output, ended, child } = runMain({
    ...settingsFor(database.url, GATEWAY),
    DEMO: 'true',
    ROLE: 'web',
  })
  await waitUntil(() => output().out.includes('Ctrl-C'), { what: 'the banner' })
  const banner = output().out.slice(output().out.indexOf('IPN processor, demo mode'))
  expect(banner).toContain(`API key   ${KEY}   (from the setting API_KEY)\n`)
  expect(banner).toMatch(/^Console {3}http:\/\/localhost:\d+\/console\/sign-in\/[\w-]{43}$/m)
  expect(banner).toContain('once, within 10 minutes; a restart makes a new link')
  const tries = banner.split('\n').filter((line) => line.startsWith('  curl '))
  expect(tries).toHaveLength(3)
  for (const line of tries) {
    const [, url = ''] = /(http[^\s']+)'?$/.exec(line) ?? []
    expect((await fetch(url, withKey())).status).toBe(200)
  }
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})

it('what npm start runs gives one readable line for a DATA_DIR that cannot be made', async () => {
  // Node's recursive mkdir never ends there.
  const { code, lines } = await runStart({ DATA_DIR: '/proc/foo', PORT: '0', SANDBOX_PORT: '0' })
  expect(code).toBe(1)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(/\/proc\/foo.* DATA_DIR/)
  const own = { DATABASE_URL: database.url, DEMO: 'true', DATA_DIR: '/proc/foo' }
  const other = await runToEnd({ ...own, PORT: '0', SANDBOX_PORT: '0' })
  expect([other.code, other.lines.length]).toEqual([1, 1])
  expect(other.lines[0]).toMatch(/^DATA_DIR cannot be used .*\/proc\/foo/)
})

it('with MIGRATE=off the start is refused while migrations are pending, and goes on when there are none', async () => {
  const off = { ...settingsFor(database.url, GATEWAY), MIGRATE: 'off', ROLE: 'worker' }
  const restore = await forgetNewest(database)
  const { code, lines } = await runToEnd(off)
  expect(code).toBe(1)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(
    /^The database schema is older than this version, and MIGRATE is off: 1 migration is pending \(\d{4}_\w+\)\. Run "node \S+cli\/main\.js migrate"/,
  )
  await restore()
  const { child, ended, output } = runMain(off)
  await waitUntil(() => output().out.includes('"ready"'), { what: 'the start' })
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})
