import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ask, expectTaken } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { readRecorded } from '../../support/feed.ts'
import { ageOmission, makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { expectUnblocked, whileUncommitted } from '../../support/locks.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
/** The transactions of the current test: events are kept. */
let old = ''
let recent = ''
beforeEach(() => {
  old = `T-OLD-${crypto.randomUUID()}`
  recent = `T-NEW-${crypto.randomUUID()}`
})
afterEach(() => emptyTables(rig.database))

const MOVED = makeEntry('p1', { amount: 100 })

/** A payment of `old` whose absence there is believed: the next answer about `recent` may take it over. */
async function losePayment(...rest: object[]) {
  const gateway = await startListingGateway(rig)
  gateway.list(MOVED, ...rest)
  await gateway.sync(old)
  gateway.list(...rest)
  await gateway.sync(old)
  await ageOmission(rig, 'p1')
  await gateway.sync(old)
  gateway.list(MOVED)
  return gateway
}

/** The events of the transaction itself, each with what it tells of it. */
async function readTold(transactionId: string) {
  const events = await readRecorded(rig, transactionId)
  return events
    .filter(({ type }) => type.startsWith('transaction.') || type === 'sync.abandoned')
    .map(({ type, data: { state, paidAmount } }) => [type, state, paidAmount])
}

const readFound = (transactionId: string) => rig.database.sql`
  select kind, payment_id as id, ours, theirs, resolved_at is null as open from discrepancies
  where transaction_id = ${transactionId} order by id`

describe('a payment that moves to another transaction', () => {
  it('is told about on both, in one commit', async () => {
    const gateway = await losePayment()
    await gateway.sync(recent)
    expect(await rig.transaction(old)).toMatchObject({
      state: 'pending',
      paidAmount: '0',
      final: false,
      payments: [],
    })
    expect((await readTold(old)).at(-1)).toEqual(['transaction.updated', 'pending', '0'])
    expect(await readTold(recent)).toEqual([
      ['transaction.paid', 'paid', '100'],
      ['transaction.final', 'paid', '100'],
    ])
    const changes = await rig.database.sql`
      select transaction_id as id, field, before, after from changes
      where field in ('transactionId', 'state') and (before = 'paid' or field = 'transactionId') order by id`
    expect(changes).toEqual([
      { id: recent, field: 'transactionId', before: old, after: recent },
      { id: old, field: 'transactionId', before: old, after: recent },
      { id: old, field: 'state', before: 'paid', after: 'pending' },
    ])
  })

  it('leaves an open discrepancy where it was, which no later answer ends', async () => {
    const gateway = await losePayment()
    await gateway.sync(recent)
    gateway.list()
    await gateway.sync(old)
    gateway.list(MOVED)
    await gateway.sync(recent)
    expect((await readFound(old)).filter(({ open }) => open)).toEqual([
      {
        kind: 'payment_moved',
        id: 'p1',
        ours: `SUCCESS 100 of transaction ${old}`,
        theirs: `listed under transaction ${recent}`,
        open: true,
      },
    ])
    expect((await readFound(recent)).filter(({ open }) => open)).toEqual([])
    const found = (await readRecorded(rig, old)).filter(
      ({ type, data }) => type === 'discrepancy.found' && data.kind === 'payment_moved',
    )
    expect(found).toHaveLength(1)
  })

  it('and moves back is no discrepancy there any more', async () => {
    const gateway = await losePayment()
    await gateway.sync(recent)
    gateway.list()
    await gateway.sync(recent)
    await ageOmission(rig, 'p1')
    await gateway.sync(recent)
    gateway.list(MOVED)
    await gateway.sync(old)
    expect((await readFound(old)).filter(({ open }) => open)).toEqual([])
    expect((await readFound(recent)).filter(({ open }) => open)).toMatchObject([
      { kind: 'payment_moved' },
    ])
    expect(await rig.transaction(old)).toMatchObject({ state: 'paid' })
    expect(await rig.transaction(recent)).toMatchObject({ state: 'pending' })
  })

  it.each([
    ['lists nothing', '{"svc_ResponseCode":0,"svc_ResponseData":[]}', 200],
    ['fails', 'no answer', 500],
  ])('is told about before the next answer of the other one, which %s', async (_, body, status) => {
    const gateway = await losePayment()
    await gateway.sync(recent)
    const told = await readTold(old)
    gateway.answer('QUERY_PT', body, status)
    await gateway.sync(old)
    expect(await rig.transaction(old)).toMatchObject({ state: 'pending', paidAmount: '0' })
    expect(await readTold(old)).toEqual(told)
    expect(told.at(-1)).toEqual(['transaction.updated', 'pending', '0'])
  })

  it('leaves the other one final, if its other payments failed', async () => {
    const rest = makeEntry('p2', { status: 'FAILED' })
    const gateway = await losePayment(rest)
    await rig.database.sql`update transactions set final = false where transaction_id = ${old}`
    await gateway.sync(recent)
    expect(await rig.transaction(old)).toMatchObject({ state: 'failed', final: true })
    expect((await readTold(old)).at(-1)).toEqual(['transaction.final', 'failed', '0'])
  })

  it('keeps the other one open while a refund of it is', async () => {
    const gateway = await losePayment(makeEntry('p2', { amount: 50 }))
    await expectTaken(await ask({ url: rig.service.url }, 'p2', { amount: '1' }))
    await gateway.sync(recent)
    expect(await rig.transaction(old)).toMatchObject({
      state: 'paid',
      paidAmount: '50',
      final: false,
    })
  })

  it('waits while the other one is locked, without a lock wait, and moves with the next answer', async () => {
    const gateway = await losePayment()
    await rig.database.sql`update transactions set due_at = null`
    await whileUncommitted(
      rig.database,
      (held) => held`select from transactions where transaction_id = ${old} for update`,
      () => expectUnblocked(rig.database, gateway.sync(recent)),
    )
    expect(await rig.transaction(old)).toMatchObject({ state: 'paid', paidAmount: '100' })
    expect(await rig.transaction(recent)).toMatchObject({
      state: 'pending',
      sync: { status: 'queued' },
    })
    await gateway.sync(recent)
    expect((await readTold(old)).at(-1)).toEqual(['transaction.updated', 'pending', '0'])
    expect(await rig.transaction(recent)).toMatchObject({ state: 'paid' })
  })
})

it('a transaction whose state is not that of its payments is corrected by a failed answer, too, and told about', async () => {
  const gateway = await startListingGateway(rig)
  gateway.list(MOVED)
  await gateway.sync(old)
  // The payment has moved, and neither transaction was summarised.
  await rig.database.sql`
    insert into transactions (merchant_code, transaction_id) values (${MERCHANT.merchantCode}, ${recent})`
  await rig.database.sql`update payments set transaction_id = ${recent}`
  gateway.answer('QUERY_PT', 'no answer', 500)
  await gateway.sync(old)
  expect(await rig.transaction(old)).toMatchObject({ state: 'pending', paidAmount: '0' })
  expect((await readTold(old)).at(-1)).toEqual(['transaction.updated', 'pending', '0'])
})
