import { afterEach, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/db/client.ts'
import { buildSocketOptions } from '../../src/platform/postgres/socket.ts'
import { runInTransaction } from '../../src/platform/postgres/transaction.ts'
import type { Service } from '../../src/service.ts'
import { startWaitingDatabase } from '../support/absent-standby.ts'
import { withKey } from '../support/api.ts'
import { ask, expectRefused, expectTaken, seedPaid } from '../support/ask.ts'
import { postIpn, signIpn, startTestService } from '../support/service.ts'
import { useStarted } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

// A cancelled wait leaves a commit that everyone can read, and that the standby may not have. The server reports it
// as committed. It must not be acknowledged: neither by the request that made it, nor by a repeated one that finds it.

const database = useStarted(startWaitingDatabase, (one) => one.stop())
const service = useStarted<Service>(
  () =>
    startTestService({ url: database.url }, 'http://127.0.0.1:9', { settings: { ROLE: 'web' } }),
  (one) => one.stop(),
)
afterEach(() => database.release())

/** The server warns of the cancelled wait just before it makes the commit visible. */
const untilStored = (read: () => Promise<readonly unknown[]>) =>
  waitUntil(async () => (await read()).length === 1, { what: 'it is stored all the same' })

const UNREPLICATED = { code: 'COMMIT_UNREPLICATED' }

it('a notification whose commit no standby has confirmed is refused, and so is a repeated one', async () => {
  const notification = signIpn({ svc_TransactionID: 'T-WAITS' })
  await database.hold()
  for (const time of ['first', 'second']) {
    const sent = postIpn(service.url, notification)
    await database.untilWaiting(1)
    await database.cancelWaits()
    const { status, answer } = await sent
    expect(status, time).toBeGreaterThanOrEqual(500)
    expect(answer, time).toMatchObject({ respcode: 1 })
    await untilStored(() => database.sql`select from ipn_events where transaction_id = 'T-WAITS'`)
  }
  await database.release()
  expect((await postIpn(service.url, notification)).status).toBe(200)
})

it('a refund whose commit no standby has confirmed is not accepted, and neither is a repeated request before it is confirmed', async () => {
  const { id } = await seedPaid(database)
  const asked = { url: service.url, idempotencyKey: 'waits-1' }
  await database.hold()
  for (const time of ['first', 'second']) {
    const answer = ask(asked, id, { amount: '10' })
    await database.untilWaiting(1)
    await database.cancelWaits()
    const refused = await answer
    expect(refused.headers.get('retry-after'), time).toBe('1')
    const { detail } = await expectRefused(refused, 503, 'unavailable')
    expect(detail, time).toContain('unknown')
    await untilStored(() => database.sql`select from refunds where idempotency_key = 'waits-1'`)
  }
  await database.release()
  const refund = await expectTaken(await ask(asked, id, { amount: '10' }), true)
  const read = await fetch(`${service.url}/v1/refunds/${refund.id}`, withKey())
  expect(read.status).toBe(200)
})

it('with one cancelled wait every commit in flight of the process is unconfirmed, and the next ones work', async () => {
  const own = openDatabase(database.url, 3)
  onTestFinished(() => own.close())
  await own.sql`create table if not exists kept (n int)`
  await database.hold()
  const commit = (n: number) =>
    runInTransaction(own.sql, async (tx) => await tx`insert into kept values (${n})`)
  const inFlight = [commit(1), commit(2), own.sql`insert into kept values (3)`].map((one) =>
    expect(one).rejects.toMatchObject(UNREPLICATED),
  )
  await database.untilWaiting(3)
  await database.cancelWaits(1)
  await Promise.all(inFlight)
  // Their server processes wait no longer either.
  await database.untilWaiting(0)
  await database.release()
  await commit(4)
  expect(await own.sql`select n from kept where n = 4`).toEqual([{ n: 4 }])
})

it('a commit that waits for too long is not confirmed, and its server process waits no longer', async () => {
  const own = openDatabase(database.url, 1)
  onTestFinished(() => own.close())
  const { socket } = buildSocketOptions(database.url, 20_000, {
    sessions: new Set(),
    silenceMs: 300,
  })
  Object.assign(own.sql.options, { socket })
  await own.sql`create table if not exists kept (n int)`
  await database.hold()
  const commit = () =>
    runInTransaction(own.sql, async (tx) => await tx`insert into kept values (5)`)
  await expect(commit()).rejects.toMatchObject({ code: 'ETIMEDOUT' })
  await database.untilWaiting(0)
  await database.release()
  await commit()
})

it('a commit whose server process ends while it waits is not confirmed', async () => {
  const own = openDatabase(database.url, 1)
  onTestFinished(() => own.close())
  await own.sql`create table if not exists kept (n int)`
  await database.hold()
  const refused = expect(
    runInTransaction(own.sql, async (tx) => await tx`insert into kept values (6)`),
  ).rejects.toMatchObject(UNREPLICATED)
  await database.untilWaiting(1)
  await database.sql`
    select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`
  await refused
})
