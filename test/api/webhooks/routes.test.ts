import { Webhook } from 'standardwebhooks'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { REGISTRATION_LOCK } from '../../../src/db/names.ts'
import { EVENT_TYPES, EVENTS } from '../../../src/events/event.ts'
import type { Tx } from '../../../src/platform/postgres/types.ts'
import { expectInvalid, expectProblem, readAll, withKey } from '../../support/api.ts'
import { holdLocks } from '../../support/database.ts'
import { serve } from '../../support/gateway.ts'
import { waitUntilBlocked } from '../../support/locks.ts'
import { addKey, MERCHANT, startTestService } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'
import { waitUntil } from '../../support/wait-until.ts'
import {
  callWebhooks,
  deliver,
  listIds,
  publish,
  type Registered,
  readEndpoint,
  register,
  useWebhookRig,
  verify,
} from '../../support/webhooks.ts'

const PAYMENTS = 'key-for-payments-and-webhooks-0123456789'
const ALONE = 'key-for-webhooks-alone-0123456789-01234'
const REFUNDS = 'key-for-refunds-and-webhooks-0123456789'
const NO_SCOPE = 'key-without-the-scope-of-webhooks-0123456'

const kept = keepLog()
const rig = useWebhookRig(kept.log)
beforeAll(async () => {
  const { merchantCode } = MERCHANT
  await addKey(rig.database, PAYMENTS, ['payments:read', 'webhooks:write'], merchantCode)
  await addKey(rig.database, ALONE, ['webhooks:write'], merchantCode)
  await addKey(rig.database, REFUNDS, ['refunds:read', 'webhooks:write'], merchantCode)
  await addKey(rig.database, NO_SCOPE, ['payments:read', 'refunds:read', 'ops'], merchantCode)
})

const URL_HERE = 'http://127.0.0.1:65535/hook'
const call = (method: string, path = '', body?: unknown, key?: string) =>
  callWebhooks(rig, method, path, body, key)
const registerWith = (body: unknown, key?: string) => call('POST', '', body, key)

const Registration = z.object({ id: z.string() })
const Chosen = z.object({ types: z.array(z.string()) })
const Endpoints = z.object({ data: z.array(z.object({ id: z.string() }).loose()) })
const list = async () => Endpoints.parse(await (await call('GET')).json()).data

const Result = z.strictObject({
  delivered: z.boolean(),
  status: z.int().nullable(),
  durationMs: z.int(),
  error: z.string().nullable(),
})
const test = async ({ id }: Pick<Registered, 'id'>) => {
  const response = await call('POST', `/${id}/test`)
  expect(response.status).toBe(200)
  return Result.parse(await response.json())
}

describe('a registration', () => {
  it('returns a secret of 32 random bytes, which is shown only once', async () => {
    const one = await register(rig, URL_HERE)
    const two = await register(rig, URL_HERE)
    for (const { secret } of [one, two]) {
      expect(secret).toMatch(/^whsec_/)
      expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32)
    }
    expect(one.secret).not.toBe(two.secret)
    expect(one.url).toBe(URL_HERE)
    const listed = await list()
    expect(listed.map(({ id }) => id)).toEqual([two.id, one.id])
    expect(listed[0]).toEqual({
      id: two.id,
      merchantCode: '*',
      owner: 'first',
      url: URL_HERE,
      types: two.types,
      apiVersion: '2026-11',
      createdAt: expect.any(String),
      failingSince: null,
      lastError: null,
      previousSecretValidUntil: null,
      disabledAt: null,
      disabledReason: null,
      pending: 0,
    })
  })

  it('subscribes to every type the key may read, unless some are named', async () => {
    expect((await register(rig, URL_HERE)).types).toEqual(EVENT_TYPES)
    // Which they are is told by test/api/feed/read.
    for (const [key, scope] of [
      [ALONE, 'webhooks:write'],
      [PAYMENTS, 'payments:read'],
      [REFUNDS, 'refunds:read'],
    ] as const) {
      const { types } = Chosen.parse(await (await registerWith({ url: URL_HERE }, key)).json())
      const readable: string[] = [scope, 'webhooks:write']
      expect(types).toEqual(EVENT_TYPES.filter((type) => readable.includes(EVENTS[type].scope)))
    }
    const types = ['payment.updated', 'payment.updated']
    const some = await registerWith({ url: URL_HERE, types }, PAYMENTS)
    expect(await some.json()).toMatchObject({ types: ['payment.updated'] })
    await rig.database.sql`delete from webhook_endpoints`
  })

  it('is refused for types the key may not read, and for unknown types', async () => {
    const types = ['payment.updated', 'refund.updated']
    for (const key of [ALONE, PAYMENTS]) {
      const { detail } = await expectProblem(
        await registerWith({ url: URL_HERE, types }, key),
        403,
        'scope_missing',
      )
      expect(detail).toContain(key === ALONE ? 'payments:read' : 'refunds:read')
    }
    await expectProblem(await registerWith({ url: URL_HERE }, NO_SCOPE), 403, 'scope_missing')
    await expectInvalid(await registerWith({ url: URL_HERE, types: [] }), 'types')
    await expectInvalid(await registerWith({ url: URL_HERE, secret: 'mine' }), 'secret')
  })

  it('of a private address, or a name that resolves to one, is refused unless the setting allows it', async () => {
    for (const url of ['http://127.0.0.1:22/', 'http://169.254.169.254/latest/meta-data']) {
      await expectInvalid(await registerWith({ url }), 'url')
    }
    const strict = await startTestService(rig.database, rig.sandbox.url, {
      settings: { ROLE: 'web' },
      resolve: (name) => Promise.resolve([name.startsWith('inside') ? '10.0.0.1' : '8.8.8.8']),
    })
    onTestFinished(() => strict.stop())
    const at = { ...rig, service: strict }
    for (const url of ['https://10.0.0.1/hook', 'https://inside.example/hook', URL_HERE]) {
      await expectInvalid(await callWebhooks(at, 'POST', '', { url }), 'url')
    }
    await register(at, 'https://outside.example/')
  })

  it('beyond twenty per account is refused, even when two are concurrent', async () => {
    const { database } = rig
    const insert = (tx: Tx, count: number) => tx`
      insert into webhook_endpoints (key_chain_id, merchant_code, url, types, api_version, secret, cursor)
      select gen_random_uuid(), ${MERCHANT.merchantCode}, 'https://shop.example/', '{payment.updated}', '', '', 0
      from generate_series(1, ${count}::int)`
    await insert(database.sql, 19)
    const other = await holdLocks(database, async (tx) => {
      await tx`select pg_advisory_xact_lock(${tx.unsafe(REGISTRATION_LOCK)})`
      await insert(tx, 1)
    })
    const answer = registerWith({ url: URL_HERE }, PAYMENTS)
    try {
      await waitUntilBlocked(database)
    } finally {
      await other.release()
    }
    await expectProblem(await answer, 409, 'too_many_webhook_endpoints')
    // Another account still has room.
    await register(rig, URL_HERE)
    await database.sql`delete from webhook_endpoints`
  })
})

describe('the list', () => {
  it('is paged, newest first', async () => {
    const ids: string[] = []
    for (let n = 0; n < 5; n += 1) ids.unshift((await register(rig, URL_HERE)).id)
    const all = await readAll((query) => call('GET', query), { limit: '2' })
    expect(all.map(({ id }) => id)).toEqual(ids)
  })

  it('counts in the metrics what waits for enabled endpoints, in the feed and behind failures, 10,000 at most', async () => {
    const [on, off] = [await register(rig, URL_HERE), await register(rig, URL_HERE)]
    const { sql } = rig.database
    const park = ({ id }: Registered, events: readonly string[]) => sql`
      insert into webhook_retries (endpoint_id, event_id, merchant_code, transaction_id)
      select ${id}, n, ${MERCHANT.merchantCode}, 'T-1' from unnest(${[...events]}::bigint[]) as n`
    const measure = async () => {
      const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
      return /^webhook_pending (.*)$/m.exec(metrics)?.[1]
    }
    await sql`
      update webhook_endpoints set disabled_at = now(), disabled_reason = 'gone' where id = ${off.id}`
    const [first = ''] = await publish(rig, ['T-1', 'T-2', 'T-3'])
    await park(off, [first])
    expect(await measure()).toBe('3')
    await sql`update webhook_endpoints set cursor = ${first} where id = ${on.id}`
    await park(on, [first])
    expect(await measure()).toBe('3')
    await publish(
      rig,
      Array.from({ length: 10_001 }, (_, n) => `T-${n}`),
    )
    expect(await measure()).toBe('10000')
    expect(await readEndpoint(rig, off.id)).toMatchObject({ pending: 10_001 })
  })
})

describe('a test event', () => {
  it('is signed and sent at once, even to a disabled endpoint, and not stored', async () => {
    const receiver = await serve((response) => response.writeHead(201).end())
    const endpoint = await register(rig, receiver.url)
    await rig.database.sql`
      update webhook_endpoints set disabled_at = now(), disabled_reason = 'gone'
      where id = ${endpoint.id}`
    expect(await test(endpoint)).toMatchObject({ delivered: true, status: 201, error: null })
    const [got] = receiver.seen
    if (!got) throw new Error('nothing came')
    expect(verify(got, endpoint.secret)).toEqual({
      id: listIds(receiver.seen)[0],
      type: 'endpoint.test',
      apiVersion: '2026-11',
      timestamp: expect.stringMatching(/Z$/),
      transactionId: 'test',
      data: { endpointId: endpoint.id },
    })
    const kept = await rig.database.sql`select from events where type = 'endpoint.test'`
    expect(kept).toHaveLength(0)
    expect((await list())[0]).toMatchObject({ disabledReason: 'gone', pending: 0 })
  })

  it('reports an error, and counts as no failure', async () => {
    const receiver = await serve((response) => response.writeHead(403).end())
    const refusing = await register(rig, receiver.url)
    expect(await test(refusing)).toMatchObject({
      delivered: false,
      status: 403,
      error: 'answered 403',
    })
    for (const one of await list()) expect(one).toMatchObject({ failingSince: null })
  })

  it('is refused while too many are in progress', async () => {
    const open: (() => void)[] = []
    const silent = await serve((response) => open.push(() => response.end()))
    const { id } = await register(rig, silent.url)
    const tests = Array.from({ length: 8 }, () => call('POST', `/${id}/test`))
    await waitUntil(() => open.length === 8, { what: 'eight tests' })
    await expectProblem(await call('POST', `/${id}/test`), 429, 'rate_limited')
    for (const answer of open.splice(0)) answer()
    for (const one of await Promise.all(tests)) expect(one.status).toBe(200)
    const again = call('POST', `/${id}/test`)
    await waitUntil(() => open.length === 1, { what: 'another test' })
    open[0]?.()
    expect((await again).status).toBe(200)
  })

  it('is one of some twenty a minute of its account', async () => {
    const settings = { ROLE: 'web', WEBHOOK_ALLOW_PRIVATE: 'true' }
    // A process of its own, so that other tests still may.
    const own = await startTestService(rig.database, rig.sandbox.url, { settings })
    onTestFinished(() => own.stop())
    const receiver = await serve((response) => response.end())
    const { id } = await register(rig, receiver.url)
    const path = `${own.url}/v1/webhook-endpoints/${id}/test`
    const ask = () => fetch(path, { method: 'POST', ...withKey() })
    let last = await ask()
    while (last.ok) last = await ask()
    const { detail } = await expectProblem(last, 429, 'rate_limited')
    expect(detail).toContain('20 test events a minute')
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(receiver.seen.length).toBeGreaterThanOrEqual(20)
    expect(receiver.seen.length).toBeLessThan(30)
  })
})

it.each([
  [{}, 'url', 'is missing'],
  [{ url: 'https://shop.example', types: ['nope'] }, 'types.0', 'must be one of payment.created'],
  [{ url: 'https://shop.example', types: 'payment.created' }, 'types', 'must be of type array'],
])('an invalid field is named, with what is valid: %j', async (body, field, words) => {
  const { detail } = await expectInvalid(await registerWith(body), field)
  expect(detail).toContain(`${field}: ${words}`)
})

it("an id is the same in capitals, and a schema's own messages are kept", async () => {
  const receiver = await serve((response) => response.writeHead(403).end())
  const { id } = Registration.parse(await (await registerWith({ url: receiver.url })).json())
  const replay = await expectInvalid(await call('POST', `/${id}/replay`, {}), 'after')
  expect(replay.detail).toBe('after: must be a text: the id of an event, or "0"')
  expect(await test({ id: id.toUpperCase() })).toMatchObject({ delivered: false })
  expect((await call('DELETE', `/${id}`)).status).toBe(204)
})

describe('a replay', () => {
  it('is refused for events that do not exist, or not yet', async () => {
    const { id } = await register(rig, URL_HERE)
    const [last = ''] = await publish(rig, ['T-END'])
    const replay = (after: unknown) => call('POST', `/${id}/replay`, { after })
    await expectInvalid(await replay(String(Number(last) + 1)), 'after')
    for (const no of ['', '-1', 'x', '1.5', 7, null]) await expectInvalid(await replay(no), 'after')
    expect((await replay(last)).status).toBe(202)
  })
})

describe('every write', () => {
  it('is audited with key, object and request', async () => {
    const receiver = await serve((response) => response.end())
    const { id } = await register(rig, receiver.url)
    await call('PATCH', `/${id}`, { url: receiver.url })
    await call('POST', `/${id}/rotate-secret`)
    await call('POST', `/${id}/test`)
    await call('POST', `/${id}/enable`)
    await call('POST', `/${id}/replay`, { after: '0' })
    const [eventId = ''] = await publish(rig, ['T-AUDITED'])
    await call('POST', `/${id}/deliveries/replay`)
    await call('POST', `/${id}/deliveries/${eventId}/replay`)
    await call('DELETE', `/${id}`)
    const rows = await rig.database.sql<{ operation: string; request: boolean }[]>`
      select operation, merchant_code, outcome, request_id is not null as request
      from audit_entries where object_id = ${id} order by id`
    const one = '/v1/webhook-endpoints/{endpointId}'
    expect(rows.map(({ operation }) => operation)).toEqual([
      'POST /v1/webhook-endpoints',
      `PATCH ${one}`,
      `POST ${one}/rotate-secret`,
      `POST ${one}/test`,
      `POST ${one}/enable`,
      `POST ${one}/replay`,
      `POST ${one}/deliveries/replay`,
      `POST ${one}/deliveries/{eventId}/replay`,
      `DELETE ${one}`,
    ])
    for (const row of rows) {
      expect(row).toMatchObject({ merchant_code: '*', outcome: 'done', request: true })
    }
  })
})

it('a secret is in no log, list or table, and an address in the log ends with its host', async () => {
  const receiver = await serve((response) => response.writeHead(410).end())
  const { id, secret } = await register(rig, `${receiver.url}/path-token?query=token`)
  await deliver(rig, ['T-SECRET'])
  await call('POST', `/${id}/test`)
  const shown = await (await call('GET')).text()
  const [stored] = await rig.database.sql<{ text: string; bytes: Buffer }[]>`
    select to_jsonb(e)::text as text, secret as bytes from webhook_endpoints as e where id = ${id}`
  const key = Buffer.from(secret.slice(6), 'base64')
  expect(stored?.bytes.includes(key)).toBe(false)
  expect(stored?.bytes.includes(secret.slice(6))).toBe(false)
  const signature = new Webhook(secret).sign('1', new Date(0), '{}')
  for (const text of [kept.text(), shown, stored?.text ?? '']) {
    expect(text).toContain(id)
    for (const hidden of [secret, secret.slice(6), key.toString('hex'), signature]) {
      expect(text).not.toContain(hidden)
    }
  }
  for (const hidden of ['path-token', 'query=token']) expect(kept.text()).not.toContain(hidden)
  expect(kept.text()).toContain('webhook endpoint disabled')
})
