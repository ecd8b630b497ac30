import { randomUUID } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { ConfigError } from '../../../src/config/environment.ts'
import { openDataKeys } from '../../../src/db/data-keys.ts'
import { resealData } from '../../../src/maintenance/reseal.ts'
import { Refund } from '../../../src/refunds/view.ts'
import type { Service } from '../../../src/service.ts'
import { readPage, withKey } from '../../support/api.ts'
import { ask, expectTaken, MASKED, RECEIVER, seedPaid } from '../../support/ask.ts'
import { runCli } from '../../support/cli.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { startTestService } from '../../support/service.ts'

const makeKey = (byte: number) => Buffer.alloc(32, byte).toString('base64')
const [OLD, NEW] = [makeKey(1), makeKey(2)]

async function makeDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  return database
}

async function start(database: TestDatabase, key: string, previous = ''): Promise<Service> {
  const service = await startTestService(database, 'http://127.0.0.1:9', {
    settings: {
      ROLE: 'web',
      DATA_ENCRYPTION_KEY: key,
      DATA_ENCRYPTION_KEY_PREVIOUS: previous,
      WEBHOOK_ALLOW_PRIVATE: 'true',
    },
  })
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

const headOf = async ({ sql }: TestDatabase, current: string, previous: string) =>
  (await openDataKeys(sql, { current, previous })).activeHead.toString('hex')

const reseal = (database: TestDatabase, current = NEW, previous = OLD) =>
  runCli(['keys', 'reseal', '--json'], {
    DATABASE_URL: database.url,
    DATA_ENCRYPTION_KEY: current,
    ...(previous === '' ? {} : { DATA_ENCRYPTION_KEY_PREVIOUS: previous }),
  })

it('everything stored is encrypted under the new key, while processes with both keys read and write', async () => {
  const database = await makeDatabase()
  const before = await start(database, OLD)
  const first = await refundAt(database, before)
  await registerAt(before)
  await before.stop()
  // During the change some processes call one key current, and some the other.
  const behind = await start(database, OLD, NEW)
  const ahead = await start(database, NEW, OLD)
  const [older, newer] = [await refundAt(database, behind), await refundAt(database, ahead)]
  const both = [behind, ahead]
  const readAll = async (ids: readonly string[], services: readonly Service[]) => {
    for (const service of services)
      for (const id of ids) expect(await readAt(service, id)).toEqual(MASKED)
  }
  await readAll([first, older, newer], both)

  const { code, out, err } = await reseal(database)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(JSON.parse(out)).toEqual({ receivers: 4, endpoints: 2, events: 2, unreadable: 0 })
  await readAll([first, older, newer], both)
  const late = await refundAt(database, behind)
  await readAll([late, await refundAt(database, ahead)], both)
  await behind.stop()
  expect(JSON.parse((await reseal(database)).out)).toMatchObject({ receivers: 2, events: 1 })
  expect(JSON.parse((await reseal(database)).out)).toMatchObject({ receivers: 0, events: 0 })
  await ahead.stop()

  const after = await start(database, NEW)
  await readAll([first, older, newer, late], [after])
  const head = await headOf(database, NEW, OLD)
  expect(Object.keys(await countByKey(database))).toEqual([head])
  await expect(start(database, OLD)).rejects.toBeInstanceOf(ConfigError)
})

it('the receivers in events are delivered as before', async () => {
  const database = await makeDatabase()
  const before = await start(database, OLD)
  await refundAt(database, before)
  await before.stop()
  expect((await reseal(database)).code).toBe(0)
  await database.sql`
    insert into events (merchant_code, transaction_id, type, data, at)
    select merchant_code, transaction_id, type, data, at from event_outbox`
  const { url } = await start(database, NEW)
  const { data } = await readPage(await fetch(`${url}/v1/events`, withKey()))
  expect(data).toMatchObject([{ type: 'refund.created', data: { receiver: MASKED } }])
})

it('a run that was interrupted is continued by the next one', async () => {
  const database = await makeDatabase()
  const before = await start(database, OLD)
  for (let n = 0; n < 5; n += 1) await refundAt(database, before)
  await before.stop()
  const encryption = await openDataKeys(database.sql, { current: NEW, previous: OLD })
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

it('a receiver that is erased meanwhile does not come back', async () => {
  const database = await makeDatabase()
  const before = await start(database, OLD)
  const refundId = await refundAt(database, before)
  const encryption = await openDataKeys(database.sql, { current: NEW, previous: OLD })
  const done = await whileUncommitted(
    database,
    (held) => held`update refunds set receiver = null where refund_id = ${refundId}`,
    async (commit) => {
      const running = resealData(database.sql, encryption)
      await waitUntilBlocked(database)
      await commit()
      return await running
    },
  )
  expect(done).toMatchObject({ receivers: 1 })
  const [row] = await database.sql`select receiver from refunds where refund_id = ${refundId}`
  expect(row).toEqual({ receiver: null })
})

it('what no key opens is counted and stays as it is', async () => {
  const database = await makeDatabase()
  const before = await start(database, OLD)
  const refundId = await refundAt(database, before)
  await database.sql`update refunds set receiver = receiver_shown where refund_id = ${refundId}`
  const [stored] = await database.sql<{ receiver: Buffer }[]>`select receiver from refunds`
  expect(JSON.parse((await reseal(database)).out)).toMatchObject({ receivers: 1, unreadable: 1 })
  expect(await database.sql`select receiver from refunds`).toEqual([stored])
})

it('without the key that the data is under, or without any, it is refused and changes nothing', async () => {
  const database = await makeDatabase()
  const before = await start(database, OLD)
  await refundAt(database, before)
  const counted = await countByKey(database)
  const wrong = await reseal(database, NEW, makeKey(3))
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
})

it('it is recorded in the audit log', async () => {
  const database = await makeDatabase()
  await (await start(database, OLD)).stop()
  await reseal(database)
  const audited = await database.sql`
    select operation, outcome from audit_entries where operation = 'keys reseal'`
  expect(audited).toEqual([{ operation: 'keys reseal', outcome: 'done' }])
})

it('a fingerprint keeps its key, so a repeated request is the same refund', async () => {
  const database = await makeDatabase()
  const before = await start(database, OLD)
  const { id } = await seedPaid(database)
  const idempotencyKey = randomUUID()
  const body = { amount: '30' }
  const refund = await expectTaken(await ask({ url: before.url, idempotencyKey }, id, body))
  await before.stop()
  await reseal(database)
  const { url } = await start(database, NEW)
  const again = await expectTaken(await ask({ url, idempotencyKey }, id, body), true)
  expect(again.id).toBe(refund.id)
})
