import { spawnSync } from 'node:child_process'
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import { migrateDatabase } from '../../../src/db/migrate.ts'
import { buildSpawnOptions } from '../../../src/platform/postgres/embedded-binaries.ts'
import { findServerUser } from '../../../src/platform/postgres/embedded-cluster.ts'
import { runCli } from '../../support/cli.ts'
import { pickPort } from '../../support/ports.ts'
import { ask, findDebianPrograms } from '../../support/postgres-server.ts'
import { readSnippets } from '../../support/read-snippets.ts'
import { startRefundRig } from '../../support/refunds.ts'
import { waitUntil } from '../../support/wait-until.ts'

const programs = findDebianPrograms()

/** A server of Debian's, and a shell that plays the lines of docs/operations.md as its user. */
async function startServer(bin: string) {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-runbook-'))
  chmodSync(folder, 0o777)
  const port = String(await pickPort())
  const user = process.getuid?.() === 0 ? findServerUser() : {}
  const env = {
    ...process.env,
    PATH: `${bin}:${process.env.PATH}`,
    PGDATA: join(folder, 'data'),
    BACKUP: join(folder, 'backup'),
    DATABASE_URL: `postgres://postgres@127.0.0.1:${port}/postgres`,
  }
  const play = (lines: string, more: Record<string, string> = {}) => {
    const options = { ...buildSpawnOptions(user), cwd: folder, env: { ...env, ...more } }
    // Not a pipe: the server that the lines start would hold it open.
    const output = openSync(join(folder, 'output'), 'w+')
    const { status } = spawnSync('bash', ['-ec', lines], {
      ...options,
      stdio: ['ignore', output, output],
    })
    closeSync(output)
    expect([lines, status, readFileSync(join(folder, 'output'), 'utf8')]).toEqual([
      lines,
      0,
      expect.anything(),
    ])
  }
  onTestFinished(() => {
    play('pg_ctl stop -D "$PGDATA" -m immediate || true')
    rmSync(folder, { recursive: true, force: true })
  })
  play(`initdb -D "$PGDATA" -U postgres -A trust -E UTF8 --locale=C
    printf "port = ${port}\\nlisten_addresses = '127.0.0.1'\\nunix_socket_directories = ''\\n" >> "$PGDATA/postgresql.conf"
    pg_ctl start -D "$PGDATA" -w -l "$PGDATA/../log"`)
  return { url: env.DATABASE_URL, play }
}

const readLines = async (title: string) => await readSnippets('operations.md', title, 'sh')

it.skipIf(!programs)(
  'a database restored by the lines of the page to the moment before a mistake moves nothing twice',
  async () => {
    const { url, play } = await startServer(programs ?? '')
    await migrateDatabase(url)
    const [setUp = '', nightly = ''] = await readLines('Backups')
    const [restore = '', after = ''] = await readLines('Restoring to an earlier moment')
    play(setUp)
    play(nightly)

    const opened = openDatabase(url, 3)
    onTestFinished(() => opened.close())
    const unused = () => Promise.reject(new Error('the server is of the test alone'))
    const database = { ...opened, url, shutOut: unused, letIn: unused }
    const rig = await startRefundRig({ database })
    onTestFinished(() => rig.stop())
    const paid = await rig.pay({ amount: '100' })
    const [moment] = await ask<{ now: string }>(url, 'select now()::text as now')
    const { body } = await rig.refund(paid.id, { amount: '40' }, 'lost')
    expect(await rig.untilEnded(body.id)).toMatchObject({ status: 'succeeded' })
    const lost = await rig.pay({ amount: '7' })

    play(`BASE=$(ls -d $BACKUP/base-*)\n${restore}`, { MOMENT: moment?.now ?? '' })
    const readReady = async () => (await fetch(`${rig.service.url}/readyz`)).text()
    const saysSo = async () => (await readReady()).includes('cli -- restored')
    await waitUntil(saysSo, { what: '/readyz names the command' })
    const isKnown = async (id: string) => (await rig.api(`/v1/payments/${id}`)).status
    expect([await isKnown(paid.id), await isKnown(lost.id)]).toEqual([200, 404])

    // The order system repeats what it was promised, before anybody ran anything.
    expect((await rig.refund(paid.id, { amount: '40' }, 'lost')).body.id).toBe(body.id)
    for (const line of after.trim().split('\n')) {
      const words = line.replace('npm run -s cli -- ', '').split(' ')
      const done = await runCli(words, { DATABASE_URL: url })
      expect([line, done.code, done.err]).toEqual([line, expect.any(Number), expect.any(String)])
      expect([0, 1]).toContain(done.code)
    }
    expect(await rig.untilEnded(body.id)).toMatchObject({ status: 'needs_review' })
    expect(await rig.moved(paid.id)).toEqual(['40'])
  },
  180_000,
)
