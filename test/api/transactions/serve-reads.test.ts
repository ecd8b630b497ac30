import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { OTHER, seedPayment, seedTransaction, TWO_ACCOUNTS } from '../../support/api.ts'
import { addKey, KEY, MERCHANT, startTestService } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: TWO_ACCOUNTS })
const ONE_ACCOUNT = 'key-of-one-account'
const agent = new Agent({ keepAlive: true })

beforeAll(async () => {
  const { database } = rig
  await seedTransaction(database, {
    transactionId: 'T-1',
    state: 'paid',
    orderId: 'đơn "1"\n\u007f',
  })
  await seedTransaction(database, { transactionId: 'T-2', dueAt: '2099-01-01T00:00:00Z' })
  const payment = {
    transactionId: 'T-2',
    amount: '999999999999999999.9999',
    refundedAmount: '0.50',
  }
  await seedPayment(database, { ...payment, paymentId: 'P-1' })
  await seedPayment(database, { ...payment, paymentId: 'P-2', status: 'NEW', missing: true })
  for (const { merchantCode } of [MERCHANT, OTHER]) {
    await seedTransaction(database, { transactionId: 'T-TWICE', merchantCode })
  }
  await addKey(database, ONE_ACCOUNT, ['payments:read'], OTHER.merchantCode)
  await addKey(database, 'key-without-scope', ['refunds:read'])
  await addKey(database, 'key-with-networks', ['payments:read'])
  await database.sql`
    update actors set networks = '{127.0.0.0/8}' where hash = sha256('key-with-networks'::bytea)`
})
afterEach(() => vi.restoreAllMocks())
afterAll(() => agent.destroy())

/** The same id with its first letter escaped: the framework serves it. */
const escaped = (id: string) => `/v1/transactions/%54${id.slice(1)}`
const plain = (id: string) => `/v1/transactions/${id}`
const bearer = (key: string) => ({ authorization: `Bearer ${key}`, 'x-request-id': 'mine' })

type Headers = Readonly<Record<string, string | string[]>>
type Answer = { status: number | undefined; headers: string[]; body: string }

/** The whole answer but its date, with its headers in alphabetical order. */
async function send(
  path: string,
  headers: Headers = bearer(KEY),
  { method = 'GET', body = '', url = rig.service.url } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url + path, { agent, method })
    for (const [name, value] of Object.entries(headers)) sent.setHeader(name, value)
    sent.on('error', reject).on('response', (response) => {
      const { rawHeaders, statusCode: status } = response
      const named = rawHeaders.flatMap((name, at) =>
        at % 2 === 0 ? [`${name.toLowerCase()}: ${rawHeaders[at + 1]}`] : [],
      )
      // What is left of the key's minute differs from one request to the next.
      const sorted = named
        .filter((header) => !header.startsWith('date:'))
        .map((header) => header.replace(/^(ratelimit: "key";r=)\d+;t=\d+$/, '$1…'))
        .toSorted()
      text(response).then((all) => resolve({ status, headers: sorted, body: all }), reject)
    })
    sent.end(body)
  })
}

/** Counts the requests that the framework has served since: for each it looks the key up, and a plain read does not. */
async function countFrameworkRequests(text = KEY) {
  const { keys } = rig.service.ctx.access
  const key = await keys.find(text, 'current')
  if (key) vi.spyOn(keys, 'peek').mockReturnValue(key)
  const finds = vi.spyOn(keys, 'find')
  return () => finds.mock.calls.length
}

async function countSeries(labels: Record<string, string>): Promise<number> {
  const { values } = await rig.service.ctx.metrics.httpRequest.get()
  const counted = values.find(
    ({ metricName, labels: of }) =>
      metricName?.endsWith('_count') &&
      Object.entries(labels).every(([name, value]) =>
        Object.entries(of).some(([n, v]) => n === name && v === value),
      ),
  )
  return counted?.value ?? 0
}

describe('the plain read of a transaction', () => {
  it.each([
    ['that is there', 'T-1', KEY, {}, 200],
    ['with decimals and several payments', 'T-2', KEY, {}, 200],
    ['with a key of one account', 'T-TWICE', ONE_ACCOUNT, {}, 200],
    ['of an account that the key has not', 'T-1', ONE_ACCOUNT, {}, 404],
    ['whose tag the client has', 'T-1', KEY, { 'if-none-match': 'W/"0.1"' }, 304],
    ['whose tag is one of several', 'T-1', KEY, { 'if-none-match': ['"7"', '*'] }, 304],
    ['whose tag the client has not', 'T-1', KEY, { 'if-none-match': 'W/"0.2"' }, 200],
    ['that is not there', 'T-NONE', KEY, {}, 404],
    ['that two accounts have', 'T-TWICE', KEY, {}, 409],
  ])('%s is answered as by the framework', async (_, id, key, more, status) => {
    const headers = { ...bearer(key), ...more }
    const byFramework = await send(escaped(id), headers)
    const framework = await countFrameworkRequests(key)
    expect(await send(plain(id), headers)).toEqual(byFramework)
    expect([byFramework.status, framework()]).toEqual([status, 0])
  })

  it.each([
    ['is away', Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }), 503],
    ['fails', new Error('a fault'), 500],
  ])('is answered as by the framework when the database %s', async (_, error, status) => {
    vi.spyOn(rig.service.ctx.transactionLookups, 'add').mockRejectedValue(error)
    const byFramework = await send(escaped('T-1'))
    const framework = await countFrameworkRequests()
    expect(await send(plain('T-1'))).toEqual(byFramework)
    expect([byFramework.status, framework()]).toEqual([status, 0])
  })

  it('is measured as a request of its route', async () => {
    const labels = { route: '/v1/transactions/{transactionId}', method: 'GET' }
    for (const [id, status] of [
      ['T-1', '2xx'],
      ['T-NONE', '4xx'],
    ] as const) {
      const before = await countSeries({ ...labels, status })
      await send(plain(id))
      await send(escaped(id))
      expect(await countSeries({ ...labels, status })).toBe(before + 2)
    }
  })

  it('gets a request id if the client sent none that is fit', async () => {
    const { headers } = await send(plain('T-1'), { ...bearer(KEY), 'x-request-id': 'a b' })
    expect(headers).toContainEqual(expect.stringMatching(/^x-request-id: [0-9a-f-]{36}$/))
  })

  it('that is in progress when the service stops is the last on its connection', async () => {
    const settings = { ROLE: 'web' }
    const service = await startTestService(rig.database, 'http://127.0.0.1:1', { settings })
    const { url, ctx } = service
    await ctx.access.keys.find(KEY, 'current')
    const add = ctx.transactionLookups.add
    let stopped: Promise<void> | undefined
    ctx.transactionLookups.add = async (...asked) => {
      stopped = service.stop()
      return await add(...asked)
    }
    const { status, headers } = await send(plain('T-1'), bearer(KEY), { url })
    await stopped
    expect([status, headers]).toEqual([200, expect.arrayContaining(['connection: close'])])
  })
})

describe('the framework serves', () => {
  it.each([
    ['an unknown key', 'key-that-nobody-has', {}, {}, 401],
    ['no key', '', { authorization: '' }, {}, 401],
    ['two keys', KEY, { authorization: [`Bearer ${KEY}`, `Bearer ${KEY}`] }, {}, 401],
    ['a key without the scope', 'key-without-scope', {}, {}, 403],
    ['a key that is bound to networks', 'key-with-networks', {}, {}, 200],
    ['a body', KEY, { 'content-length': '2' }, { body: '{}' }, 200],
    ['another method', KEY, {}, { method: 'HEAD' }, 200],
  ])('a read with %s', async (_, key, more, how, status) => {
    const headers = { ...bearer(key), ...more }
    const framework = await countFrameworkRequests(key)
    const withoutCount = ({ headers: all, ...answer }: Answer) => ({
      ...answer,
      headers: all.filter((header) => !header.startsWith('ratelimit:')),
    })
    const answer = await send(plain('T-1'), headers, how)
    const looked = framework()
    expect(withoutCount(answer)).toEqual(withoutCount(await send(escaped('T-1'), headers, how)))
    expect([answer.status, framework()]).toEqual([status, 2 * looked])
    if (status === 200 || status === 403) expect(looked).toBe(1)
  })

  it('a read with a key that is not in the cache', async () => {
    const finds = vi.spyOn(rig.service.ctx.access.keys, 'find')
    vi.spyOn(rig.service.ctx.access.keys, 'peek').mockReturnValue(undefined)
    expect((await send(plain('T-1'))).status).toBe(200)
    expect(finds).toHaveBeenCalledTimes(1)
  })
})
