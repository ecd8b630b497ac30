import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/db/client.ts'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { runCli } from '../support/cli.ts'
import { findEnd } from '../support/feed.ts'
import { pickPort } from '../support/ports.ts'
import { findPrograms, type PostgresServer, prepareServer } from '../support/postgres-server.ts'
import { startRefundRig } from '../support/refunds.ts'
import { waitUntil } from '../support/wait-until.ts'

type Backup = { server: PostgresServer; save(): Promise<void>; putBack(): Promise<void> }

/** A server whose data folder can be copied, and put back as a restore to that moment does it: on a timeline of its own. */
async function startServer(): Promise<Backup> {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-restored-'))
  chmodSync(folder, 0o755)
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const server = prepareServer(findPrograms(folder), folder, Number(await pickPort()))
  onTestFinished(() => server.stop())
  await server.run('initdb', ['-U', 'postgres', '-A', 'trust', '--locale=C', '-E', 'UTF8'])
  await server.start()
  await migrateDatabase(server.url)
  const saved = join(folder, 'saved')
  const stop = () => server.run('pg_ctl', ['stop', '-m', 'fast', '-w'])
  return {
    server,
    async save() {
      await stop()
      execFileSync('cp', ['-a', server.data, saved])
      await server.start()
    },
    async putBack() {
      await stop()
      rmSync(server.data, { recursive: true, force: true })
      execFileSync('cp', ['-a', saved, server.data])
      appendFileSync(join(server.data, 'postgresql.auto.conf'), "restore_command = 'false'\n")
      writeFileSync(join(server.data, 'recovery.signal'), '')
      await server.start()
    },
  }
}

it('a database that was put back to an earlier moment moves nothing twice, and says what to run', async () => {
  const { server, save, putBack } = await startServer()
  const opened = openDatabase(server.url, 3)
  onTestFinished(() => opened.close())
  const unused = () => Promise.reject(new Error('the server is of the test alone'))
  const database = { ...opened, url: server.url, shutOut: unused, letIn: unused }
  const rig = await startRefundRig({ database })
  onTestFinished(() => rig.stop())
  const readReady = async () => (await fetch(`${rig.service.url}/readyz`)).json()
  const isReady = async () => JSON.stringify(await readReady()).includes('"ready"')
  const { id, transactionId } = await rig.pay({ amount: '100' })
  const path = `/v1/transactions/${transactionId}`

  await save()
  await waitUntil(isReady, { what: 'it is ready again' })
  const refund = (amount: string) => rig.refund(id, { amount }, `of ${amount}`)
  const sent = await refund('40')
  expect(await rig.untilEnded(sent.body.id)).toMatchObject({ status: 'succeeded' })
  await waitUntil(async () => Number(await findEnd(rig)) > 4, { what: 'the events' })
  const tag = (await rig.api(path)).headers.get('etag') ?? ''
  const cursor = await findEnd(rig)

  await putBack()
  const isStopped = async () => JSON.stringify(await readReady()).includes('cli -- restored')
  await waitUntil(isStopped, { what: '/readyz names the command' })
  // The order system repeats what it was promised, and asks for something else.
  expect((await refund('40')).body.id).toBe(sent.body.id)
  const other = await refund('20')
  expect(other.status).toBe(202)
  expect((await rig.api(`/v1/events?after=${cursor}`)).status).toBe(503)

  const done = await runCli(['restored', '--json'], { DATABASE_URL: server.url })
  expect(done).toMatchObject({ code: 0, err: '' })
  expect(JSON.parse(done.out)).toEqual({ epoch: 1, held: 2, asked: 1 })
  for (const { body } of [sent, other]) {
    expect(await rig.untilEnded(body.id)).toMatchObject({ status: 'needs_review' })
  }
  expect(await rig.moved(id)).toEqual(['40'])
  expect((await rig.api(`/v1/events?after=${cursor}`)).status).toBe(410)
  const read = await rig.api(path, { headers: { 'if-none-match': tag } })
  expect(read.status).toBe(200)
}, 120_000)
