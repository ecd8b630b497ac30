import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createKey, revokeKey, rotateKey } from '../../../src/access/key-changes.ts'
import { SCOPES } from '../../../src/access/keys.ts'
import { ensureFirstKey } from '../../../src/access/setting-keys.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { withKey } from '../../support/api.ts'
import { ask, expectRefused, expectTaken, seedPaid } from '../../support/ask.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { addKey } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const GRACE_MS = 3_600_000

const rig = useRig({ settings: { ROLE: 'web' } })

const make = (more: { refundDailyMax?: string; expiresAt?: string } = {}) =>
  runInTransaction(rig.database.sql, (tx) =>
    createKey(tx, {
      name: 'k',
      scopes: SCOPES,
      merchantCode: '*',
      refundMax: null,
      refundMaxByCurrency: null,
      refundDailyMaxByCurrency: null,
      refundDailyMax: more.refundDailyMax ?? null,
      ratePerMinute: 1000,
      networks: ['127.0.0.0/8'],
      person: null,
      expiresAt: more.expiresAt ?? null,
    }),
  )
const rotate = (id: string, graceS = 3_600) =>
  runInTransaction(rig.database.sql, (tx) => rotateKey(tx, id, graceS))

async function rotateWell(id: string, graceS?: number) {
  const rotation = await rotate(id, graceS)
  if (rotation.kind !== 'rotated') throw new Error(rotation.kind)
  return rotation
}

it('rotation does not reset the daily cap: old and new key share the total', async () => {
  const { sql } = rig.database
  const first = await make({ refundDailyMax: '100' })
  const { url } = rig.service
  const payment = await seedPaid(rig.database, { amount: '1000' })
  await expectTaken(await ask({ url, key: first.text }, payment.id, { amount: '60' }))
  const second = (await rotateWell(first.id)).created
  const third = (await rotateWell(second.id)).created
  for (const key of [second.text, third.text]) {
    const refused = await ask({ url, key }, payment.id, { amount: '41' })
    const { leftToday } = await expectRefused(refused, 403, 'refund_cap_exceeded')
    expect(leftToday).toBe('40')
  }
  await expectTaken(await ask({ url, key: third.text }, payment.id, { amount: '40' }))
  const refused = await ask({ url, key: first.text }, payment.id, { amount: '1' })
  await expectRefused(refused, 403, 'refund_cap_exceeded')
  expect(
    await sql`select sum(amount) as refunded from refunds where cap_key_id = ${first.id}`,
  ).toEqual([{ refunded: '100' }])
})

it('the successor has the same permissions and lifetime; the old key never lives longer than before', async () => {
  const inTenDays = new Date(Date.now() + 10 * 86_400_000).toISOString()
  const old = await make({ expiresAt: inTenDays })
  await rig.database.sql`
    update actors set created_at = created_at - interval '9 days', expires_at = expires_at - interval '9 days'
    where id = ${old.id}`
  const { created } = await rotateWell(old.id, 2 * 86_400)
  const [rows] = await rig.database.sql<{ same: boolean; newDays: number; oldHours: number }[]>`
    select (o.name, o.scopes, o.merchants, o.rate_per_minute, o.principal)
        = (n.name, n.scopes, n.merchants, n.rate_per_minute, n.principal) as same,
      round(extract(epoch from n.expires_at - now()) / 86400)::int as "newDays",
      round(extract(epoch from o.expires_at - now()) / 3600)::int as "oldHours"
    from actors o join actors n on n.replaces = o.id where n.id = ${created.id}`
  expect(rows).toEqual({ same: true, newDays: 10, oldHours: 24 })
})

it('two concurrent rotations of one key: one creates the successor, the other gets its id', async () => {
  const old = await make()
  const { database } = rig
  const late = await whileUncommitted(
    database,
    (tx) => rotateKey(tx, old.id, 60),
    async (commit, first) => {
      const waiting = rotate(old.id)
      await waitUntilBlocked(database, 1)
      await commit()
      return [first, await waiting]
    },
  )
  expect(late).toMatchObject([{ kind: 'rotated' }, { kind: 'already_rotated' }])
})

it('a rotation during the revocation of the key creates no successor', async () => {
  const old = await make()
  const { database } = rig
  const late = await whileUncommitted(
    database,
    (tx) => revokeKey(tx, old.id),
    async (commit) => {
      const waiting = rotate(old.id)
      await waitUntilBlocked(database, 1)
      await commit()
      return await waiting
    },
  )
  expect(late).toEqual({ kind: 'not_live' })
})

it('a revoked key is refused in shared lookups, too: no further write gets through', async () => {
  const key = randomUUID()
  await addKey(rig.database, key, ['payments:read'])
  const askMany = async () => {
    const path = `${rig.service.url}/v1/transactions/T-1/sync`
    const init = { method: 'POST', ...withKey(key) }
    const answers = await Promise.all(Array.from({ length: 40 }, () => fetch(path, init)))
    return new Set(answers.map(({ status }) => status))
  }
  expect(await askMany()).toEqual(new Set([202]))
  await rig.database.sql`update actors set ended_at = now() where hash = sha256(${key}::bytea)`
  expect(await askMany()).toEqual(new Set([401]))
})

it('the first key gets the scopes that a release adds; no other key does', async () => {
  const { sql } = rig.database
  const [text, other] = [`first-key-${randomUUID()}`, `other-key-${randomUUID()}`]
  await ensureFirstKey(rig.service.ctx, text, GRACE_MS)
  await addKey(rig.database, other, ['ops'])
  await sql`update actors set scopes = '{ops}' where hash = sha256(${text}::bytea)`
  await ensureFirstKey(rig.service.ctx, text, GRACE_MS)
  const readScopes = async (one: string) =>
    (await sql`select scopes from actors where hash = sha256(${one}::bytea)`)[0]?.scopes
  expect([await readScopes(text), await readScopes(other)]).toEqual([SCOPES, ['ops']])
})
