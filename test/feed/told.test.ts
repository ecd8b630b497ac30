import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { publishEvents } from '../../src/feed/publish.ts'
import type { EventView } from '../../src/feed/view.ts'
import { reconcile } from '../../src/sync/reconcile.ts'
import { syncDue } from '../../src/sync/sync-due.ts'
import { readPage, withKey } from '../support/api.ts'
import { addCappedKey, ask, expectRefused, MASKED, RECEIVER } from '../support/ask.ts'
import { findEnd, readAllEvents } from '../support/feed.ts'
import { type RefundLab, startRefundLab } from '../support/refund-lab.ts'
import { startTestService } from '../support/service.ts'
import { makeTransaction, notifyOf, registerDue } from '../support/sync.ts'

/** Passes and publishing are driven by hand: nothing moves between an event and what its route answers. */
let lab: RefundLab
let start = ''
beforeAll(async () => {
  lab = await startRefundLab()
})
beforeEach(async () => {
  start = await findEnd(lab)
})
afterEach(async () => {
  await takeNews()
  await lab.clear()
})
afterAll(() => lab.stop())

/** What was told since the last call, every event checked against its schema. */
async function takeNews(): Promise<EventView[]> {
  await publishEvents(lab.service.ctx)
  const news = await readAllEvents(lab, start)
  start = news.at(-1)?.id ?? start
  return news
}

/** The same as pairs of type and data, for events that all are about one transaction. */
async function takeNewsOf(transactionId: string): Promise<[string, unknown][]> {
  const news = await takeNews()
  expect(news.map((event) => event.transactionId)).toEqual(news.map(() => transactionId))
  return news.map(({ type, data }) => [type, data])
}

/** Lets the sync ask about a transaction, which is due by its notification. */
async function askAbout(transactionId: string) {
  await notifyOf(lab, transactionId, { svc_OrderID: crypto.randomUUID() })
  await lab.database.sql`
    update transactions set due_at = now() where transaction_id = ${transactionId}`
  expect(await syncDue(lab.service.ctx)).toBe(1)
}

const discrepancies = async () => (await readPage(await lab.api('/v1/discrepancies'))).data

describe('of a payment', () => {
  it('its first answer is told, then every change, and its end once: as their routes answer', async () => {
    const id = 'P-TOLD'
    await makeTransaction(lab, 'T-TOLD', [{ id, status: 'PROCESSING' }])
    await askAbout('T-TOLD')
    expect(await takeNewsOf('T-TOLD')).toEqual([['payment.created', await lab.payment(id)]])
    await askAbout('T-TOLD')
    expect(await takeNews()).toEqual([])
    await lab.control('PATCH', `/payments/${id}`, { status: 'SUCCESS' })
    await askAbout('T-TOLD')
    expect(await takeNewsOf('T-TOLD')).toEqual([
      ['payment.updated', await lab.payment(id)],
      ['transaction.final', await lab.transaction('T-TOLD')],
    ])
    await askAbout('T-TOLD')
    expect(await takeNews()).toEqual([])
    await lab.control('PATCH', `/payments/${id}`, { amount: '12', paymentMethod: 'ATM' })
    await askAbout('T-TOLD')
    const [found] = await discrepancies()
    expect(await takeNewsOf('T-TOLD')).toEqual([
      ['payment.updated', await lab.payment(id)],
      ['discrepancy.found', found],
    ])
  })

  it('whose answer changes another of its transaction, only that other is told', async () => {
    await makeTransaction(lab, 'T-TWO', [{ id: 'P-ONE' }, { id: 'P-OPEN', status: 'PROCESSING' }])
    await askAbout('T-TWO')
    await takeNews()
    await lab.control('PATCH', '/payments/P-OPEN', { status: 'FAILED' })
    await askAbout('T-TWO')
    expect(await takeNewsOf('T-TWO')).toEqual([
      ['payment.updated', await lab.payment('P-OPEN')],
      ['transaction.final', await lab.transaction('T-TWO')],
    ])
  })

  it('answers that share a commit are each told whole, and one that cannot be true not at all', async () => {
    const ids = ['T-S1', 'T-S2', 'T-S3', 'T-S4']
    for (const id of ids) {
      await makeTransaction(lab, id, [{ id: `P-${id}` }])
      await registerDue(lab, id)
    }
    // The gateway lists a payment that belongs to another one.
    await lab.database.sql`
      insert into transactions (merchant_code, transaction_id) values ('UFLIYL', 'T-OWNER')`
    await lab.database.sql`
      insert into payments (merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
        refunded_at_first, payment_method, as_of)
      values ('UFLIYL', 'P-T-S4', 'T-OWNER', 'SUCCESS', 1, 0, 0, 'QR', now())`
    expect(await syncDue(lab.service.ctx)).toBe(4)
    const news = await takeNews()
    for (const id of ids.slice(0, 3)) {
      const own = news.filter(({ transactionId }) => transactionId === id)
      expect(own.map(({ type, data }) => [type, data])).toEqual([
        ['payment.created', await lab.payment(`P-${id}`)],
        ['transaction.final', await lab.transaction(id)],
      ])
    }
    expect(news).toHaveLength(6)
  })
})

describe('of a refund', () => {
  it('its request, each step that shows, and the new end of its transaction are told', async () => {
    const payment = await lab.open({ paymentMethod: 'QR' })
    await takeNews()
    const answer = await lab.refund(payment.id, { amount: '30', receiver: RECEIVER })
    const refundId = answer.body.id
    expect(answer.body.receiver).toEqual(MASKED)
    expect(await takeNewsOf(payment.transactionId)).toEqual([['refund.created', answer.body]])
    expect(await lab.readRefund(refundId)).toEqual(answer.body)
    await lab.pass(payment)
    const accepted = await lab.readRefund(refundId)
    expect(accepted.status).toBe('accepted')
    expect(await takeNewsOf(payment.transactionId)).toEqual([['refund.updated', accepted]])
    await lab.settle(refundId)
    await lab.tell(payment, refundId, '30')
    await lab.pass(payment)
    expect(await takeNewsOf(payment.transactionId)).toEqual([
      ['payment.updated', await lab.payment(payment.id)],
      ['refund.updated', await lab.readRefund(refundId)],
      ['transaction.final', await lab.transaction(payment.transactionId)],
    ])
    expect(await lab.readRefund(refundId)).toMatchObject({ status: 'succeeded', inferred: false })
    await lab.pass(payment)
    expect(await takeNews()).toEqual([])
  })

  it('an answer that was lost, and a later refusal, are told by what they show', async () => {
    const payment = await lab.open()
    await takeNews()
    await lab.fault('code', { code: 33 })
    const refundId = await lab.send(payment, '30')
    const news = await takeNews()
    expect(news.map(({ type }) => type)).toEqual(['refund.created', 'refund.updated'])
    expect(news[1]?.data).toEqual(await lab.readRefund(refundId))
    expect(news[1]?.data).toMatchObject({ status: 'unknown', failure: { code: '33' } })
    await lab.pass(payment)
    expect(await takeNews()).toEqual([])
  })

  it('a person’s decision is told', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    await lab.database.sql`
      update refunds set status = 'needs_review', due_at = null where refund_id = ${refundId}`
    await takeNews()
    const response = await lab.api(`/v1/refunds/${refundId}/resolution`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ outcome: 'failed', reason: 'ticket 4711' }),
    })
    expect(response.status).toBe(200)
    expect(await takeNewsOf(payment.transactionId)).toEqual([
      ['refund.updated', await lab.readRefund(refundId)],
    ])
  })

  it('what was refused, only tried out, or asked for again is not told', async () => {
    const payment = await lab.open()
    const given = { url: lab.service.url, idempotencyKey: 'told once' }
    await ask(given, payment.id, { amount: '10' })
    await takeNews()
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
    expect(await takeNews()).toEqual([])
  })

  it('a receiver that was stored under another key is shown as its route shows it', async () => {
    const payment = await lab.open({ paymentMethod: 'QR' })
    await takeNews()
    const { body } = await lab.refund(payment.id, { amount: '30', receiver: RECEIVER })
    await publishEvents(lab.service.ctx)
    const DATA_ENCRYPTION_KEY = Buffer.alloc(32, 8).toString('base64')
    const settings = { ROLE: 'web', DATA_ENCRYPTION_KEY }
    const other = await startTestService(lab.database, lab.sandbox.url, { settings })
    try {
      const api = (path: string) => fetch(other.url + path, withKey())
      const [event] = await readAllEvents({ api }, start)
      expect(event?.data).toEqual(await (await api(`/v1/refunds/${body.id}`)).json())
      expect(JSON.stringify(event)).toContain('(unreadable)')
      expect(JSON.stringify(event)).not.toContain('sealed')
    } finally {
      await other.stop()
    }
  })
})

it('what was given up is told each time it is', async () => {
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
    expect(await takeNewsOf('T-GIVEN-UP')).toEqual([['sync.abandoned', transaction]])
  }
})

describe('of a disagreement', () => {
  it('it is told when it is seen first, and not when it is seen again', async () => {
    const payment = await lab.open()
    await takeNews()
    await lab.show(payment, '25')
    await askAbout(payment.transactionId)
    const [found] = await discrepancies()
    expect(found).toMatchObject({ kind: 'unexplained_growth' })
    expect(await takeNewsOf(payment.transactionId)).toEqual([
      ['payment.updated', await lab.payment(payment.id)],
      ['discrepancy.found', found],
    ])
    await askAbout(payment.transactionId)
    expect(await discrepancies()).toMatchObject([{ times: 2 }])
    expect(await takeNews()).toEqual([])
  })

  it('one that the second look finds is told, too', async () => {
    const payment = await lab.open()
    await takeNews()
    await lab.database.sql`
      update transactions set reconcile_at = now() - interval '1 s', due_at = null
      where transaction_id = ${payment.transactionId}`
    expect(await reconcile(lab.service.ctx)).toBe(1)
    const [found] = await discrepancies()
    expect(found).toMatchObject({ kind: 'ipn_missing' })
    expect(await takeNewsOf(payment.transactionId)).toEqual([['discrepancy.found', found]])
  })
})
