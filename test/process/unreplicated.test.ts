import { afterEach, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/db/client.ts'
import { runInTransaction } from '../../src/platform/postgres/transaction.ts'
import type { Service } from '../../src/service.ts'
import { withKey } from '../support/api.ts'
import { ask, expectRefused, expectTaken, seedPaid } from '../support/ask.ts'
import { Report, runCli } from '../support/cli.ts'
import { hurry } from '../support/hurry.ts'
import { settingsFor } from '../support/process.ts'
import { postIpn, signIpn, startTestService } from '../support/service.ts'
import { useStarted } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startWaitingDatabase } from './absent-standby.ts'

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

it('whoever reads is answered while every connection for writes waits for a standby', async () => {
  const { id, transactionId } = await seedPaid(database)
  const settings = { ROLE: 'web', DATABASE_POOL: '2' }
  const small = await startTestService({ url: database.url }, 'http://127.0.0.1:9', { settings })
  onTestFinished(() => small.stop())
  await database.hold()
  const held = postIpn(small.url, signIpn({ svc_TransactionID: 'T-HOLDS' }))
  await database.untilWaiting(1)
  for (const path of ['payments', `payments/${id}`, `transactions/${transactionId}`]) {
    const read = await fetch(`${small.url}/v1/${path}`, withKey())
    expect(read.status, path).toBe(200)
  }
  await database.release()
  expect((await held).status).toBe(200)
})

it('doctor names the standby that every commit waits for', async () => {
  await database.hold()
  const settings = settingsFor(database.url, 'http://127.0.0.1:9')
  const { out } = await runCli(['doctor', '--json'], settings)
  expect(Report.parse(JSON.parse(out)).findings).toContainEqual({
    id: 'standby',
    severity: 'error',
    finding: expect.stringContaining('every commit waits'),
    action: expect.stringMatching(/^start the standby, or empty synchronous_standby_names/),
  })
})

/** Opens a pool with a table of its own; returns two ways to commit a row. */
async function openOwn(connections: number) {
  const { sql, close } = openDatabase(database.url, connections)
  onTestFinished(close)
  await sql`create table if not exists kept (n int)`
  return {
    commit: (n: number) =>
      runInTransaction(sql, async (tx) => await tx`insert into kept values (${n})`),
    commitAlone: async (n: number) => await sql`insert into kept values (${n})`,
  }
}

it('a cancelled wait leaves exactly its own commit unconfirmed: the others go on waiting', async () => {
  const { commit, commitAlone } = await openOwn(3)
  await database.hold()
  const ends: string[] = []
  const inFlight = [commit(1), commit(2), commitAlone(3)].map((one) =>
    one.then(
      () => ends.push('done'),
      (error: { code: string }) => ends.push(error.code),
    ),
  )
  await database.untilWaiting(3)
  await database.cancelWaits(1)
  await waitUntil(() => ends.length > 0, { what: 'the end of the cancelled one' })
  await database.untilWaiting(2)
  expect(ends).toEqual([UNREPLICATED.code])
  await database.release()
  await Promise.all(inFlight)
  expect(ends).toEqual([UNREPLICATED.code, 'done', 'done'])
})

it('eleven cancelled waits cost a pool of ten no connection', async () => {
  const { commit } = await openOwn(10)
  await database.hold()
  let refused = 0
  const inFlight = Array.from({ length: 11 }, (_, n) =>
    expect(commit(n))
      .rejects.toMatchObject(UNREPLICATED)
      .then(() => {
        refused += 1
      }),
  )
  await database.untilWaiting(10)
  await database.cancelWaits()
  await waitUntil(() => refused === 10, { what: 'the end of the cancelled ones' })
  await database.untilWaiting(1)
  await database.cancelWaits()
  await Promise.all(inFlight)
  const next = Array.from({ length: 10 }, (_, n) => commit(20 + n))
  await database.untilWaiting(10)
  await database.release()
  await Promise.all(next)
})

it.each(['commit', 'commitAlone'] as const)(
  'a %s that waits for too long is cancelled, so that its server process waits no longer',
  async (how) => {
    const own = await openOwn(1)
    await database.hold()
    hurry(35_000, 300)
    const ends: string[] = []
    own[how](5).catch((error: { code: string }) => ends.push(error.code))
    await expect.poll(() => ends, { timeout: 20_000 }).toEqual([UNREPLICATED.code])
    await database.untilWaiting(0)
    await database.release()
    await own[how](6)
  },
)

it('a commit whose server process ends while it waits is not confirmed', async () => {
  const { commit } = await openOwn(1)
  await database.hold()
  const refused = expect(commit(7)).rejects.toMatchObject(UNREPLICATED)
  await database.untilWaiting(1)
  await database.sql`
    select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`
  await refused
  await database.release()
  await commit(8)
})
