import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import type { EventView } from '../../../src/feed/view.ts'
import { recheckFinal } from '../../../src/maintenance/rechecks.ts'
import { placeReceiver } from '../../../src/refunds/receiver.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { readPage } from '../../support/api.ts'
import { addCappedKey, ask, expectRefused, MASKED, RECEIVER } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { makeEncryption } from '../../support/encryption.ts'
import { findEnd, readAllEvents } from '../../support/feed.ts'
import { ageOmission, makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { makeTransaction, notifyOf, registerDue } from '../../support/sync.ts'
import { useRefundLab } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** The test runs passes and publishing itself: nothing changes between an event and the answer of its route. */
const lab = useRefundLab()
let start = ''
beforeEach(async () => {
  start = await findEnd(lab)
})
afterEach(async () => {
  await takeEvents()
  await emptyTables(lab.database)
})

/** A data key that the service has not. */
const LOST = makeEncryption()

/** The events since the last call, each checked against its schema. */
async function takeEvents(): Promise<EventView[]> {
  await publishEvents(lab.service.ctx.db.sql)
  const events = await readAllEvents(lab, start)
  start = events.at(-1)?.id ?? start
  return events
}

/** The same as pairs of type and data, for events of a single transaction. */
async function takeEventsOf(transactionId: string): Promise<[string, unknown][]> {
  const events = await takeEvents()
  expect(events.map((event) => event.transactionId)).toEqual(events.map(() => transactionId))
  return events.map(({ type, data }) => [type, data])
}

/** Syncs a transaction, which a notification makes due. */
async function syncNow(transactionId: string) {
  await notifyOf(lab, transactionId, { svc_OrderInfo: crypto.randomUUID() })
  await lab.database.sql`
    update transactions set due_at = now() where transaction_id = ${transactionId}`
  expect(await syncDue(lab.service.ctx)).toBe(1)
}

const discrepancies = async () => (await readPage(await lab.api('/v1/discrepancies'))).data

describe('a payment', () => {
  it('has an event for its first answer, for every change, and for its end once, shaped as its routes answer', async () => {
    const id = 'P-KNOWN'
    await makeTransaction(lab, 'T-KNOWN', [{ id, status: 'PROCESSING' }])
    await syncNow('T-KNOWN')
    expect(await takeEventsOf('T-KNOWN')).toEqual([
      ['payment.created', await lab.payment(id)],
      ['transaction.updated', await lab.transaction('T-KNOWN')],
    ])
    await syncNow('T-KNOWN')
    expect(await takeEvents()).toEqual([])
    await lab.control('PATCH', `/payments/${id}`, { status: 'SUCCESS' })
    await syncNow('T-KNOWN')
    expect(await takeEventsOf('T-KNOWN')).toEqual([
      ['payment.updated', await lab.payment(id)],
      ['transaction.paid', await lab.transaction('T-KNOWN')],
      ['transaction.final', await lab.transaction('T-KNOWN')],
    ])
    await syncNow('T-KNOWN')
    expect(await takeEvents()).toEqual([])
    await lab.control('PATCH', `/payments/${id}`, { amount: '12', paymentMethod: 'ATM' })
    await syncNow('T-KNOWN')
    const [found] = await discrepancies()
    expect(await takeEventsOf('T-KNOWN')).toEqual([
      ['payment.updated', await lab.payment(id)],
      ['discrepancy.found', found],
      ['transaction.updated', await lab.transaction('T-KNOWN')],
    ])
  })

  it('that succeeds again, after the gateway took its success back, is paid for the first time only once', async () => {
    const id = 'P-AGAIN'
    await makeTransaction(lab, 'T-AGAIN', [{ id }])
    const types: string[] = []
    for (const status of ['SUCCESS', 'FAILED', 'SUCCESS']) {
      await lab.control('PATCH', `/payments/${id}`, { status })
      await syncNow('T-AGAIN')
      const events = await takeEventsOf('T-AGAIN')
      types.push(...events.map(([type]) => type).filter((type) => type.startsWith('transaction.')))
    }
    expect(types).toEqual([
      'transaction.paid',
      'transaction.final',
      'transaction.updated',
      'transaction.updated',
    ])
  })

  it('that changes another payment of its transaction has an event for that other one only', async () => {
    await makeTransaction(lab, 'T-TWO', [{ id: 'P-ONE' }, { id: 'P-OPEN', status: 'PROCESSING' }])
    await syncNow('T-TWO')
    await takeEvents()
    await lab.control('PATCH', '/payments/P-OPEN', { status: 'FAILED' })
    await syncNow('T-TWO')
    expect(await takeEventsOf('T-TWO')).toEqual([
      ['payment.updated', await lab.payment('P-OPEN')],
      ['transaction.final', await lab.transaction('T-TWO')],
    ])
  })

  it('answers that share a commit each have all their events, and one that is not applied has its discrepancy', async () => {
    const ids = ['T-S1', 'T-S2', 'T-S3', 'T-S4']
    for (const id of ids) {
      await makeTransaction(lab, id, [{ id: `P-${id}` }])
      await registerDue(lab, id)
    }
    // The gateway lists a payment that belongs to another transaction.
    await lab.database.sql`
      insert into transactions (merchant_code, transaction_id) values ('UFLIYL', 'T-OWNER')`
    await lab.database.sql`
      insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
        refunded_at_first, payment_method, as_of)
      values (now(), 'UFLIYL', 'P-T-S4', 'T-OWNER', 'SUCCESS', 1, 0, 0, 'QR', now())`
    expect(await syncDue(lab.service.ctx)).toBe(4)
    const events = await takeEvents()
    for (const id of ids.slice(0, 3)) {
      const own = events.filter(({ transactionId }) => transactionId === id)
      expect(own.map(({ type, data }) => [type, data])).toEqual([
        ['payment.created', await lab.payment(`P-${id}`)],
        ['transaction.paid', await lab.transaction(id)],
        ['transaction.final', await lab.transaction(id)],
      ])
    }
    const others = events.filter(({ transactionId }) => transactionId === 'T-S4')
    expect(others.map(({ type }) => type)).toEqual(['discrepancy.found'])
    expect(events).toHaveLength(10)
  })
})

it('a transaction that is named after it was paid has an event', async () => {
  const notifyNow = async (names: object) => {
    await notifyOf(lab, 'T-NAMED', { svc_OrderID: '', ...names })
    await lab.database.sql`update transactions set due_at = now()`
    expect(await syncDue(lab.service.ctx)).toBe(1)
  }
  await makeTransaction(lab, 'T-NAMED')
  await notifyNow({})
  expect(await lab.transaction('T-NAMED')).toMatchObject({ state: 'paid', orderId: null })
  await takeEvents()
  await notifyNow({ svc_OrderID: 'DH1', svc_Amount: 10 })
  const transaction = await lab.transaction('T-NAMED')
  expect(transaction).toMatchObject({ state: 'paid', orderId: 'DH1', amountMatches: true })
  expect(await takeEventsOf('T-NAMED')).toEqual([['transaction.updated', transaction]])
})

describe('a refund', () => {
  it('has events for its request, each visible step and the new end of its transaction', async () => {
    const payment = await lab.open({ paymentMethod: 'QR' })
    await takeEvents()
    const answer = await lab.refund(payment.id, { amount: '30', receiver: RECEIVER })
    const refundId = answer.body.id
    expect(answer.body.receiver).toEqual(MASKED)
    expect(await takeEventsOf(payment.transactionId)).toEqual([['refund.created', answer.body]])
    expect(await lab.readRefund(refundId)).toEqual(answer.body)
    await lab.pass(payment)
    const accepted = await lab.readRefund(refundId)
    expect(accepted.status).toBe('accepted')
    expect(await takeEventsOf(payment.transactionId)).toEqual([['refund.updated', accepted]])
    await lab.settle(refundId)
    await lab.notify(payment, refundId, '30')
    await lab.pass(payment)
    expect(await takeEventsOf(payment.transactionId)).toEqual([
      ['payment.updated', await lab.payment(payment.id)],
      ['refund.updated', await lab.readRefund(refundId)],
      ['transaction.final', await lab.transaction(payment.transactionId)],
    ])
    expect(await lab.readRefund(refundId)).toMatchObject({ status: 'succeeded', inferred: false })
    await lab.pass(payment)
    expect(await takeEvents()).toEqual([])
  })

  it('has events for a lost answer and a later refusal, with what readers see', async () => {
    const payment = await lab.open()
    await takeEvents()
    await lab.fault('code', { code: 33 })
    const refundId = await lab.send(payment, '30')
    const events = await takeEvents()
    expect(events.map(({ type }) => type)).toEqual(['refund.created', 'refund.updated'])
    expect(events[1]?.data).toEqual(await lab.readRefund(refundId))
    expect(events[1]?.data).toMatchObject({ status: 'unknown', failure: { code: '33' } })
    await lab.pass(payment)
    expect(await takeEvents()).toEqual([])
  })

  it('has an event when its payment moves with it to another transaction', async () => {
    const gateway = await startListingGateway(lab)
    const { id, transactionId: first } = await lab.open()
    const second = `${first}-2`
    const refundId = (await lab.refund(id, { amount: '3' })).body.id
    await lab.database.sql`update refunds set due_at = now() + interval '1 h'`
    gateway.list()
    await gateway.sync(first)
    await ageOmission(lab, id)
    await gateway.sync(first)
    await takeEvents()
    gateway.list(makeEntry(id))
    await gateway.sync(second)
    const shown = (await takeEvents()).filter(({ type }) => type.startsWith('refund.'))
    expect(shown.map(({ type, data }) => [type, data])).toEqual([
      ['refund.updated', await lab.readRefund(refundId)],
    ])
    expect(shown).toMatchObject([{ transactionId: second, data: { transactionId: second } }])
  })

  it('has an event for a person’s decision', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    await lab.database.sql`
      update refunds set status = 'needs_review', due_at = null where refund_id = ${refundId}`
    await takeEvents()
    const decision = { outcome: 'failed', reason: 'ticket 4711' }
    expect((await lab.post(`/refunds/${refundId}/resolution`, decision)).status).toBe(200)
    expect(await takeEventsOf(payment.transactionId)).toEqual([
      ['payment.updated', await lab.payment(payment.id)],
      ['refund.updated', await lab.readRefund(refundId)],
    ])
  })

  it('has an event of its payment too, if a decision changes what can be refunded, and only then', async () => {
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    const decide = async (path: string, body: object) => {
      await takeEvents()
      expect((await lab.post(`/refunds/${refundId}/${path}`, body)).status).toBe(200)
      return await takeEventsOf(payment.transactionId)
    }
    const reason = 'a mistake'
    const freed = await decide('cancellation', { reason })
    expect(freed).toEqual([
      ['payment.updated', await lab.payment(payment.id)],
      ['refund.updated', await lab.readRefund(refundId)],
    ])
    expect(freed[0]?.[1]).toMatchObject({ refundableAmount: '100' })
    await lab.database.sql`
      update refunds set status = 'needs_review', due_at = null, failure_reason = null where refund_id = ${refundId}`
    const kept = await decide('resolution', { outcome: 'succeeded', reason })
    expect(kept).toEqual([['refund.updated', await lab.readRefund(refundId)]])
  })

  it('has no event for a refused request, a dry run or a repeated request', async () => {
    const payment = await lab.open()
    const given = { url: lab.service.url, idempotencyKey: 'recorded once' }
    await ask(given, payment.id, { amount: '10' })
    await takeEvents()
    await ask(given, payment.id, { amount: '10' })
    await expectRefused(
      await ask(given, payment.id, { amount: '11' }),
      422,
      'idempotency_key_reused',
    )
    const more = { url: lab.service.url }
    await expectRefused(await ask(more, payment.id, { amount: '91' }), 409, 'exceeds_refundable')
    expect((await ask({ ...more, query: '?dryRun=true' }, payment.id)).status).toBe(200)
    const key = 'a-key-with-a-cap-0123456789-0123456789'
    await addCappedKey(lab.database, key, { dailyMax: '5' })
    await expectRefused(await ask({ ...more, key }, payment.id), 403, 'refund_cap_exceeded')
    expect(await takeEvents()).toEqual([])
  })

  it('shows a receiver whose data key is not there as its route does', async () => {
    const payment = await lab.open({ paymentMethod: 'QR' })
    await takeEvents()
    const { body } = await lab.refund(payment.id, { amount: '30', receiver: RECEIVER })
    const lost = LOST.encrypt('{}', placeReceiver('receiver_shown', String(body.id)))
    await lab.database.sql`update refunds set receiver_shown = ${lost}`
    await lab.database.sql`
      update event_outbox set data = replace(data::text, (data -> 'receiver' ->> 'sealed'),
        ${lost.toString('base64')})::json where type = 'refund.created'`
    await publishEvents(lab.service.ctx.db.sql)
    // Once the process has looked for the key.
    const isShown = async () => (await lab.api(`/v1/refunds/${body.id}`)).status === 200
    await waitUntil(isShown, { what: 'the refund' })
    const [event] = await readAllEvents(lab, start)
    expect(event?.data).toEqual(await (await lab.api(`/v1/refunds/${body.id}`)).json())
    expect(JSON.stringify(event)).toContain('(unreadable)')
    expect(JSON.stringify(event)).not.toContain('sealed')
  })
})

it('an abandoned transaction has an event each time it is abandoned', async () => {
  await makeTransaction(lab, 'T-GIVEN-UP')
  await registerDue(lab, 'T-GIVEN-UP')
  for (let time = 1; time <= 2; time += 1) {
    await lab.fault('http500', { command: 'QUERY_PT' })
    await lab.database.sql`
      update transactions set attempts = 29, due_at = now(), abandoned_at = null
      where transaction_id = 'T-GIVEN-UP'`
    expect(await syncDue(lab.service.ctx)).toBe(1)
    const transaction = await lab.transaction('T-GIVEN-UP')
    expect(transaction.sync).toMatchObject({ status: 'abandoned', attempts: 30 })
    expect(await takeEventsOf('T-GIVEN-UP')).toEqual([['sync.abandoned', transaction]])
  }
})

describe('a discrepancy', () => {
  it('has an event when it is found first, and none when it is found again', async () => {
    const payment = await lab.open()
    await takeEvents()
    await lab.show(payment, '25')
    await syncNow(payment.transactionId)
    const [found] = await discrepancies()
    expect(found).toMatchObject({ kind: 'unexplained_growth' })
    expect(await takeEventsOf(payment.transactionId)).toEqual([
      ['payment.updated', await lab.payment(payment.id)],
      ['discrepancy.found', found],
      ['transaction.updated', await lab.transaction(payment.transactionId)],
    ])
    await syncNow(payment.transactionId)
    expect(await discrepancies()).toMatchObject([{ times: 2 }])
    expect(await takeEvents()).toEqual([])
  })

  it('has an event when the recheck of a final transaction finds it', async () => {
    const payment = await lab.open()
    await takeEvents()
    await lab.database.sql`
      update transactions set reconcile_at = now() - interval '1 s', due_at = null
      where transaction_id = ${payment.transactionId}`
    expect(await recheckFinal(lab.service.ctx)).toBe(1)
    const [found] = await discrepancies()
    expect(found).toMatchObject({ kind: 'ipn_missing' })
    expect(await takeEventsOf(payment.transactionId)).toEqual([['discrepancy.found', found]])
  })
})
