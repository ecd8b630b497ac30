import { beforeAll, describe, expect, it } from 'vitest'
import { SCOPES } from '../../../src/access/keys.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

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

it('a key is kept as a hash: no column of any row has its text', async () => {
  const rows = await rig.database.sql<{ row: string; hash: Buffer }[]>`
    select to_jsonb(k)::text as row, hash from actors k`
  const hex = Buffer.from(MINE).toString('hex')
  for (const { row } of rows) expect(row.includes(MINE) || row.includes(hex)).toBe(false)
  expect(rows.every(({ hash }) => hash.length === 32)).toBe(true)
})
