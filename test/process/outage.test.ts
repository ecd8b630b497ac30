import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { createLog } from '../../src/platform/telemetry/log.ts'
import { borrowRig } from '../support/borrow-rig.ts'
import { type BorrowedDatabase, borrowDatabase } from '../support/database.ts'
import { makeFolder } from '../support/embedded.ts'
import { settingsFor, startServiceProcess } from '../support/process.ts'
import { readServerPid } from '../support/processes.ts'
import { postIpn, type Rig, signIpn, startTestService } from '../support/service.ts'
import { makeTransaction } from '../support/sync.ts'
import { startProxyTo } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'
import { endPretending, pretend, WEAK_COMMITS } from './pretended-settings.ts'

/** The service reaches its database through a proxy that can be cut; the test connects directly. */
let database: BorrowedDatabase
let proxy: Awaited<ReturnType<typeof startProxyTo>>
let rig: Rig
beforeAll(async () => {
  database = await borrowDatabase()
  proxy = await startProxyTo(database.url)
  rig = await borrowRig({ database: { ...database, url: proxy.url } })
})
afterAll(async () => {
  await rig.stop()
  await proxy.stop()
  await database.release()
})

const ready = async () => (await rig.api('/readyz')).status
const waitForReady = (status: number) =>
  waitUntil(async () => (await ready()) === status, { what: `/readyz answers ${status}` })

it('/readyz is 503 while sessions report commits before they are durable', async () => {
  await waitForReady(200)
  await pretend(database.sql, WEAK_COMMITS)
  try {
    await waitForReady(503)
  } finally {
    await endPretending(database.sql)
  }
  await waitForReady(200)
})

it('waiting readers are woken by changes after an outage', async () => {
  await makeTransaction(rig, 'T-WAKE', [{ id: '91', status: 'PROCESSING' }])
  await database.sql`
    insert into transactions (merchant_code, transaction_id) values ('UFLIYL', 'T-WAKE')`
  await proxy.close()
  expect(await ready()).toBe(503)
  await proxy.heal()
  await waitForReady(200)
  const listens = async () => {
    const rows = await database.sql`
      select query from pg_stat_activity
      where datname = current_database() and query ilike 'listen%'`
    return rows.length > 0
  }
  await waitUntil(listens, { what: 'the listener is back' })

  const started = performance.now()
  const waiting = rig.transaction('T-WAKE', '?wait=20')
  await rig.control('PATCH', '/payments/91?ipn=true', { status: 'SUCCESS' })
  expect(await waiting).toMatchObject({ state: 'paid' })
  expect(performance.now() - started).toBeLessThan(10_000)
})

it('an outage beside traffic is a line when it begins and one when it is over, without a stack', async () => {
  const away = await startProxyTo(database.url)
  onTestFinished(() => away.stop())
  let text = ''
  const log = createLog('info', {
    write: (line) => {
      text += line
    },
  })
  const service = await startTestService(away, rig.sandbox.url, { log })
  onTestFinished(() => service.stop())
  const { url } = service
  const find = (part: string) => text.split('\n').filter((line) => line.includes(part))
  await away.close()
  for (let n = 0; n < 3; n += 1) {
    expect((await postIpn(url, signIpn({ svc_TransactionID: 'T-LOG' }))).status).toBe(500)
    expect((await fetch(`${url}/readyz`)).status).toBe(503)
    await fetch(`${url}/metrics`)
  }
  await away.heal()
  const isOver = () => find('back after').length === 1
  await waitUntil(isOver, { what: 'the end of the outage', timeoutMs: 30_000 })
  const begun = find('"outage":"database"').filter((line) => !line.includes('back after'))
  expect(begun).toHaveLength(1)
  expect(begun[0]).toContain('the database is unreachable: requests get 503')
  expect(find('back after')[0]).toMatch(/"failed":\{.*"notifications":3/)
  expect(find('"stack"')).toEqual([])
})

it('the end of the embedded server is an error in the log, which says to restart the process', async () => {
  const { DATABASE_URL: _, ...settings } = settingsFor('', rig.sandbox.url)
  const DATA_DIR = makeFolder()
  const { output } = await startServiceProcess({ ...settings, DATA_DIR })
  process.kill(readServerPid(`${DATA_DIR}/postgres`), 'SIGINT')
  const said = (text: string) => output().out.includes(text)
  await waitUntil(() => said('stopped unexpectedly') && said('is unreachable'), { what: 'both' })
  const errors = output()
    .out.match(/^{"level":50,.*$/gm)
    ?.join('\n')
  expect(errors).toContain('the database server stopped unexpectedly: restart this process')
  expect(errors).toMatch(/the database is unreachable: .*, restart this process/)
  expect(errors).not.toContain('DATABASE_URL')
})
