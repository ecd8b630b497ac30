import { describe, expect, it } from 'vitest'
import { createDeleteExpired } from '../../../src/maintenance/delete-expired.ts'
import { requeueUnhandled } from '../../../src/maintenance/housekeeping.ts'
import { exceedsDecimals } from '../../../src/money.ts'
import { MERCHANT } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()

describe('an answer that no longer lists the payment', () => {
  it('once lets its refund wait, which is sent when the payment is back', async () => {
    const { payment, refundId } = await lab.openAsked()
    await lab.change(payment, { listed: false })
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'pending', { attempts: 0 })
    await lab.change(payment, { listed: true })
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('accepted')
  })

  it('confirms no failure, and infers nothing', async () => {
    const payment = await lab.open()
    await lab.fault('code', { code: 33 })
    const refused = await lab.send(payment, '30')
    const other = await lab.open()
    const notified = await lab.send(other, '30')
    await lab.notify(other, notified, '30', { code: 1 })
    await lab.age(refused, 600_000)
    await lab.age(notified, 600_000)
    for (const one of [payment, other]) {
      await lab.change(one, { listed: false })
      await lab.pass(one)
    }
    expect([await lab.status(refused), await lab.status(notified)]).toEqual(['unknown', 'accepted'])
  })
})

it('notifications of a transaction that is due already do not keep others from being requeued', async () => {
  const { sql } = lab.database
  const due = await lab.open()
  const idle = await lab.open()
  const seed = (paymentId: string, n: number) => sql`
    insert into ipn_events (merchant_code, text_hash, kind, payment_id, request_id, verdict, body,
      address, deliveries, first_received_at, last_received_at)
    select ${MERCHANT.merchantCode}, gen_random_uuid(), 'refund', ${paymentId}, 'r-' || n,
      'verified', '{}', '', 1, now() - interval '1 min', now() - interval '1 min'
    from generate_series(1, ${n}) as n`
  // Several times as many due transactions as a pass requeues at once (`BATCH`).
  await sql`
    insert into transactions (merchant_code, transaction_id, due_at)
    select ${MERCHANT.merchantCode}, 'T-due-' || n, now() from generate_series(1, 1500) as n`
  await sql`
    insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
      refunded_at_first, payment_method, as_of)
    select now(), ${MERCHANT.merchantCode}, 'A-due-' || n, 'T-due-' || n, 'SUCCESS', 100, 0, 0, 'CC', now()
    from generate_series(1, 1500) as n`
  await sql`
    insert into ipn_events (merchant_code, text_hash, kind, payment_id, request_id, verdict, body,
      address, deliveries, first_received_at, last_received_at)
    select merchant_code, md5(payment_id)::uuid, 'refund', payment_id, 'r', 'verified', '{}', '', 1,
      now() - interval '1 min', now() - interval '1 min'
    from payments where payment_id like 'A-due-%'`
  await sql`update transactions set due_at = now() where transaction_id = ${due.transactionId}`
  await sql`update transactions set due_at = null where transaction_id = ${idle.transactionId}`
  await seed(idle.id, 1)
  expect(await requeueUnhandled(lab.service.ctx)).toBe(1)
})

describe('evidence older than RETENTION_DAYS', () => {
  const count = async () => {
    const [row] = await lab.database.sql<{ notifications: number; calls: number }[]>`
      select (select count(*) from ipn_events)::int as notifications, (select count(*) from gateway_calls)::int as calls`
    return row
  }

  const ageAll = async () => {
    const { sql } = lab.database
    await sql`
      update ipn_events set first_received_at = now() - interval '500 days',
        last_received_at = now() - interval '500 days'`
    await sql`update gateway_calls set sent_at = now() - interval '500 days'`
  }

  /** Lets the retention pass over everything, and counts the evidence that is left. */
  const countLeft = async () => {
    const removeNext = createDeleteExpired(lab.service.ctx)
    while ((await removeNext()) > 0);
    return await count()
  }

  it('stays while a refund of its payment is open or in review, and then goes', async () => {
    const { sql } = lab.database
    const { payment, refundId } = await lab.openSent()
    await lab.passNotified(payment, refundId, '30', { amount: 31 })
    await ageAll()
    const all = await count()
    expect(await countLeft()).toEqual(all)
    await sql`update refunds set status = 'needs_review', due_at = null`
    expect(await countLeft()).toEqual(all)
    await sql`update refunds set status = 'succeeded'`
    expect(await countLeft()).toEqual({ notifications: 0, calls: 0 })
  })

  it('of an external refund stays until the refunded amount shows it', async () => {
    const { sql } = lab.database
    const payment = await lab.open()
    await lab.show(payment, '0')
    await lab.passNotified(payment, 'portal-1', '30')
    await ageAll()
    expect(await countLeft()).toMatchObject({ notifications: 1 })
    await sql`update external_refunds set matched = true`
    expect(await countLeft()).toMatchObject({ notifications: 0 })
  })
})

describe('the decimals of a currency', () => {
  it.each([
    ['5000.5', 'VND', true],
    ['5000.00', 'VND', false],
    ['10.55', 'USD', false],
    ['10.555', 'USD', true],
    ['10.5555', 'KWD', true],
    ['10.555', 'KWD', false],
    ['10.5555', 'XXY', false],
    ['10.5555', 'points', false],
  ])('%s %s has too many: %s', (amount, currency, expected) => {
    expect(exceedsDecimals(amount, currency)).toBe(expected)
  })

  it('bound the amount of a refund; all that is left is refunded as it is', async () => {
    const payment = await lab.open({ amount: '10000.5' })
    await lab.database.sql`update transactions set currency = 'VND'`
    const refused = await lab.refund(payment.id, { amount: '5000.5' })
    expect(refused.status).toBe(422)
    expect(refused.problem).toMatchObject({ code: 'invalid_request', errors: [{ path: 'amount' }] })
    const all = await lab.refund(payment.id, {})
    expect([all.status, all.body.amount]).toEqual([202, '10000.5'])
  })
})
