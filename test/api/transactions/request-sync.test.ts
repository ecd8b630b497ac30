import { request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { Transaction } from '../../../src/transactions/view.ts'
import { expectInvalid, expectProblem, OTHER, TWO_ACCOUNTS, withKey } from '../../support/api.ts'
import { post } from '../../support/ask.ts'
import { addKey, KEY, MERCHANT, startTestService } from '../../support/service.ts'
import { makeTransaction } from '../../support/sync.ts'
import { clearRig, useRig } from '../../support/use-started.ts'

const MINE = 'key-bound-to-the-first-account-0123456789'
const settings = { ...TWO_ACCOUNTS, ROLE: 'web' }
const rig = useRig({ settings, config: { bodyTimeoutMs: 1_000 } })
beforeAll(() => addKey(rig.database, MINE, ['payments:read'], MERCHANT.merchantCode))
afterEach(() => clearRig(rig))

type Sent = { body?: string | Uint8Array; type?: string; key?: string }

function sync(id: string, { body, type, key = MINE }: Sent = {}) {
  return fetch(`${rig.service.url}/v1/transactions/${id}/sync`, {
    method: 'POST',
    ...withKey(key, type === undefined ? {} : { 'content-type': type }),
    ...(body === undefined ? {} : { body }),
  })
}

const json = (value: unknown, key = MINE): Sent => ({
  body: JSON.stringify(value),
  type: 'application/json',
  key,
})

async function known(): Promise<string[]> {
  const rows = await rig.database.sql<{ id: string }[]>`
    select transaction_id as id from transactions order by transaction_id`
  return rows.map(({ id }) => id)
}

it('a request to sync registers a transaction that was never notified, and fetches its payments', async () => {
  await makeTransaction(rig, 'T-UNTOLD')
  const response = await sync('T-UNTOLD')
  expect(response.status).toBe(202)
  const shown = { transactionId: 'T-UNTOLD', merchantCode: MERCHANT.merchantCode, ipnCount: 0 }
  expect(Transaction.strict().parse(await response.json())).toMatchObject(shown)
  expect(await syncDue(rig.service.ctx)).toBe(1)
  expect(await rig.transaction('T-UNTOLD')).toMatchObject({ ...shown, state: 'paid' })
})

describe('its body', () => {
  it.each<[string, Sent]>([
    ['none', {}],
    ['none, declared as JSON', { type: 'application/json' }],
    ['an empty one of any type', { body: '', type: 'text/plain' }],
    ['{}', json({})],
    ['the account', json({ merchantCode: MERCHANT.merchantCode })],
    ['a charset', { ...json({}), type: 'application/json; charset="utf-8"' }],
    ['a type that ends in +json', { ...json({}), type: 'application/merge-patch+json' }],
  ])('may be %s', async (_, sent) => {
    expect((await sync('T-BODY', sent)).status).toBe(202)
  })

  it.each<[string, Sent, string]>([
    ['a number', json({ merchantCode: 7 }), 'merchantCode'],
    ['a list', json({ merchantCode: ['UFLIYL'] }), 'merchantCode'],
    ['null', json({ merchantCode: null }), 'merchantCode'],
    ['an unknown member', json({ merchant: 'UFLIYL' }), 'merchant'],
    ['an own __proto__', { ...json({}), body: '{"__proto__":{"a":1}}' }, '__proto__'],
    ['not an object', json([]), 'body'],
    ['null alone', json(null), 'body'],
    ['a text alone', json('UFLIYL'), 'body'],
  ])('is refused by name: %s', async (_, sent, field) => {
    await expectInvalid(await sync('T-REFUSED', sent), field)
    expect(await known()).not.toContain('T-REFUSED')
  })

  it.each<[string, Uint8Array | string]>([
    ['half of it', '{"merchantCode":'],
    ['words', 'merchantCode=UFLIYL'],
    ['a blank', ' '],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ])('that is not JSON is refused: %s', async (_, body) => {
    const problem = await sync('T-REFUSED', { body, type: 'application/json' })
    await expectProblem(problem, 400, 'invalid_json')
    expect(await known()).not.toContain('T-REFUSED')
  })

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    'application/json, text/plain',
  ])('of the type %s is refused, never ignored', async (type) => {
    const body = JSON.stringify({ merchantCode: OTHER.merchantCode })
    const problem = await sync('T-REFUSED', { body, type, key: KEY })
    await expectProblem(problem, 415, 'unsupported_media_type')
    expect(await known()).not.toContain('T-REFUSED')
  })

  it('of no type is refused as well', async () => {
    const body = new TextEncoder().encode('{}')
    await expectProblem(await sync('T-REFUSED', { body }), 415, 'unsupported_media_type')
  })

  it('over 64 KiB is refused, with or without Content-Length', async () => {
    const big = json({ merchantCode: 'x'.repeat(64 * 1024) })
    await expectProblem(await sync('T-REFUSED', big), 413, 'body_too_large')
    const chunked = request(`${rig.service.url}/v1/transactions/T-REFUSED/sync`, {
      method: 'POST',
      ...withKey(MINE, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }),
    })
    const answered = new Promise<number | undefined>((resolve, reject) => {
      chunked.on('response', ({ statusCode }) => resolve(statusCode)).on('error', reject)
    })
    chunked.write(big.body)
    expect(await answered).toBe(413)
    chunked.destroy()
  })

  it('that does not arrive in time is refused', async () => {
    const { hostname, port } = new URL(rig.service.url)
    const socket = connect(Number(port), hostname)
    socket.write(
      `POST /v1/transactions/T-REFUSED/sync HTTP/1.1\r\nhost: ${hostname}\r\n` +
        `authorization: Bearer ${MINE}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{`,
    )
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1.1 408 /)
    expect(answer).toContain('"code":"body_too_slow"')
    expect(await known()).not.toContain('T-REFUSED')
  })
})

describe('the account', () => {
  it('must be one the key has access to', async () => {
    const other = json({ merchantCode: OTHER.merchantCode })
    await expectProblem(await sync('T-WHOSE', other), 404, 'merchant_not_found')
    for (const merchantCode of ['NOBODY', '', '*', '\u0000']) {
      const sent = json({ merchantCode }, KEY)
      await expectProblem(await sync('T-WHOSE', sent), 404, 'merchant_not_found')
    }
    expect(await known()).not.toContain('T-WHOSE')
  })

  it('must be named for a new transaction when the key holds several', async () => {
    await expectInvalid(await sync('T-NAMED', { key: KEY }), 'merchantCode')
    expect(await known()).not.toContain('T-NAMED')
    const sent = json({ merchantCode: OTHER.merchantCode }, KEY)
    expect(await (await sync('T-NAMED', sent)).json()).toMatchObject({
      merchantCode: OTHER.merchantCode,
    })
    expect((await sync('T-NAMED', { key: KEY })).status).toBe(202)
  })

  it('may also be named in the query, but must be the same as in the body', async () => {
    const path = `T-TWICE/sync?merchantCode=${OTHER.merchantCode}`
    const send = (merchantCode: string) =>
      post(rig.service, `/v1/transactions/${path}`, { merchantCode })
    await expectInvalid(await send(MERCHANT.merchantCode), 'merchantCode')
    expect((await send(OTHER.merchantCode)).status).toBe(202)
  })

  it('that is no longer in the settings is refused, and nothing is made due for it', async () => {
    const { sql } = rig.database
    const gone = 'LEFT1'
    await sql`insert into merchant_accounts (merchant_code) values (${gone})`
    await addKey(rig.database, `key-of-the-account-that-left-0123456789`, ['payments:read'], gone)
    const service = await startTestService(rig.database, rig.sandbox.url, { settings })
    try {
      for (const key of [KEY, 'key-of-the-account-that-left-0123456789']) {
        const asked = { url: service.url, key }
        const response = await post(asked, '/v1/transactions/T-LEFT/sync', { merchantCode: gone })
        await expectProblem(response, 404, 'merchant_not_found')
      }
      expect(await known()).not.toContain('T-LEFT')
    } finally {
      await service.stop()
    }
  })
})

describe('an id', () => {
  it.each([
    ['a control character', 'T%00X'],
    ['a line feed', 'T%0AX'],
    ['a C1 control character', 'T%C2%85X'],
    ['129 characters', 'x'.repeat(129)],
    ['nothing but a blank', '%20'],
  ])('with %s is refused by name on every route', async (_, id) => {
    await expectInvalid(await sync(id), 'transactionId')
    await expectInvalid(await rig.api(`/v1/transactions/${id}`), 'transactionId')
    await expectInvalid(await rig.api(`/v1/transactions/${id}/timeline`), 'transactionId')
    await expectInvalid(await rig.api(`/v1/payments/${id}`), 'paymentId')
  })

  it.each([
    ['half a surrogate pair', 'T%ED%A0%80'],
    ['no UTF-8', 'T%FF'],
    ['a lone percent sign', '50%'],
  ])('with escapes that are %s names no other transaction', async (_, id) => {
    expect((await rig.api(`/v1/transactions/${id}`)).status).toBe(404)
  })

  it.each([
    'x'.repeat(128),
    'a/b',
    '../payments',
    'a/sync',
    'T?wait=60',
    '%41',
    'T #+"\\',
    'ĐƠN HÀNG 💳',
    '__proto__',
  ])('is used exactly as given: %s', async (id) => {
    const path = `/v1/transactions/${encodeURIComponent(id)}`
    expect((await sync(encodeURIComponent(id))).status).toBe(202)
    for (const part of ['', '/timeline']) expect((await rig.api(path + part)).status).toBe(200)
    expect((await rig.transaction(encodeURIComponent(id))).transactionId).toBe(id)
    expect(await known()).toContain(id)
  })

  it('of dots does not lead to another path', async () => {
    const { hostname, port } = new URL(rig.service.url)
    const before = await known()
    for (const dots of ['..', '%2e%2e', '.', '%2E']) {
      const status = await new Promise((resolve, reject) => {
        const path = `/v1/transactions/${dots}/sync`
        const sent = request({ hostname, port, path, method: 'POST', ...withKey(MINE) })
        sent.on('response', ({ statusCode }) => resolve(statusCode)).on('error', reject)
        sent.end()
      })
      expect([404, 405, 422]).toContain(status)
    }
    expect(await known()).toEqual(before)
  })
})
