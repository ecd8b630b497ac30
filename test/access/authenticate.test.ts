import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ensureFirstKey } from '../../src/access/first-key.ts'
import { SCOPES } from '../../src/access/keys.ts'
import { expectProblem, OTHER, readPage, withKey, writeMerchantsFile } from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'
import { startMain } from '../support/main-process.ts'
import { addKey, MERCHANT, type Rig, startRig, startTestService } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const GRACE_MS = 3_600_000

const MINE = 'key-bound-to-the-first-account-0123456789'
const THEIRS = 'key-bound-to-the-other-account-0123456789'

/** Every route with an id, by method and path. */
const ONE = (id: string) => [
  { method: 'GET', path: `/v1/transactions/T-${id}` },
  { method: 'GET', path: `/v1/transactions/T-${id}?wait=0` },
  { method: 'GET', path: `/v1/transactions/T-${id}/timeline` },
  { method: 'POST', path: `/v1/transactions/T-${id}/sync` },
  { method: 'GET', path: `/v1/payments/P-${id}` },
]
const LISTS = [
  { method: 'GET', path: '/v1/transactions' },
  { method: 'GET', path: '/v1/payments' },
]

const accounts = [MERCHANT, OTHER]
const file = writeMerchantsFile(accounts)
let rig: Rig

/** `T-BOTH` and `P-BOTH` exist at both accounts, `T-MINE` and `T-THEIRS` at one each. */
beforeAll(async () => {
  rig = await startRig({ settings: { MERCHANTS_FILE: file.path }, sandbox: { accounts } })
  for (const { merchantCode } of accounts) {
    const own = merchantCode === MERCHANT.merchantCode ? 'MINE' : 'THEIRS'
    await addKey(rig.database, own === 'MINE' ? MINE : THEIRS, SCOPES, merchantCode)
    for (const id of ['BOTH', own]) {
      await rig.control('POST', '/transactions', {
        transactionId: `T-${id}`,
        merchantCode,
        payments: [
          { id: `P-${id}`, amount: `${own.length}`, paymentMethod: 'QR', status: 'SUCCESS' },
        ],
      })
    }
  }
  const settled = async () => {
    const { data } = await readPage(await rig.api('/v1/transactions?state=paid'))
    return data.length === 4
  }
  await waitUntil(settled, { what: 'four payments' })
})
afterAll(async () => {
  await rig.stop()
  file.remove()
})

const call = ({ method, path }: { method: string; path: string }, key: string) =>
  fetch(rig.service.url + path, { method, ...withKey(key) })

describe('without a valid key', () => {
  it.each([
    ['no header', undefined],
    ['another scheme', `Basic ${MINE}`],
    ['a word before the scheme', `Basic Bearer ${MINE}`],
    ['the key alone', MINE],
    ['no key after the scheme', 'Bearer '],
    ['an unknown key', `Bearer ${MINE}x`],
    ['two keys', `Bearer ${MINE} ${MINE}`],
    ['a key too long to be one', `Bearer ${'x'.repeat(300)}`],
  ])('%s: 401 with a Bearer challenge', async (_, authorization) => {
    for (const { method, path } of [...ONE('MINE'), ...LISTS, { method: 'GET', path: '/v1/no' }]) {
      const response = await fetch(rig.service.url + path, {
        method,
        headers: authorization === undefined ? {} : { authorization },
      })
      expect(response.headers.get('www-authenticate')).toBe('Bearer')
      await expectProblem(response, 401, 'unauthenticated')
    }
  })

  it('an expired or revoked key is refused for writes immediately, and for reads shortly after', async () => {
    const { sql } = rig.database
    const read = { method: 'GET', path: '/v1/transactions' }
    const write = { method: 'POST', path: '/v1/transactions/T-MINE/sync' }
    for (const column of ['expires_at', 'revoked_at']) {
      const key = `key-that-ends-by-${column}-0123456789`
      await addKey(rig.database, key, SCOPES)
      expect((await call(read, key)).status).toBe(200)
      await sql`
        update api_keys set ${sql(column)} = now() + interval '1 hour' * ${column === 'expires_at' ? 1 : 0}
        where hash = sha256(${key}::bytea)`
      if (column === 'expires_at') {
        expect((await call(write, key)).status).toBe(202)
        await sql`update api_keys set expires_at = now() where hash = sha256(${key}::bytea)`
      }
      await expectProblem(await call(write, key), 401, 'unauthenticated')
      const isRefused = async () => (await call(read, key)).status === 401
      await waitUntil(isRefused, { what: 'the cache to expire' })
    }
  })

  it('the scheme is case-insensitive', async () => {
    const headers = { authorization: `bearer ${MINE}` }
    expect((await fetch(`${rig.service.url}/v1/transactions`, { headers })).status).toBe(200)
  })
})

it('a key without payments:read is refused on every route, whatever else it may do', async () => {
  const key = 'key-with-every-other-scope-0123456789'
  await addKey(rig.database, key, SCOPES.slice(1))
  for (const route of [...ONE('MINE'), ...LISTS]) {
    await expectProblem(await call(route, key), 403, 'scope_missing')
  }
})

describe('a key bound to one account', () => {
  it("finds nothing of another account's, by id or when it names that account", async () => {
    for (const route of ONE('THEIRS')) {
      const { method, path } = route
      if (method === 'POST') continue
      const code = path.includes('payments') ? 'payment_not_found' : 'transaction_not_found'
      await expectProblem(await call(route, MINE), 404, code)
      const named = `${path}${path.includes('?') ? '&' : '?'}merchantCode=${OTHER.merchantCode}`
      await expectProblem(await call({ method, path: named }, MINE), 404, code)
    }
  })

  it("cannot make another account's transaction due", async () => {
    const path = `/v1/transactions/T-THEIRS/sync?merchantCode=${OTHER.merchantCode}`
    await expectProblem(await call({ method: 'POST', path }, MINE), 404, 'merchant_not_found')
    const response = await fetch(`${rig.service.url}/v1/transactions/T-THEIRS/sync`, {
      ...withKey(MINE, { 'content-type': 'application/json' }),
      method: 'POST',
      body: JSON.stringify({ merchantCode: OTHER.merchantCode }),
    })
    await expectProblem(response, 404, 'merchant_not_found')
    const rows = await rig.database.sql`
      select merchant_code, want from transactions where transaction_id = 'T-THEIRS'`
    expect([...rows]).toEqual([{ merchant_code: OTHER.merchantCode, want: 1 }])
  })

  it('sees its own of an id that both accounts have', async () => {
    for (const [key, { merchantCode }, amount] of [
      [MINE, MERCHANT, '4'],
      [THEIRS, OTHER, '6'],
    ] as const) {
      for (const route of ONE('BOTH').filter(({ path }) => !path.includes('timeline'))) {
        const response = await call(route, key)
        const wanted = { merchantCode, payments: [{ amount }] }
        expect(await response.json()).toMatchObject(
          route.path.includes('payments') ? { amount } : wanted,
        )
      }
    }
  })

  it('lists its own only', async () => {
    for (const [key, id] of [
      [MINE, 'MINE'],
      [THEIRS, 'THEIRS'],
    ] as const) {
      const other = id === 'MINE' ? OTHER : MERCHANT
      for (const { method, path } of LISTS) {
        const { data } = await readPage(await call({ method, path }, key))
        const ids = data.map((one) => one.id ?? one.transactionId)
        const prefix = path.includes('payments') ? 'P' : 'T'
        expect(ids.toSorted()).toEqual([`${prefix}-BOTH`, `${prefix}-${id}`])
        const named = { method, path: `${path}?merchantCode=${other.merchantCode}` }
        expect((await readPage(await call(named, key))).data).toEqual([])
      }
    }
  })
})

describe('a key for all accounts', () => {
  it('has to name the account of an id that several have, and may', async () => {
    for (const { method, path } of ONE('BOTH')) {
      const response = await rig.api(path, { method })
      const problem = await expectProblem(response, 409, 'ambiguous_merchant')
      expect(problem.detail).toContain('merchantCode')
      for (const { merchantCode } of accounts) {
        const named = `${path}${path.includes('?') ? '&' : '?'}merchantCode=${merchantCode}`
        const { status } = await rig.api(named, { method })
        expect(status).toBe(method === 'POST' ? 202 : 200)
      }
    }
  })

  it('needs no account for an id that one of them has', async () => {
    for (const { method, path } of ONE('THEIRS')) {
      expect((await rig.api(path, { method })).ok).toBe(true)
    }
  })

  it('lists all of them, or the one it names', async () => {
    for (const { path } of LISTS) {
      expect((await readPage(await rig.api(path))).data).toHaveLength(4)
      const named = await readPage(await rig.api(`${path}?merchantCode=${OTHER.merchantCode}`))
      expect(named.data).toHaveLength(2)
      expect((await readPage(await rig.api(`${path}?merchantCode=NOBODY`))).data).toEqual([])
    }
  })
})

describe('the first key of the settings', () => {
  const text = 'first-key-of-the-settings-0123456789abcdef'

  it('is made at the start, works, and is made once by many starts', async () => {
    const database = await createTestDatabase()
    try {
      const main = await startMain({
        API_KEY: text,
        DATABASE_URL: database.url,
        PORT: '0',
        GATEWAY_BASE_URL: rig.sandbox.url,
        MERCHANTS_FILE: file.path,
        DATA_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
        GATEWAY_REFUND_DEDUPES: 'true',
      })
      expect((await fetch(`${main.url}/v1/transactions`, withKey(text))).status).toBe(200)
      expect(await main.stop()).toBe(0)
      await Promise.all(
        Array.from({ length: 5 }, () => ensureFirstKey(database.sql, text, GRACE_MS)),
      )
      const keys = await database.sql`select scopes, merchant_code, hash from api_keys`
      expect(keys.map(({ scopes, merchant_code }) => [scopes, merchant_code])).toEqual([
        [SCOPES, '*'],
      ])
    } finally {
      await database.drop()
    }
  })

  it('stays revoked when it was revoked', async () => {
    const { sql } = rig.database
    await ensureFirstKey(sql, text, GRACE_MS)
    await sql`update api_keys set revoked_at = now() where hash = sha256(${text}::bytea)`
    await ensureFirstKey(sql, text, GRACE_MS)
    const [route] = LISTS
    if (route) await expectProblem(await call(route, text), 401, 'unauthenticated')
  })

  it('is kept as a hash: no column of any row has its text', async () => {
    await ensureFirstKey(rig.database.sql, text, GRACE_MS)
    const rows = await rig.database.sql<{ row: string; hash: Buffer }[]>`
      select to_jsonb(k)::text as row, hash from api_keys k`
    const hex = Buffer.from(text).toString('hex')
    for (const { row } of rows) expect(row.includes(text) || row.includes(hex)).toBe(false)
    expect(rows.every(({ hash }) => hash.length === 32)).toBe(true)
  })
})

describe('an unknown path or method', () => {
  it('an unknown path is a problem', async () => {
    for (const path of ['/v1/nothing', '/v1/transactions/T-MINE/nothing', '/v1/transactions/']) {
      await expectProblem(await rig.api(path), 404, 'not_found')
    }
    await expectProblem(await fetch(`${rig.service.url}/nothing`), 404, 'not_found')
  })

  it('a wrong method lists the allowed ones', async () => {
    for (const [method, path, allow] of [
      ['DELETE', '/v1/transactions/T-MINE', 'GET, HEAD'],
      ['POST', '/v1/payments', 'GET, HEAD'],
      ['GET', '/v1/transactions/T-MINE/sync', 'POST'],
      ['PATCH', '/v1/payments/P-MINE', 'GET, HEAD'],
      ['POST', '/healthz', 'GET, HEAD'],
    ] as const) {
      const response = await rig.api(path, { method })
      expect(response.headers.get('allow')).toBe(allow)
      await expectProblem(response, 405, 'method_not_allowed')
    }
  })
})

it('a request id is adopted, or generated if it is missing or unsuitable for a log', async () => {
  const own = await rig.api('/v1/nothing', { headers: { 'x-request-id': 'order-42_a=' } })
  expect((await expectProblem(own, 404, 'not_found')).requestId).toBe('order-42_a=')
  for (const unfit of ['has spaces', 'a"b', 'x'.repeat(256)]) {
    const response = await rig.api('/v1/transactions', { headers: { 'x-request-id': unfit } })
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  }
})

it('an unexpected error is a bare 500 for the client and logged in full', async () => {
  const database = await createTestDatabase()
  const service = await startTestService(database, rig.sandbox.url, { settings: { ROLE: 'web' } })
  const logged = vi.spyOn(service.ctx.log, 'error')
  try {
    await database.sql`drop table payments cascade`
    const response = await fetch(`${service.url}/v1/payments/P-1`, withKey())
    const problem = await expectProblem(response, 500, 'internal_error')
    expect(JSON.stringify(problem)).not.toMatch(/relation|select|exist|postgres|\.ts|at /i)
    expect(logged).toHaveBeenCalledWith(
      expect.objectContaining({
        requestId: problem.requestId,
        path: '/v1/payments/P-1',
        err: expect.objectContaining({ message: expect.stringContaining('payments') }),
      }),
      expect.any(String),
    )
  } finally {
    await service.stop()
    await database.drop()
  }
})
