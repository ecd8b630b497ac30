import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ask } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { readRecorded } from '../../support/feed.ts'
import { makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { readItem } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
/** The transaction of the current test: events are kept. */
let tests = 0
let id = ''
beforeEach(() => {
  tests += 1
  id = `T-ODD-${tests}`
})
afterEach(() => emptyTables(rig.database))

const entry = (more: object = {}) => makeEntry('p1', { amount: 100, ...more })
const show = () => rig.transaction(id)
const showPayment = async () => (await show()).payments[0]

/** Requests a refund of the payment. */
async function refund(amount: string) {
  const response = await ask(rig.service, 'p1', { amount })
  const { code, refundableAmount } = JSON.parse(await response.text())
  return { status: response.status, code, refundableAmount }
}

const readFound = (kind = 'answer_went_backwards') => rig.database.sql`
  select ours, theirs, resolved_at is null as open from discrepancies where kind = ${kind} order by id`

const readCounted = () => rig.database.sql`
  select counted_status as status, counted_amount as amount, amount_changed_at is not null as waits from payments`

/** As if the gateway had shown the amount for longer than `REFUND_CONFIRM_FAILED_MS`. */
const ageAmount = () => rig.database.sql`
  update payments set amount_changed_at = amount_changed_at - interval '10 min'`

const NOTHING_ODD = [{ status: null, amount: null, waits: false }]

describe('a success whose status becomes one that nobody knows', () => {
  it("a status of the gateway's own after a refund leaves the order paid, unrecognised and not final", async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(entry({ refundedAmount: 40 }))
    await gateway.sync(id)
    const sums = { state: 'partially_refunded', paidAmount: '100', refundedAmount: '40' }
    expect(await show()).toMatchObject({ ...sums, final: true })
    for (const [status, shown] of [
      ['REFUND_DONE', 'REFUND_DONE'],
      [null, ''],
      ['ARCHIVED', 'ARCHIVED'],
    ]) {
      gateway.list(entry({ refundedAmount: 40, status }))
      await gateway.sync(id)
      expect(await show()).toMatchObject({
        ...sums,
        final: false,
        payments: [{ status: shown, unrecognised: true, refundableAmount: '0' }],
        sync: { status: 'queued' },
      })
      expect(await refund('1')).toMatchObject({ status: 409, code: 'payment_not_refundable' })
      expect(await readCounted()).toEqual([{ status: 'SUCCESS', amount: null, waits: false }])
    }
    expect(await readFound()).toEqual([
      { ours: 'status SUCCESS', theirs: 'status REFUND_DONE', open: false },
      { ours: 'status SUCCESS', theirs: 'status ', open: false },
      { ours: 'status SUCCESS', theirs: 'status ARCHIVED', open: true },
    ])
    const told = (await readRecorded(rig, id)).filter(({ type }) => type === 'transaction.updated')
    expect(told).toMatchObject([{ data: sums }, { data: sums }, { data: sums }])

    gateway.list(entry({ refundedAmount: 40 }))
    await gateway.sync(id)
    expect(await show()).toMatchObject({ ...sums, final: true })
    expect(await refund('60')).toMatchObject({ status: 202 })
    expect((await readFound()).every(({ open }) => !open)).toBe(true)
    expect(await readCounted()).toEqual(NOTHING_ODD)
  })

  it.each([
    ['FAILED', 'failed'],
    ['PROCESSING', 'pending'],
  ])('counts as what it is once that is %s', async (status, state) => {
    const gateway = await startListingGateway(rig)
    for (const word of ['SUCCESS', 'LATER', status]) {
      gateway.list(entry({ status: word }))
      await gateway.sync(id)
    }
    expect(await show()).toMatchObject({ state, paidAmount: '0' })
    expect(await readCounted()).toMatchObject([{ status: null }])
    expect(await readFound()).toContainEqual({
      ours: 'status SUCCESS',
      theirs: `status ${status}`,
      open: true,
    })
  })

  it('counts as one of two payments of the order', async () => {
    const gateway = await startListingGateway(rig)
    const other = makeEntry('p2', { amount: 100 })
    gateway.list(entry(), other)
    await gateway.sync(id)
    gateway.list(entry({ status: 'ARCHIVED' }), other)
    await gateway.sync(id)
    expect(await show()).toMatchObject({ paidAmount: '200', duplicatePayment: true })
    expect(await readFound('duplicate_payment')).toMatchObject([{ open: true }])
  })

  it('of a payment that never succeeded is pending, as it was', async () => {
    const gateway = await startListingGateway(rig)
    for (const status of ['PROCESSING', 'LATER']) {
      gateway.list(entry({ status }))
      await gateway.sync(id)
    }
    expect(await show()).toMatchObject({ state: 'pending', paidAmount: '0' })
    expect(await readFound()).toEqual([])
  })
})

describe('an amount of a success that changes', () => {
  it('one answer that shows ten times the amount lets no 400 of 100 out', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(entry())
    await gateway.sync(id)
    gateway.list(entry({ amount: 1000 }))
    await gateway.sync(id)
    expect(await refund('400')).toEqual({
      status: 409,
      code: 'exceeds_refundable',
      refundableAmount: '100',
    })
    expect(await show()).toMatchObject({
      state: 'paid',
      paidAmount: '1000',
      payments: [{ amount: '1000', refundableAmount: '100' }],
      sync: { status: 'queued' },
    })
    expect(await readFound()).toEqual([{ ours: 'amount 100', theirs: 'amount 1000', open: true }])
    expect(await readCounted()).toEqual([{ status: null, amount: '100', waits: true }])

    gateway.list(entry())
    await gateway.sync(id)
    expect(await show()).toMatchObject({ paidAmount: '100', sync: { status: 'idle' } })
    expect(await readFound()).toEqual([{ ours: 'amount 100', theirs: 'amount 1000', open: false }])
    expect(await readCounted()).toEqual(NOTHING_ODD)
  })

  it('counts once two answers apart agree, with an event, although nothing else changed', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(entry())
    await gateway.sync(id)
    gateway.list(entry({ amount: 1000 }))
    await gateway.sync(id)
    await gateway.sync(id)
    const before = await readItem(rig, id)
    expect(await showPayment()).toMatchObject({ refundableAmount: '100' })
    await rig.database.sql`delete from changes`
    const told = (await readRecorded(rig, id)).length
    await ageAmount()
    await gateway.sync(id)
    expect(await showPayment()).toMatchObject({ refundableAmount: '1000' })
    const after = await readItem(rig, id)
    expect([after.version, after.dueInMs]).toEqual([before.version + 1, null])
    expect((await readRecorded(rig, id)).slice(told)).toMatchObject([
      { type: 'payment.updated', data: { amount: '1000', refundableAmount: '1000' } },
      { type: 'transaction.updated', data: { paidAmount: '1000' } },
    ])
    expect(await rig.database.sql`select payment_id, field, before, after from changes`).toEqual([
      { payment_id: 'p1', field: 'countedAmount', before: '100', after: '1000' },
    ])
    expect(await readFound()).toMatchObject([{ open: true }])
    expect(await readCounted()).toEqual(NOTHING_ODD)
    expect(await refund('400')).toMatchObject({ status: 202 })
  })

  it('is asked about again after the wait, however long ago the transaction was final', async () => {
    const gateway = await startListingGateway(rig)
    gateway.list(entry())
    await gateway.sync(id)
    await rig.database.sql`update transactions set asked_for_at = now() - interval '30 days'`
    gateway.list(entry({ amount: 1000 }))
    await gateway.sync(id)
    const { dueInMs, abandoned } = await readItem(rig, id)
    expect(abandoned).toBe(false)
    expect(dueInMs).toBeGreaterThan(0)
    expect(dueInMs).toBeLessThanOrEqual(600_000)
  })

  it('to a third value waits anew', async () => {
    const gateway = await startListingGateway(rig)
    for (const amount of [100, 1000]) {
      gateway.list(entry({ amount }))
      await gateway.sync(id)
    }
    await ageAmount()
    gateway.list(entry({ amount: 2000 }))
    await gateway.sync(id)
    expect(await showPayment()).toMatchObject({ amount: '2000', refundableAmount: '100' })
    expect(await readFound()).toEqual([
      { ours: 'amount 100', theirs: 'amount 1000', open: false },
      { ours: 'amount 100', theirs: 'amount 2000', open: true },
    ])
    await ageAmount()
    await gateway.sync(id)
    expect(await showPayment()).toMatchObject({ refundableAmount: '2000' })
  })

  it('to less lets no more out than the lower one while it waits', async () => {
    const gateway = await startListingGateway(rig)
    for (const amount of [1000, 100]) {
      gateway.list(entry({ amount }))
      await gateway.sync(id)
    }
    expect(await refund('400')).toMatchObject({ status: 409, refundableAmount: '100' })
    gateway.list(entry({ amount: 1000 }))
    await gateway.sync(id)
    expect(await showPayment()).toMatchObject({ refundableAmount: '1000' })
  })

  it.each(['FAILED', 'PROCESSING', 'LATER'])(
    'behind a status that was %s for one answer does not count at once either',
    async (status) => {
      const gateway = await startListingGateway(rig)
      for (const one of [{}, { status }, { amount: 1000 }]) {
        gateway.list(entry(one))
        await gateway.sync(id)
      }
      expect(await showPayment()).toMatchObject({ amount: '1000', refundableAmount: '100' })
      await ageAmount()
      await gateway.sync(id)
      expect(await showPayment()).toMatchObject({ refundableAmount: '1000' })
    },
  )

  it('before it succeeded counts at once', async () => {
    const gateway = await startListingGateway(rig)
    for (const one of [{ status: 'PROCESSING', amount: 90 }, {}]) {
      gateway.list(entry(one))
      await gateway.sync(id)
    }
    expect(await show()).toMatchObject({
      final: true,
      payments: [{ refundableAmount: '100' }],
      sync: { status: 'idle' },
    })
  })
})
