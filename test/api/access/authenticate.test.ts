import { beforeAll, describe, expect, it, vi } from 'vitest'
import { SCOPES } from '../../../src/access/keys.ts'
import { ensureFirstKey } from '../../../src/access/setting-keys.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { createTestDatabase } from '../../support/database.ts'
import { startMain } from '../../support/process.ts'
import { addKey, MERCHANT, startTestService } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const GRACE_MS = 3_600_000

const MINE = 'key-bound-to-the-first-account-0123456789'
const LIST = { method: 'GET', path: '/v1/transactions' }

const rig = useRig({ settings: { ROLE: 'web' } })
beforeAll(() => addKey(rig.database, MINE, SCOPES, MERCHANT.merchantCode))

const call = ({ method, path }: { method: string; path: string }, key: string) =>
  fetch(rig.service.url + path, { method, ...withKey(key) })

describe('without a valid key', () => {
  it.each([
    ...[`Basic ${MINE}`, `Basic Bearer ${MINE}`, MINE, 'Bearer ', `Bearer ${MINE}x`],
    ...[`Bearer ${MINE} ${MINE}`, `Bearer ${'x'.repeat(300)}`],
  ])('`Authorization: %s` is refused with a Bearer challenge', async (authorization) => {
    const response = await fetch(rig.service.url + LIST.path, { headers: { authorization } })
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
    await expectProblem(response, 401, 'unauthenticated')
  })

  it('an expired or revoked key is refused for writes immediately, and for reads shortly after', async () => {
    const { sql } = rig.database
    const read = LIST
    const write = { method: 'POST', path: '/v1/transactions/T-MINE/sync' }
    // It commits nothing: only the look-up of its key refuses it.
    const preview = { method: 'POST', path: '/v1/payments/P-MINE/refunds?dryRun=true' }
    for (const column of ['expires_at', 'ended_at']) {
      const key = `key-that-ends-by-${column}-0123456789`
      await addKey(rig.database, key, SCOPES)
      expect((await call(read, key)).status).toBe(200)
      await sql`
        update actors set ${sql(column)} = now() + interval '1 hour' * ${column === 'expires_at' ? 1 : 0}
        where hash = sha256(${key}::bytea)`
      if (column === 'expires_at') {
        expect((await call(write, key)).status).toBe(202)
        await sql`update actors set expires_at = now() where hash = sha256(${key}::bytea)`
      }
      for (const one of [preview, write]) {
        await expectProblem(await call(one, key), 401, 'unauthenticated')
      }
      const isRefused = async () => (await call(read, key)).status === 401
      await waitUntil(isRefused, { what: 'the cache to expire' })
    }
  })

  it('the scheme is case-insensitive', async () => {
    const headers = { authorization: `bearer ${MINE}` }
    expect((await fetch(`${rig.service.url}/v1/transactions`, { headers })).status).toBe(200)
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
        GATEWAY_MERCHANT_CODE: MERCHANT.merchantCode,
        GATEWAY_SECRET: MERCHANT.secret,
        DATA_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
        GATEWAY_REFUND_DEDUPES: 'true',
      })
      expect((await fetch(`${main.url}/v1/transactions`, withKey(text))).status).toBe(200)
      expect(await main.stop()).toBe(0)
      await Promise.all(
        Array.from({ length: 5 }, () =>
          ensureFirstKey({ ...rig.service.ctx, sql: database.sql }, text, GRACE_MS),
        ),
      )
      const keys = await database.sql`select scopes, merchants, hash from actors`
      expect(keys.map(({ scopes, merchants }) => [scopes, merchants])).toEqual([[SCOPES, ['*']]])
    } finally {
      await database.drop()
    }
  })

  it('stays revoked when it was revoked', async () => {
    const { sql } = rig.database
    await ensureFirstKey(rig.service.ctx, text, GRACE_MS)
    await sql`update actors set ended_at = now() where hash = sha256(${text}::bytea)`
    await ensureFirstKey(rig.service.ctx, text, GRACE_MS)
    await expectProblem(await call(LIST, text), 401, 'unauthenticated')
  })

  it('is kept as a hash: no column of any row has its text', async () => {
    await ensureFirstKey(rig.service.ctx, text, GRACE_MS)
    const rows = await rig.database.sql<{ row: string; hash: Buffer }[]>`
      select to_jsonb(k)::text as row, hash from actors k`
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

  it('a path outside the API lists its methods, too', async () => {
    const response = await rig.api('/healthz', { method: 'POST' })
    expect(response.headers.get('allow')).toBe('GET, HEAD')
    await expectProblem(response, 405, 'method_not_allowed')
  })

  it('an unknown path below /v1 takes a key', async () => {
    await expectProblem(await fetch(`${rig.service.url}/v1/no`), 401, 'unauthenticated')
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
