import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { addSealKey, type DataKeys, openDataKeys } from '../../../src/db/data-keys.ts'
import { resealEvent } from '../../../src/events/event.ts'
import { resealData } from '../../../src/maintenance/reseal.ts'
import { Refund } from '../../../src/refunds/view.ts'
import type { Service } from '../../../src/service.ts'
import { readPage, withKey } from '../../support/api.ts'
import { ask, expectTaken, MASKED, RECEIVER, seedPaid } from '../../support/ask.ts'
import { runCli } from '../../support/cli.ts'
import { borrowDatabase, borrowForTest, type TestDatabase } from '../../support/database.ts'
import { makeEncryption } from '../../support/encryption.ts'
import { EVENT_DATA } from '../../support/event-data.ts'
import { commitOnceBlocked } from '../../support/locks.ts'
import { startTestService } from '../../support/service.ts'
import { useStarted } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const makeKey = (byte: number) => Buffer.alloc(32, byte).toString('base64')
const KEY = makeKey(1)

const launch = (database: TestDatabase): Promise<Service> =>
  startTestService(database, 'http://127.0.0.1:9', {
    settings: { ROLE: 'web', DATA_ENCRYPTION_KEY: KEY, WEBHOOK_ALLOW_PRIVATE: 'true' },
  })

async function start(database: TestDatabase): Promise<Service> {
  const service = await launch(database)
  onTestFinished(() => service.stop())
  return service
}

/** Requests a refund with a receiver from one process; its receiver is in the refund and in an event. */
async function refundAt(database: TestDatabase, { url }: Service): Promise<string> {
  const { id } = await seedPaid(database, { paymentMethod: 'QR' })
  return (await expectTaken(await ask({ url }, id, { amount: '30', receiver: RECEIVER }))).id
}

async function readAt({ url }: Service, refundId: string) {
  const response = await fetch(`${url}/v1/refunds/${refundId}`, withKey())
  return Refund.parse(await response.json()).receiver
}

/** Registers a webhook endpoint and rotates its secret: two secrets are valid, and stored. */
async function registerAt({ url }: Service): Promise<void> {
  const post = (path: string, body: object) =>
    fetch(`${url}/v1/webhook-endpoints${path}`, {
      method: 'POST',
      ...withKey(undefined, { 'content-type': 'application/json' }),
      body: JSON.stringify(body),
    })
  const registered = await post('', { url: 'http://127.0.0.1:65535/hook' })
  const { id } = z.object({ id: z.string() }).parse(await registered.json())
  expect((await post(`/${id}/rotate-secret`, {})).status).toBe(200)
}

/** How many stored values are under each key, by the id in their first bytes; events as text. */
async function countByKey({ sql }: TestDatabase): Promise<Record<string, number>> {
  const rows = await sql<{ head: string; n: number }[]>`
    select substring(encode(value, 'hex') from 1 for 24) as head, count(*)::int as n from (
      select receiver as value from refunds union all select receiver_shown from refunds
      union all select secret from webhook_endpoints
      union all select previous_secret from webhook_endpoints
      union all select decode(data -> 'receiver' ->> 'sealed', 'base64') from events
      union all select decode(data -> 'receiver' ->> 'sealed', 'base64') from event_outbox
    ) as stored where value is not null group by 1 order by 1`
  return Object.fromEntries(rows.map(({ head, n }) => [head, n]))
}

const countSealKeys = async ({ sql }: TestDatabase) =>
  (await sql`select from data_keys where purpose = 'seal'`).length

/** Lets the minute pass after which the keys are in use. */
const letMinutePass = ({ sql }: Pick<TestDatabase, 'sql'>) =>
  sql`update data_keys set created_at = created_at - interval '1 minute'`

const runReseal = (database: TestDatabase, key = KEY) =>
  runCli(['keys', 'reseal', '--json'], { DATABASE_URL: database.url, DATA_ENCRYPTION_KEY: key })

/** Runs the command, and lets the minute pass for which it waits. */
async function reseal(database: TestDatabase) {
  const before = await countSealKeys(database)
  const running = runReseal(database)
  const isStored = async () => (await countSealKeys(database)) > before
  await waitUntil(isStored, { what: 'the fresh key' })
  await letMinutePass(database)
  const { code, out } = await running
  expect(code).toBe(0)
  return JSON.parse(out)
}

/** Opens the keys with a fresh one in use. */
async function openFresh(database: TestDatabase): Promise<DataKeys> {
  await addSealKey(database.sql, { current: KEY })
  await letMinutePass(database)
  return await openDataKeys(database.sql, { current: KEY })
}

it('everything stored is encrypted again under a fresh key, and a process that does not know it yet loses nothing', async () => {
  const database = await borrowForTest()
  const [ahead, behind] = [await start(database), await start(database)]
  const first = await refundAt(database, ahead)
  await registerAt(ahead)
  // It reads no keys by itself from now on.
  behind.ctx.encryption.reread = async () => {}
  expect(await reseal(database)).toEqual({ receivers: 2, endpoints: 2, events: 1, unreadable: 0 })
  expect(Object.keys(await countByKey(database))).toHaveLength(1)

  await ahead.ctx.encryption.reread()
  const newer = await refundAt(database, ahead)
  const older = await refundAt(database, behind)
  expect(Object.values(await countByKey(database)).sort()).toEqual([3, 8])
  const refused = await fetch(`${behind.url}/v1/refunds/${first}`, withKey())
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  const isRead = async () =>
    (await fetch(`${behind.url}/v1/refunds/${first}`, withKey())).status === 200
  await waitUntil(isRead, { what: 'the fresh key, which the process has met' })
  for (const id of [first, newer, older]) {
    for (const service of [ahead, behind]) expect(await readAt(service, id)).toEqual(MASKED)
  }
  expect(await reseal(database)).toMatchObject({ receivers: 6, events: 3, unreadable: 0 })
  expect(Object.keys(await countByKey(database))).toHaveLength(1)
})

it('no process encrypts with the fresh key before every other one has had a minute to read it', async () => {
  const database = await borrowForTest()
  const early = await openDataKeys(database.sql, { current: KEY })
  const head = early.getActiveHead()
  const isInUse = await addSealKey(database.sql, { current: KEY })
  await early.reread()
  expect([early.getActiveHead(), await isInUse()]).toEqual([head, false])
  await letMinutePass(database)
  await early.reread()
  expect(early.getActiveHead()).not.toEqual(head)
  expect(await isInUse()).toBe(true)
})

const IDEMPOTENT = { amount: '30', receiver: RECEIVER }

/** One run over a refund that is requested again after it, and one whose receiver no key opens. */
const run = useStarted(
  async () => {
    const database = await borrowDatabase()
    const before = await launch(database)
    const { id } = await seedPaid(database, { paymentMethod: 'QR' })
    const asked = { url: before.url, idempotencyKey: 'kept' }
    const refund = await expectTaken(await ask(asked, id, IDEMPOTENT))
    const broken = await refundAt(database, before)
    await database.sql`update refunds set receiver = receiver_shown where refund_id = ${broken}`
    const readBroken = () => database.sql`select receiver from refunds where refund_id = ${broken}`
    const kept = await readBroken()
    await before.stop()
    const counts = await reseal(database)
    await database.sql`
      insert into events (merchant_code, transaction_id, type, data, at)
      select merchant_code, transaction_id, type, data, at from event_outbox`
    const after = await launch(database)
    return { database, after, counts, kept, readBroken, paymentId: id, refundId: refund.id }
  },
  async ({ after, database }) => {
    await after.stop()
    await database.release()
  },
)

it('the receivers in events are delivered as before', async () => {
  const { data } = await readPage(await fetch(`${run.after.url}/v1/events`, withKey()))
  const created = { type: 'refund.created', data: { receiver: MASKED } }
  expect(data).toMatchObject([created, created])
})

it('what no key opens is counted and stays as it is', async () => {
  expect(run.counts).toMatchObject({ receivers: 3, events: 2, unreadable: 1 })
  expect(await run.readBroken()).toEqual(run.kept)
})

it('an event whose metadata has the names of our own members needs nothing', () => {
  const metadata = { bag: 'no', sealed: 'yes' }
  const data = JSON.stringify({ ...EVENT_DATA['refund.created'], metadata })
  expect(resealEvent(makeEncryption(), data)).toBeUndefined()
})

it('it is recorded in the audit log', async () => {
  const audited = await run.database.sql`
    select operation, outcome from audit_entries where operation = 'keys reseal'`
  expect(audited).toEqual([{ operation: 'keys reseal', outcome: 'done' }])
})

it('a fingerprint keeps its key, so a repeated request is the same refund', async () => {
  const asked = { url: run.after.url, idempotencyKey: 'kept' }
  const again = await expectTaken(await ask(asked, run.paymentId, IDEMPOTENT), true)
  expect(again.id).toBe(run.refundId)
})

it('a run that was interrupted is continued by the next one', async () => {
  const database = await borrowForTest()
  const before = await start(database)
  for (let n = 0; n < 5; n += 1) await refundAt(database, before)
  await before.stop()
  const encryption = await openFresh(database)
  let left = 4
  const failing = {
    ...encryption,
    encrypt(...given: Parameters<typeof encryption.encrypt>) {
      left -= 1
      if (left < 0) throw new Error('stopped')
      return encryption.encrypt(...given)
    },
  }
  const first = await resealData(database.sql, failing, 2)
  expect(first).toMatchObject({ receivers: 4 })
  expect(await resealData(database.sql, encryption, 2)).toEqual({
    receivers: 6,
    endpoints: 0,
    events: 5,
    unreadable: 0,
  })
  expect(await resealData(database.sql, encryption, 2)).toMatchObject({ receivers: 0, events: 0 })
})

it('what is written under the older key during a run is found by it', async () => {
  const database = await borrowForTest()
  const behind = await start(database)
  await refundAt(database, behind)
  const encryption = await openFresh(database)
  behind.ctx.encryption.reread = async () => {}
  // The run has finished with the refunds when the lock on an event holds it up.
  const done = await commitOnceBlocked(
    database,
    (held) => held`select from event_outbox for update`,
    () => resealData(database.sql, encryption),
    () => refundAt(database, behind),
  )
  expect(done).toEqual({ receivers: 4, endpoints: 0, events: 2, unreadable: 0 })
  expect(Object.keys(await countByKey(database))).toHaveLength(1)
})

it('a receiver that is erased meanwhile does not come back', async () => {
  const database = await borrowForTest()
  const before = await start(database)
  const refundId = await refundAt(database, before)
  const encryption = await openFresh(database)
  const done = await commitOnceBlocked(
    database,
    (held) => held`update refunds set receiver = null where refund_id = ${refundId}`,
    () => resealData(database.sql, encryption),
  )
  expect(done).toMatchObject({ receivers: 1 })
  const [row] = await database.sql`select receiver from refunds where refund_id = ${refundId}`
  expect(row).toEqual({ receiver: null })
})

it('without the key that the data is under, or without any, it is refused and changes nothing', async () => {
  const database = await borrowForTest()
  const before = await start(database)
  await refundAt(database, before)
  const counted = await countByKey(database)
  const wrong = await runReseal(database, makeKey(3))
  expect(wrong).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^error: DATA_ENCRYPTION_KEY is not the key [^\n]*\n$/),
  })
  const none = await runCli(['keys', 'reseal'], { DATABASE_URL: database.url })
  expect(none).toMatchObject({
    code: 2,
    err: expect.stringContaining('DATA_ENCRYPTION_KEY is not set'),
  })
  expect(await countByKey(database)).toEqual(counted)
  expect(await countSealKeys(database)).toBe(1)
})

it('stores no fresh key without its entry in the audit log', async () => {
  const database = await borrowForTest()
  await openDataKeys(database.sql, { current: KEY })
  const name = 'no_more_entries'
  await database.sql`alter table audit_entries add constraint ${database.sql(name)} check (false) not valid`
  onTestFinished(async () => {
    await database.sql`alter table audit_entries drop constraint ${database.sql(name)}`
  })
  const refused = { code: 1, err: expect.stringContaining(name) }
  expect(await runReseal(database)).toMatchObject(refused)
  expect(await countSealKeys(database)).toBe(1)
})

it('a key that the database lost, in a restore or with its primary, is stored again by a process that knows it', async () => {
  const { sql } = await borrowForTest()
  const place = { column: 'refunds.receiver', row: 'R' } as const
  const service = await openDataKeys(sql, { current: KEY })
  await addSealKey(sql, { current: KEY })
  await letMinutePass({ sql })
  await service.reread()
  const [fresh] = await sql<{ id: string }[]>`
    select id from data_keys where purpose = 'seal' order by created_at desc limit 1`
  const sealed = service.encrypt('secret', place)
  await sql`delete from data_keys where id = ${fresh?.id ?? ''}`
  await service.reread()
  expect(await sql`select from data_keys where id = ${fresh?.id ?? ''}`).toHaveLength(1)
  expect(service.decrypt(sealed, place)).toBe('secret')
  expect((await openDataKeys(sql, { current: KEY })).decrypt(sealed, place)).toBe('secret')
})

it('is refused under a root key that the service was not started with', async () => {
  const { sql } = await borrowForTest()
  await openDataKeys(sql, { current: KEY })
  const roots = { current: makeKey(2), previous: KEY }
  await expect(addSealKey(sql, roots)).rejects.toThrow(/start the service with this key first/)
  await openDataKeys(sql, roots)
  await addSealKey(sql, roots)
})
