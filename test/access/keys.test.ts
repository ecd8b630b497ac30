import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeKey, revokeKey, rotateKey } from '../../src/access/change-keys.ts'
import { SCOPES } from '../../src/access/keys.ts'
import { runInTransaction } from '../../src/db/transaction.ts'
import { withKey } from '../support/api.ts'
import { ask, expectRefused, expectTaken, seedPaid } from '../support/ask.ts'
import { waitUntilBlocked, whileUncommitted } from '../support/locks.ts'
import { addKey, type Rig, startRig } from '../support/service.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig({ settings: { ROLE: 'web' } })
})
afterAll(() => rig.stop())

const make = (more: { refundDailyMax?: string; expiresAt?: string } = {}) =>
  runInTransaction(rig.database.sql, (tx) =>
    makeKey(tx, {
      name: 'k',
      scopes: SCOPES,
      merchantCode: '*',
      refundMax: null,
      refundDailyMax: more.refundDailyMax ?? null,
      ratePerMinute: 1000,
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

it('rotation gives no second day of refunds: old and new key share the total', async () => {
  const { sql } = rig.database
  const first = await make({ refundDailyMax: '100' })
  const { url } = rig.service
  const payment = await seedPaid(rig.database, { amount: '1000' })
  await expectTaken(await ask({ url, key: first.text }, payment.id, { amount: '60' }))
  const second = (await rotateWell(first.id)).made
  const third = (await rotateWell(second.id)).made
  for (const key of [second.text, third.text]) {
    const refused = await ask({ url, key }, payment.id, { amount: '41' })
    const { leftToday } = await expectRefused(refused, 403, 'refund_cap_exceeded')
    expect(leftToday).toBe('40')
  }
  await expectTaken(await ask({ url, key: third.text }, payment.id, { amount: '40' }))
  const refused = await ask({ url, key: first.text }, payment.id, { amount: '1' })
  await expectRefused(refused, 403, 'refund_cap_exceeded')
  expect(await sql`select refunded from api_key_days where key_id = ${first.id}`).toMatchObject([
    { refunded: '100' },
  ])
})

it('the successor may do the same and lives as long as the old key was made for; the old one never longer than before', async () => {
  const inTenDays = new Date(Date.now() + 10 * 86_400_000).toISOString()
  const old = await make({ expiresAt: inTenDays })
  await rig.database.sql`
    update api_keys set created_at = created_at - interval '9 days', expires_at = expires_at - interval '9 days'
    where id = ${old.id}`
  const { made } = await rotateWell(old.id, 2 * 86_400)
  const [rows] = await rig.database.sql<{ same: boolean; newDays: number; oldHours: number }[]>`
    select (o.name, o.scopes, o.merchant_code, o.rate_per_minute)
        = (n.name, n.scopes, n.merchant_code, n.rate_per_minute) as same,
      round(extract(epoch from n.expires_at - now()) / 86400)::int as "newDays",
      round(extract(epoch from o.expires_at - now()) / 3600)::int as "oldHours"
    from api_keys o join api_keys n on n.replaces = o.id where n.id = ${made.id}`
  expect(rows).toEqual({ same: true, newDays: 10, oldHours: 24 })
})

it('two rotations of one key at once: one makes the successor, the other is told of it', async () => {
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
  expect(late).toMatchObject([{ kind: 'rotated' }, { kind: 'rotated_before' }])
})

it('a rotation that comes while the key is being revoked makes no successor', async () => {
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
  expect(late).toEqual({ kind: 'ended' })
})

it('a key that is revoked ends for look-ups that are shared as well: not one write more gets through', async () => {
  const key = randomUUID()
  await addKey(rig.database, key, ['payments:read'])
  const askMany = async () => {
    const path = `${rig.service.url}/v1/transactions/T-1/sync`
    const init = { method: 'POST', ...withKey(key) }
    const answers = await Promise.all(Array.from({ length: 40 }, () => fetch(path, init)))
    return new Set(answers.map(({ status }) => status))
  }
  expect(await askMany()).toEqual(new Set([202]))
  await rig.database.sql`update api_keys set revoked_at = now() where hash = sha256(${key}::bytea)`
  expect(await askMany()).toEqual(new Set([401]))
})
