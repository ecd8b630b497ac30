import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { protectBodies } from '../../src/maintenance/protect-bodies.ts'
import { withKey } from '../support/api.ts'
import { computeShownHmac } from '../support/body-hmac.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

const HASH = createHash('sha256').update('a request of an earlier release').digest()

/** Stores queries as earlier releases did. */
async function storePlain(transactionId: string, count: number): Promise<void> {
  await rig.database.sql`
    insert into transactions (merchant_code, transaction_id) values ('UFLIYL', ${transactionId})`
  await rig.database.sql`
    insert into gateway_calls (merchant_code, transaction_id, command, body_sha256, sent_at, duration_ms, outcome)
    select 'UFLIYL', ${transactionId}, 'QUERY_PT', ${HASH}, now(), 1, 'answered' from generate_series(1, ${count})`
  await rig.database.sql`
    insert into refund_attempts (merchant_code, refund_id, body_sha256, snapshot_call_id, recorded_at)
    values ('UFLIYL', gen_random_uuid(), ${HASH}, 1, now())`
}

async function readShown(transactionId: string): Promise<{ bodyHmac: string | null }[]> {
  const url = `${rig.service.url}/v1/transactions/${transactionId}/timeline`
  const { data } = (await (await fetch(url, withKey())).json()) as {
    data: { bodyHmac: string | null }[]
  }
  return data
}

const countPlain = async () => {
  const [row] = await rig.database.sql<{ n: number }[]>`
    select count(*)::int as n from (
      select body_sha256 from gateway_calls union all select body_sha256 from refund_attempts) as b
    where body_sha256 = ${HASH}`
  return row?.n
}

it('a plain hash of an earlier release is not shown, and is replaced in bounded rounds by its HMAC', async () => {
  await storePlain('T-PLAIN', 600)
  const before = await readShown('T-PLAIN')
  expect(before.length).toBeGreaterThan(0)
  expect(before.every(({ bodyHmac }) => bodyHmac === null)).toBe(true)
  expect(await protectBodies(rig.service.ctx)).toBe(501)
  expect(await countPlain()).toBe(100)
  expect(await protectBodies(rig.service.ctx)).toBe(100)
  expect(await protectBodies(rig.service.ctx)).toBe(0)
  expect(await countPlain()).toBe(0)
  const hmac = computeShownHmac(rig.service, HASH.toString('hex'))
  expect(new Set((await readShown('T-PLAIN')).map(({ bodyHmac }) => bodyHmac))).toEqual(
    new Set([hmac]),
  )
})
