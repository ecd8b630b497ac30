import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { findDecimals, findLeastAmount } from '../../../../src/money.ts'
import { expectInvalid, withKey } from '../../../support/api.ts'
import {
  ask,
  expectRefused,
  expectTaken,
  moveTo,
  RECEIVER,
  seedPaid,
} from '../../../support/ask.ts'
import { runCli } from '../../../support/cli.ts'
import { atOnce } from '../../../support/locks.ts'
import { addKey } from '../../../support/service.ts'
import { useRig } from '../../../support/use-started.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const WRITER = 'key-that-writes-refunds-only-0123456789-01'
const ROTATED = 'key-that-writes-refunds-and-is-rotated-0123'
const OTHER_WRITER = 'another-key-that-writes-refunds-only-01234'
const NONE = 'key-without-a-scope-for-refunds-0123456789'

const rig = useRig({ settings: { ROLE: 'web' } })
beforeAll(async () => {
  for (const key of [WRITER, OTHER_WRITER, ROTATED]) {
    await addKey(rig.database, key, ['refunds:write'])
  }
  await addKey(rig.database, NONE, ['payments:read'])
})
const request = (id: string, body: unknown = {}, more: { key?: string; query?: string } = {}) =>
  ask({ url: rig.service.url, ...more }, id, body)

/** A payment whose transaction has this currency. */
async function seedIn(currency: string | null, amount = '100') {
  const payment = await seedPaid(rig.database, { amount })
  await rig.database.sql`
    update transactions set currency = ${currency} where transaction_id = ${payment.transactionId}`
  return payment
}

describe('the least amount of a refund', () => {
  it('is the smallest unit of the currency, and 0.01 of an unknown one', () => {
    const currencies = ['VND', 'USD', 'KWD', 'XYZ', 'points', null]
    expect(currencies.map(findLeastAmount)).toEqual(['1', '0.01', '0.001', '0.01', '0.01', '0.01'])
  })

  it('is the same however the currency is spelt, and so are its decimals', () => {
    expect(['vnd', ' Kwd '].map(findLeastAmount)).toEqual(['1', '0.001'])
    expect(['vnd', ' Kwd '].map(findDecimals)).toEqual([0, 3])
  })

  it.each([
    [null, '0.0001'],
    [null, '0.0099'],
    ['points', '0.0001'],
    ['XYZ', '0.009'],
    ['USD', '0.001'],
    ['VND', '0.5'],
    [' vnd ', '0.5'],
    ['vnd', '1.5'],
  ])('in %s refuses %s, and names the field', async (currency, amount) => {
    const { id } = await seedIn(currency)
    await expectInvalid(await request(id, { amount }), 'amount')
    await expectInvalid(await request(id, { amount }, { query: '?dryRun=true' }), 'amount')
  })

  it('never keeps the rest from being refunded, however small it is', async () => {
    const { id } = await seedIn(null, '10.0005')
    await expectTaken(await request(id, { amount: '10' }))
    await expectInvalid(await request(id, { amount: '0.0004' }), 'amount')
    await expectTaken(await request(id, { amount: '0.0005' }))
    const left = await seedIn('VND', '10000.50')
    await expectTaken(await request(left.id, { amount: '10000' }))
    expect((await expectTaken(await request(left.id))).amount).toBe('0.50')
  })

  it('is no reason to refuse all that is left by its amount, which is sent without one', async () => {
    const { id } = await seedIn('VND', '10000.50')
    const preview = await request(id, {}, { query: '?dryRun=true' })
    expect(await preview.json()).toMatchObject({ wouldSend: { amount: '10000.50' } })
    await expectTaken(await request(id, { amount: '10000.50' }))
  })
})

/** Stores refunds of a payment that have not ended, as requests would have. */
const storeOpen = (id: string, transactionId: string, count: number) => rig.database.sql`
  insert into refunds (fingerprint_key_id, requested_principal, merchant_code, refund_id, transaction_id, payment_id, amount, idempotency_key, fingerprint,
    requested_by, status, due_at)
  select 'k', 'key:k', 'UFLIYL', gen_random_uuid(), ${transactionId}, ${id}, 0.01, gen_random_uuid()::text, ''::bytea, 'test',
    'pending', now() from generate_series(1, ${count}::int)`

describe('the open refunds of a payment', () => {
  it('are 100 at most; one that ends makes room, and a repeated request is answered all the same', async () => {
    const { id, transactionId } = await seedPaid(rig.database)
    const idempotencyKey = randomUUID()
    const url = rig.service.url
    const first = await expectTaken(await ask({ url, idempotencyKey }, id, { amount: '1' }))
    await storeOpen(id, transactionId, 98)
    await expectTaken(await request(id, { amount: '1' }))
    const refused = await request(id, { amount: '1' })
    const { detail } = await expectRefused(refused, 409, 'too_many_open_refunds')
    expect(detail).toContain(id)
    await expectTaken(await ask({ url, idempotencyKey }, id, { amount: '1' }), true)
    await expectRefused(
      await request(id, { amount: '1' }, { query: '?dryRun=true' }),
      409,
      'too_many_open_refunds',
    )
    await moveTo(rig.database, first.id, 'failed')
    await expectTaken(await request(id, { amount: '1' }))
    // Another payment is not concerned.
    await expectTaken(await request((await seedPaid(rig.database)).id, { amount: '1' }))
  })

  it('are counted under the lock of the payment: of two requests at once, one is too many', async () => {
    const { id, transactionId } = await seedPaid(rig.database)
    await storeOpen(id, transactionId, 99)
    const answers = await atOnce(
      rig.database,
      (held) => held`select from payments where payment_id = ${id} for update`,
      [1, 2].map(() => () => request(id, { amount: '1' })),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 409])
  })
})

describe('a repeated request', () => {
  it('shows its refund to the key that requested it, and to others only with refunds:read', async () => {
    const { id } = await seedPaid(rig.database, { paymentMethod: 'QR' })
    const idempotencyKey = 'guessed-by-another-key'
    const body = { amount: '10', receiver: RECEIVER, reason: 'a reason' }
    const again = (key: string) => ask({ url: rig.service.url, key, idempotencyKey }, id, body)
    const { id: refundId } = await expectTaken(await again(WRITER))
    expect((await expectTaken(await again(WRITER), true)).id).toBe(refundId)
    const answer = await again(OTHER_WRITER)
    const text = await answer.clone().text()
    await expectRefused(answer, 403, 'scope_missing')
    for (const shown of [refundId, RECEIVER.accountName, 'a reason']) {
      expect(text).not.toContain(shown)
    }
    // The key of every scope may read refunds.
    await expectTaken(await ask({ url: rig.service.url, idempotencyKey }, id, body), true)
  })

  it('shows it to the key that the first one was rotated to', async () => {
    const { id } = await seedPaid(rig.database)
    const idempotencyKey = 'before-the-rotation'
    const body = { amount: '10' }
    const again = (key: string) => ask({ url: rig.service.url, key, idempotencyKey }, id, body)
    await expectTaken(await again(ROTATED))
    const [key] = await rig.database.sql<{ id: string }[]>`
      select id from actors where hash = sha256(${ROTATED}::bytea)`
    const rotated = await runCli(['keys', 'rotate', key?.id ?? '', '--json'], {
      DATABASE_URL: rig.database.url,
    })
    const next: unknown = Reflect.get(JSON.parse(rotated.out), 'key')
    await expectTaken(await again(String(next)), true)
  })
})

describe('dryRun=true', () => {
  const readRefusals = () => rig.database.sql<{ operation: string; outcome: string }[]>`
    select operation, outcome from audit_entries where outcome <> 'done' and request_id = 'dry' order by id`
  const post = (path: string, key: string) =>
    fetch(`${rig.service.url}${path}?dryRun=true`, {
      method: 'POST',
      body: '{}',
      ...withKey(key, { 'content-type': 'application/json', 'x-request-id': 'dry' }),
    })

  it('keeps no refusal out of the audit log but that of a dry run with the scope for it', async () => {
    const { id, transactionId } = await seedPaid(rig.database, { status: 'FAILED' })
    const paths = [
      `/v1/refunds/${randomUUID()}/resolution`,
      `/v1/refunds/${randomUUID()}/cancellation`,
      `/v1/holds/payment/${id}`,
      '/v1/webhook-endpoints',
    ]
    for (const path of paths) await post(path, NONE)
    await post(`/v1/payments/${id}/refunds`, NONE)
    await post(`/v1/transactions/${transactionId}/surplus-refund`, NONE)
    expect((await post(`/v1/payments/${id}/refunds`, WRITER)).status).toBe(409)
    const surplus = await post(`/v1/transactions/${transactionId}/surplus-refund`, WRITER)
    expect(surplus.status).toBe(409)
    const refused = [
      'POST /v1/refunds/{refundId}/resolution',
      'POST /v1/refunds/{refundId}/cancellation',
      'POST /v1/webhook-endpoints',
      'POST /v1/payments/{paymentId}/refunds',
      'POST /v1/transactions/{transactionId}/surplus-refund',
    ]
    await waitUntil(async () => (await readRefusals()).length >= refused.length, {
      what: 'the entries',
    })
    expect(await readRefusals()).toEqual(
      refused.map((operation) => ({ operation, outcome: 'scope_missing' })),
    )
  })
})
