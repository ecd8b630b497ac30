import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, it } from 'vitest'
import { listEntries } from '../../../src/cli/audit.ts'
import { withKey } from '../../support/api.ts'
import { addCappedKey, ask, expectTaken, moveTo, RECEIVER, seedPaid } from '../../support/ask.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const { merchantCode } = MERCHANT
const rig = useRig({ settings: { ROLE: 'web' } })
let key: string
let keyId: string
beforeEach(async () => {
  key = randomUUID()
  await addKey(rig.database, key, ['payments:read', 'refunds:read', 'refunds:write', 'ops'])
  const [row] = await rig.database.sql<{ id: string }[]>`
    select id from actors where hash = sha256(${key}::bytea)`
  keyId = row?.id ?? ''
})

/** Returns the entries of this test's key, oldest first. */
const readAudit = (by = keyId) => rig.database.sql`
  select actor, operation, merchant_code, object_id, request_id, outcome from audit_entries
  where key_id = ${by} order by id`

const REFUND = 'POST /v1/payments/{paymentId}/refunds'
const RESOLUTION = 'POST /v1/refunds/{refundId}/resolution'
const SYNC = 'POST /v1/transactions/{transactionId}/sync'

function post(path: string, requestId: string, body: unknown = {}, headers = {}) {
  const more = { 'content-type': 'application/json', 'x-request-id': requestId, ...headers }
  const init = { method: 'POST', body: JSON.stringify(body), ...withKey(key, more) }
  return fetch(rig.service.url + path, init)
}

describe('a completed write is recorded with its key, operation and request', () => {
  it('a refund, once however often it is repeated; a dry run is not', async () => {
    const { id } = await seedPaid(rig.database)
    const path = `/v1/payments/${id}/refunds`
    expect((await post(`${path}?dryRun=true`, 'req-0')).status).toBe(200)
    expect((await post(`${path}?dryRun=true`, 'req-0', { amount: '101' })).status).toBe(409)
    const repeated = { 'idempotency-key': randomUUID() }
    const refund = await expectTaken(await post(path, 'req-1', {}, repeated))
    // Filtering by a payment finds its refunds, which have ids of their own.
    const found = await listEntries(rig.database.sql, { objectId: id }, 10)
    expect(found.map(({ objectId, outcome }) => [objectId, outcome])).toContainEqual([
      refund.id,
      'done',
    ])
    await expectTaken(await post(path, 'req-2', {}, repeated), true)
    expect(await readAudit()).toEqual([
      {
        actor: 'test',
        operation: REFUND,
        merchant_code: merchantCode,
        object_id: refund.id,
        request_id: 'req-1',
        outcome: 'done',
      },
    ])
  })

  it('a decision on a refund in review, and a request to sync', async () => {
    const { id, transactionId } = await seedPaid(rig.database)
    const refund = await expectTaken(await ask({ url: rig.service.url }, id))
    await moveTo(rig.database, refund.id, 'needs_review')
    const decision = { outcome: 'failed', reason: 'support said so' }
    expect((await post(`/v1/refunds/${refund.id}/resolution`, 'req-3', decision)).status).toBe(200)
    expect((await post(`/v1/transactions/${transactionId}/sync`, 'req-4')).status).toBe(202)
    expect(await readAudit()).toMatchObject([
      { operation: RESOLUTION, object_id: refund.id, request_id: 'req-3', outcome: 'done' },
      { operation: SYNC, object_id: transactionId, request_id: 'req-4', outcome: 'done' },
    ])
  })
})

describe('a write and its entry are one commit:', () => {
  /** A refund, a decision and a request to sync, all of which must roll back. */
  async function prepareFailingWrites() {
    const { id, transactionId } = await seedPaid(rig.database)
    const other = await seedPaid(rig.database)
    const needed = await expectTaken(await ask({ url: rig.service.url }, other.id))
    await moveTo(rig.database, needed.id, 'needs_review')
    return async () => {
      const decision = { outcome: 'failed', reason: 'support said so' }
      const answers = [
        await ask({ url: rig.service.url, key }, id),
        await post(`/v1/refunds/${needed.id}/resolution`, 'req-5', decision),
        await post(`/v1/transactions/${transactionId}/sync`, 'req-6'),
      ]
      expect(answers.map(({ status }) => status)).toEqual([500, 500, 500])
      const [left] = await rig.database.sql`
        select (select count(*) from refunds where payment_id = ${id}) as refunds,
          (select status from refunds where refund_id = ${needed.id}) as status,
          (select want from transactions where transaction_id = ${transactionId}) as want`
      expect(left).toEqual({ refunds: 0, status: 'needs_review', want: 1 })
      expect(await readAudit()).toEqual([])
    }
  }

  it('if the entry cannot be stored, nothing is done', async () => {
    const { sql } = rig.database
    const tryAll = await prepareFailingWrites()
    await sql`alter table audit_entries add constraint closed check (outcome <> 'done') not valid`
    await tryAll().finally(() => sql`alter table audit_entries drop constraint closed`)
  })

  it('if the commit fails, there is no entry either', async () => {
    const { sql } = rig.database
    const tryAll = await prepareFailingWrites()
    await sql.unsafe(`
      create function refuse() returns trigger language plpgsql as 'begin raise exception ''no''; end';
      create constraint trigger late after update on transactions deferrable initially deferred
        for each row execute function refuse()`)
    await tryAll().finally(() => sql`drop function refuse cascade`)
  })
})

describe('a refused write is recorded with the reason', () => {
  const untilRecorded = async (n: number, by = keyId) => {
    await waitUntil(async () => (await readAudit(by)).length >= n, { what: `${n} entries` })
    return await readAudit(by)
  }

  it('by scope, balance, state, or an unknown object', async () => {
    const { id } = await seedPaid(rig.database)
    const path = `/v1/payments/${id}/refunds`
    await post(path, 'req-1', { amount: '101' }, { 'idempotency-key': 'k' })
    await post(path, 'req-2')
    await post(`/v1/refunds/${randomUUID()}/resolution`, 'req-3', {
      outcome: 'failed',
      reason: 'r',
    })
    await post('/v1/transactions/T%00%2F4111111111111111/sync', 'req-4')
    expect((await post('/v1/transactions/T%E0%A4%A/sync?unknown=', 'req-5')).status).toBe(422)
    expect(await untilRecorded(5)).toMatchObject([
      { operation: REFUND, object_id: id, request_id: 'req-1', outcome: 'exceeds_refundable' },
      { operation: REFUND, object_id: id, request_id: 'req-2', outcome: 'idempotency_key_missing' },
      { operation: RESOLUTION, request_id: 'req-3', outcome: 'refund_not_found' },
      { operation: SYNC, request_id: 'req-4', outcome: 'invalid_request' },
      { operation: SYNC, request_id: 'req-5', outcome: 'invalid_request' },
    ])
    const ids = (await readAudit()).map(({ object_id }) => object_id)
    expect(ids.slice(-2)).toEqual(['T?/411111******1111', 'T%E0%A4%A'])
  })

  it('by cap or scope of another key', async () => {
    const capped = randomUUID()
    const cappedId = await addCappedKey(rig.database, capped, { max: '1' })
    const { id, transactionId } = await seedPaid(rig.database)
    await ask({ url: rig.service.url, key: capped }, id, { amount: '2' })
    await fetch(`${rig.service.url}/v1/transactions/${transactionId}/sync`, {
      method: 'POST',
      ...withKey(capped),
    })
    expect(await untilRecorded(2, cappedId)).toMatchObject([
      { actor: 'capped', outcome: 'refund_cap_exceeded' },
      { actor: 'capped', operation: SYNC, outcome: 'scope_missing' },
    ])
  })

  it('but no read, no unknown path and no request without a key', async () => {
    const count = () => rig.database.sql`select count(*) from audit_entries`
    const before = await count()
    await rig.api('/v1/payments/P-none')
    await post('/v1/nothing', 'req-1')
    await fetch(`${rig.service.url}/v1/transactions/T-1/sync`, { method: 'POST' })
    // The refusals above would have been recorded before this one.
    await post('/v1/transactions/T-1/sync?merchantCode=NOBODY', 'req-2')
    expect(await untilRecorded(1)).toMatchObject([{ outcome: 'merchant_not_found' }])
    expect(await count()).toEqual([{ count: Number(before[0]?.count) + 1 }])
  })
})

it('no entry holds a receiver, an amount, a reason or a key', async () => {
  const { id } = await seedPaid(rig.database, { amount: '77123' })
  const body = { amount: '77122', receiver: RECEIVER, reason: 'a private reason' }
  await expectTaken(
    await post(`/v1/payments/${id}/refunds`, 'r', body, { 'idempotency-key': 'own' }),
  )
  const [all] = await rig.database.sql<{ text: string }[]>`
    select string_agg(to_jsonb(a)::text, '') as text from audit_entries a`
  expect(all?.text).toContain(keyId)
  for (const secret of [key, '77122', 'NGUYEN', RECEIVER.accountNumber, 'private']) {
    expect(all?.text).not.toContain(secret)
  }
})

it('entries are append-only: no statement of the service changes one, and one alone deletes', () => {
  const root = fileURLToPath(new URL('../../../src', import.meta.url))
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  const sources = files
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(`${root}/${file}`, 'utf8'))
  const writes = (pattern: RegExp) => sources.filter((text) => pattern.test(text)).length
  expect(writes(/insert into audit_entries/)).toBe(0)
  expect(writes(/insertRows?\(\w+, auditEntries/)).toBe(1)
  expect(writes(/(update|truncate)\s+audit_entries/i)).toBe(0)
  // Retention, of verified entries alone.
  expect(writes(/delete from\s+audit_entries/i)).toBe(1)
  expect(writes(/\.(update|delete)\(auditEntries\)/)).toBe(0)
})
