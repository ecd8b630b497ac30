import { afterEach, describe, expect, it } from 'vitest'
import type { Sql } from '../../../src/platform/postgres/types.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { ageOmission, makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { MERCHANT } from '../../support/service.ts'
import {
  claimOne,
  commitClaim,
  makeTransaction,
  readItem,
  registerDue,
  syncAgain,
} from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
afterEach(() => emptyTables(rig.database))

const change = (paymentId: string, to: object) => rig.control('PATCH', `/payments/${paymentId}`, to)
const read = (id: string) => readItem(rig, id)

/** Reads the stored payments of a transaction, by id. */
const readPayments = (transactionId: string) => rig.database.sql`
  select payment_id as id, status, amount, refunded_amount as refunded, missing from payments
  where transaction_id = ${transactionId} order by payment_id`

/** Reads the changes recorded since the last call. */
async function takeChanges() {
  const rows = await rig.database.sql`
    delete from changes returning payment_id as id, field, before, after, cause,
      exists (select from gateway_calls as c where c.id = call_id) as known`
  expect(rows.every((row) => row.known && row.cause === 'query')).toBe(true)
  return rows.map(({ id, field, before, after }) => [id, field, before, after]).sort()
}

async function sync(id: string, payments?: Parameters<typeof makeTransaction>[2]) {
  await makeTransaction(rig, id, payments)
  await registerDue(rig, id)
  await syncAgain(rig, id)
}

describe('what the gateway lists', () => {
  it('is stored as listed, and every new payment is recorded', async () => {
    await sync('T-NEW', [
      { id: 'n1', amount: '10000.50' },
      { id: 'n2', amount: '0.0001', status: 'FAILED' },
    ])
    expect(await readPayments('T-NEW')).toEqual([
      { id: 'n1', status: 'SUCCESS', amount: '10000.50', refunded: '0', missing: false },
      { id: 'n2', status: 'FAILED', amount: '0.0001', refunded: '0', missing: false },
    ])
    expect(await takeChanges()).toEqual([
      [null, 'state', 'pending', 'paid'],
      ['n1', 'status', null, 'SUCCESS'],
      ['n2', 'status', null, 'FAILED'],
    ])
    expect(await read('T-NEW')).toMatchObject({ version: 2, state: 'paid' })
  })

  it('unchanged: nothing is recorded, version and update time stay, only `asOf` is newer', async () => {
    await sync('T-SAME', [{ id: 's1' }])
    const before = await read('T-SAME')
    const times = () => rig.database.sql`select updated_at::text, as_of::text from payments`
    const [first] = await times()
    await takeChanges()
    await syncAgain(rig, 'T-SAME')
    const after = await read('T-SAME')
    expect(after).toMatchObject({ version: before.version, updatedAt: before.updatedAt })
    expect(after.asOf).not.toBe(before.asOf)
    const [second] = await times()
    expect(second?.updated_at).toBe(first?.updated_at)
    expect(second?.as_of).toBe(after.asOf)
    expect(await takeChanges()).toEqual([])
  })

  it('changed: each difference is one row with both values, and the version is incremented once', async () => {
    await sync('T-DIFF', [{ id: 'd1', status: 'PROCESSING' }, { id: 'd2' }])
    const before = await read('T-DIFF')
    await takeChanges()
    await change('d1', { status: 'SUCCESS', amount: '11', paymentMethod: 'ATM' })
    await change('d2', { refundedAmount: '10' })
    await syncAgain(rig, 'T-DIFF')
    expect(await takeChanges()).toEqual([
      [null, 'state', 'paid', 'partially_refunded'],
      ['d1', 'amount', '10', '11'],
      ['d1', 'paymentMethod', 'CC', 'ATM'],
      ['d1', 'status', 'PROCESSING', 'SUCCESS'],
      ['d2', 'refundedAmount', '0', '10'],
    ])
    const after = await read('T-DIFF')
    expect(after.version).toBe(before.version + 1)
    expect(after.updatedAt).not.toBe(before.updatedAt)
    const [first] = await rig.database.sql`
      select refunded_at_first as at_first from payments where payment_id = 'd2'`
    expect(first).toEqual({ at_first: '0' })
  })

  it('is the truth even when it goes backwards: SUCCESS → FAILED is stored and recorded', async () => {
    await sync('T-BACK', [{ id: 'b1' }])
    await takeChanges()
    await change('b1', { status: 'FAILED' })
    await syncAgain(rig, 'T-BACK')
    expect(await rig.transaction('T-BACK')).toMatchObject({
      state: 'failed',
      final: true,
      paidAmount: '0',
      payments: [{ id: 'b1', status: 'FAILED', refundableAmount: '0' }],
    })
    expect(await takeChanges()).toEqual([
      [null, 'state', 'paid', 'failed'],
      ['b1', 'status', 'SUCCESS', 'FAILED'],
    ])
  })

  it('an amount that is equal by value keeps its notation and is no change', async () => {
    await sync('T-EQUAL', [{ id: 'e1', amount: '10000.5' }])
    await takeChanges()
    await change('e1', { amount: '10000.5000', refundedAmount: '0.00' })
    await syncAgain(rig, 'T-EQUAL')
    expect(await readPayments('T-EQUAL')).toMatchObject([{ amount: '10000.5', refunded: '0' }])
    expect(await takeChanges()).toEqual([])
  })
})

describe('a payment that is no longer listed', () => {
  it('is believed gone only once two answers at least a minute apart omit it', async () => {
    await sync('T-BLINK', [{ id: 'blink1' }])
    await takeChanges()
    await change('blink1', { listed: false })
    await syncAgain(rig, 'T-BLINK')
    await syncAgain(rig, 'T-BLINK')
    expect(await takeChanges()).toEqual([])
    expect(await rig.transaction('T-BLINK')).toMatchObject({
      payments: [{ id: 'blink1', missing: false, refundableAmount: '10' }],
      sync: { status: 'queued' },
    })
    // An answer that lists it starts the minute anew.
    await ageOmission(rig, 'blink1')
    await change('blink1', { listed: true })
    await syncAgain(rig, 'T-BLINK')
    await change('blink1', { listed: false })
    await syncAgain(rig, 'T-BLINK')
    expect(await takeChanges()).toEqual([])
    await ageOmission(rig, 'blink1')
    await syncAgain(rig, 'T-BLINK')
    expect(await takeChanges()).toEqual([['blink1', 'missing', 'false', 'true']])
  })

  it('is kept with its old `asOf`, marked missing, not refundable, and queried again', async () => {
    await sync('T-GONE', [{ id: 'g1' }, { id: 'g2' }])
    const [old] = await rig.database.sql`select as_of::text from payments where payment_id = 'g2'`
    await takeChanges()
    await change('g2', { listed: false })
    await syncAgain(rig, 'T-GONE')
    expect(await takeChanges()).toEqual([])
    expect(await read('T-GONE')).toMatchObject({ state: 'paid', dueInMs: expect.any(Number) })
    await ageOmission(rig, 'g2')
    await syncAgain(rig, 'T-GONE')
    expect(await takeChanges()).toEqual([['g2', 'missing', 'false', 'true']])
    expect(await rig.transaction('T-GONE')).toMatchObject({
      payments: [
        { id: 'g1', missing: false, refundableAmount: '10' },
        { id: 'g2', missing: true, refundableAmount: '0' },
      ],
      sync: { status: 'queued' },
    })
    const [kept] = await rig.database.sql`select as_of::text from payments where payment_id = 'g2'`
    expect(kept).toEqual(old)

    const before = await read('T-GONE')
    await syncAgain(rig, 'T-GONE')
    expect(await takeChanges()).toEqual([])
    expect((await read('T-GONE')).version).toBe(before.version)
  })

  it('in one answer, or in two within a minute, is not taken for gone: its refunds wait', async () => {
    const gateway = await startListingGateway(rig, { REFUND_BACKOFF_MS: 1 })
    gateway.list(makeEntry('w1'))
    await gateway.sync('T-WAIT')
    await expectTaken(await ask(rig.service, 'w1', { amount: '1' }))
    const readRefund = () => rig.database.sql`
      select status, attempts, failure_reason as why from refunds`
    gateway.list()
    for (let n = 0; n < 3; n += 1) await gateway.sync('T-WAIT')
    expect(await readRefund()).toEqual([{ status: 'pending', attempts: 0, why: null }])
    expect(await readPayments('T-WAIT')).toMatchObject([{ missing: false }])
    gateway.list('{"amount":1}')
    await ageOmission(rig, 'w1')
    await gateway.sync('T-WAIT')
    expect(await readPayments('T-WAIT')).toMatchObject([{ missing: false }])

    gateway.list()
    await rig.database.sql`update refunds set due_at = now()`
    await gateway.sync('T-WAIT')
    expect(await readPayments('T-WAIT')).toMatchObject([{ missing: true }])
    expect(await readRefund()).toEqual([{ status: 'needs_review', attempts: 0, why: null }])
  })

  it('and comes back is no longer missing, and the transaction is idle', async () => {
    await sync('T-RETURN', [{ id: 'r1' }])
    await change('r1', { listed: false })
    await syncAgain(rig, 'T-RETURN')
    await ageOmission(rig, 'r1')
    await syncAgain(rig, 'T-RETURN')
    await takeChanges()
    await change('r1', { listed: true })
    await syncAgain(rig, 'T-RETURN')
    expect(await takeChanges()).toEqual([['r1', 'missing', 'true', 'false']])
    expect(await read('T-RETURN')).toMatchObject({ state: 'paid', dueInMs: null })
  })
})

describe('a payment id that belongs to another transaction', () => {
  const insertOther = (merchantCode = MERCHANT.merchantCode) => rig.database.sql`
    insert into transactions (merchant_code, transaction_id) values (${merchantCode}, 'T-OTHER')`
  const insertForeign = (sql: Sql, paymentId: string, merchantCode = MERCHANT.merchantCode) => sql`
    insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount,
      refunded_amount, refunded_at_first, payment_method, as_of)
    values (now(), ${merchantCode}, ${paymentId}, 'T-OTHER', 'SUCCESS', 5, 0, 0, 'CC', now())`
  const readTag = async (id: string) =>
    (await rig.api(`/v1/transactions/${id}`)).headers.get('etag')
  const readElsewhere = () => rig.database.sql`
    select transaction_id as transaction, payment_id as payment, ours, theirs,
      resolved_at is null as open from discrepancies where kind = 'payment_elsewhere'`

  it('stays there, with a discrepancy: the rest of the answer is applied, and both are asked about', async () => {
    await insertOther()
    await insertForeign(rig.database.sql, 'f2')
    await sync('T-MINE', [{ id: 'f1' }, { id: 'f2' }, { id: 'f3', status: 'FAILED' }])
    expect(await read('T-MINE')).toMatchObject({
      attempts: 0,
      polls: 1,
      state: 'paid',
      lastError: null,
    })
    expect((await rig.transaction('T-MINE')).final).toBe(false)
    expect(await readPayments('T-MINE')).toMatchObject([{ id: 'f1' }, { id: 'f3' }])
    expect(await readPayments('T-OTHER')).toMatchObject([{ id: 'f2', amount: '5' }])
    expect((await read('T-OTHER')).dueInMs).toBeLessThanOrEqual(0)
    expect(await readElsewhere()).toEqual([
      {
        transaction: 'T-MINE',
        payment: 'f2',
        ours: 'listed under transaction T-OTHER',
        theirs: 'listed under transaction T-MINE',
        open: true,
      },
    ])
  })

  it('moves with its refunds once the absence from the other one is believed', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(makeEntry('v1'), makeEntry('v2', { status: 'FAILED' }))
    await gateway.sync('T-FIRST')
    await expectTaken(await ask(rig.service, 'v1', { amount: '1' }))
    await rig.database.sql`update refunds set due_at = now() + interval '1 h'`
    gateway.list(makeEntry('v1'))
    await gateway.sync('T-SECOND')
    expect(await readPayments('T-SECOND')).toEqual([])
    gateway.list(makeEntry('v2', { status: 'FAILED' }))
    await gateway.sync('T-FIRST')
    await ageOmission(rig, 'v1')
    await gateway.sync('T-FIRST')
    expect(await readPayments('T-FIRST')).toMatchObject([{ id: 'v1', missing: true }, { id: 'v2' }])

    const tag = await readTag('T-FIRST')
    gateway.list(makeEntry('v1'))
    await gateway.sync('T-SECOND')
    const movedTag = await readTag('T-FIRST')
    expect(movedTag).not.toBe(tag)
    expect(await readPayments('T-SECOND')).toMatchObject([{ id: 'v1', missing: false }])
    expect(await readPayments('T-FIRST')).toMatchObject([{ id: 'v2' }])
    expect(await rig.transaction('T-SECOND')).toMatchObject({ state: 'paid', final: false })
    const [refund] = await rig.database.sql`select transaction_id as id from refunds`
    expect(refund).toEqual({ id: 'T-SECOND' })
    expect(await readElsewhere()).toMatchObject([{ transaction: 'T-SECOND', open: false }])
    expect(await rig.transaction('T-FIRST')).toMatchObject({ state: 'failed', paidAmount: '0' })
    gateway.list(makeEntry('v2', { status: 'FAILED' }))
    await gateway.sync('T-FIRST')
    expect(await readTag('T-FIRST')).toBe(movedTag)
  })

  it('also when the other transaction stores it at the same moment', async () => {
    await insertOther()
    await makeTransaction(rig, 'T-RACE', [{ id: 'x1' }, { id: 'x2' }])
    await registerDue(rig, 'T-RACE')
    const claim = await claimOne(rig.service.ctx)
    await whileUncommitted(
      rig.database,
      (held) => insertForeign(held, 'x2'),
      async (commit) => {
        const committed = commitClaim(rig.service.ctx, claim)
        await waitUntilBlocked(rig.database)
        await commit()
        expect(await committed).toMatchObject({ end: { next: 'query_later' } })
      },
    )
    expect(await read('T-RACE')).toMatchObject({ attempts: 0, state: 'paid', leased: false })
    expect(await readPayments('T-RACE')).toMatchObject([{ id: 'x1' }])
    expect(await readPayments('T-OTHER')).toMatchObject([{ id: 'x2', amount: '5' }])
    expect(await readElsewhere()).toMatchObject([{ payment: 'x2', open: true }])
  })

  it('of another merchant is allowed: ids are unique per merchant', async () => {
    await insertOther('SHOP2')
    await insertForeign(rig.database.sql, 'm1', 'SHOP2')
    await insertForeign(rig.database.sql, 'm2', 'SHOP2')
    await sync('T-OTHER', [{ id: 'm1' }])
    const rows = await rig.database.sql`
      select merchant_code as merchant, payment_id as id, amount, missing from payments
      order by merchant_code, payment_id`
    expect(rows).toEqual([
      { merchant: 'SHOP2', id: 'm1', amount: '5', missing: false },
      { merchant: 'SHOP2', id: 'm2', amount: '5', missing: false },
      { merchant: MERCHANT.merchantCode, id: 'm1', amount: '10', missing: false },
    ])
  })
})
