import { describe, expect, it } from 'vitest'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { selectRefundNotifications } from '../../../src/transactions/due.ts'
import { beginPass } from '../../support/begin-pass.ts'
import { type LabPayment, startRefundLab } from '../../support/refund-lab.ts'
import { MERCHANT as ME, postIpn } from '../../support/service.ts'
import { makeDueNow } from '../../support/sync.ts'
import { useFreshLab, useRefundLab } from '../../support/use-started.ts'

const OTHER = { merchantCode: 'OTHER', secret: 'another-secret-of-another-account' }

const lab = useFreshLab()

/** The kinds of the notifications in a transaction's timeline. */
const notified = async (payment: LabPayment) =>
  (await lab.timeline(payment)).flatMap(({ type, kind }) => (type === 'ipn' ? [kind] : []))

describe('a notification of our own refund', () => {
  it('that comes before the answer to our own call decides it, whatever the answer is', async () => {
    const { payment, refundId } = await lab.openAsked()
    const pass = await beginPass(lab, payment, 'REFUND')
    await lab.notify(payment, refundId, '30')
    await pass.finish()
    await lab.expectRefund(refundId, 'succeeded', { inferred: false })
  })

  it('of success is followed by queries until the refunded amount shows it', async () => {
    const { payment, refundId } = await lab.openSent()
    await lab.passNotified(payment, refundId, '30')
    expect(await lab.readRefund(refundId)).toMatchObject({ status: 'succeeded', inferred: false })
    expect(await lab.payment(payment.id)).toMatchObject({
      ...{ refundedAmount: '0', refundableAmount: '70' },
    })
    expect(await lab.transaction(payment.transactionId)).toMatchObject({
      sync: { status: 'queued' },
    })
    await lab.passSettled(payment, refundId)
    await lab.expectRefund(refundId, 'succeeded', { matched: true })
    expect(await lab.transaction(payment.transactionId)).toMatchObject({
      state: 'partially_refunded',
      sync: { status: 'idle' },
    })
  })

  it('repeated, or changed only in its message, changes nothing more', async () => {
    const { payment, refundId } = await lab.openSent()
    await lab.settle(refundId)
    for (const message of ['one', 'one', 'two']) {
      await lab.passNotified(payment, refundId, '30', { message })
    }
    const changes = await lab.database.sql`
      select after from changes where refund_id = ${refundId} order by id`
    expect(changes.map(({ after }) => after)).toEqual([
      'pending',
      'sending',
      'accepted',
      'succeeded',
    ])
    expect(await lab.left(payment)).toBe('70')
  })

  it.each([9, 99, 'soon', '05', '1e1'])('with code %s changes nothing', async (code) => {
    const { payment, refundId } = await lab.openSent()
    await lab.passNotified(payment, refundId, '30', { code })
    const { status, failureCode } = await lab.row(refundId)
    expect([status, failureCode]).toEqual(['accepted', null])
  })
})

describe('a verified notification that names our refund', () => {
  it.each([
    ['another amount', { amount: 31 }],
    ['another payment', { paymentId: 'P-elsewhere' }],
  ])('with %s changes nothing and is a disagreement', async (_, overrides) => {
    const { payment, refundId } = await lab.openSent()
    await lab.passNotified(payment, refundId, '30', overrides)
    await lab.expectRefund(refundId, 'accepted')
    expect(await lab.disagreements(payment)).toEqual(['notification_mismatch'])
    expect(await lab.database.sql`select from external_refunds`).toHaveLength(0)
  })

  it.each(['', 'another payment'])(
    'and %j as its payment is handled for its refund, and shown in its timeline only',
    async (named) => {
      const [ours, other] = [await lab.open(), await lab.open()]
      const refundId = await lab.send(ours, '30')
      const paymentId = named === '' ? '' : other.id
      await lab.notify(ours, refundId.toUpperCase(), '30', { paymentId })
      await lab.pass(other)
      const unhandled = 'select from ipn_events where handled_at is null'
      expect(await lab.database.sql.unsafe(unhandled)).toHaveLength(1)
      await lab.pass(ours)
      expect(await lab.database.sql.unsafe(unhandled)).toHaveLength(0)
      expect(await lab.disagreements(ours)).toEqual(['notification_mismatch'])
      expect(await notified(ours)).toEqual(['refund'])
      expect(await notified(other)).toEqual([])
      expect(await lab.status(refundId)).toBe('accepted')
      expect(await lab.left(other)).toBe('100')
      expect(await lab.database.sql`select from external_refunds`).toHaveLength(0)
    },
  )
})

describe('a notification of an unknown payment', () => {
  it('is stored, registers no transaction and changes nothing', async () => {
    const { payment, refundId } = await lab.openSent()
    const strange = { paymentId: 'P-unknown', requestId: 'R-unknown' }
    await lab.passNotified(payment, refundId, '30', strange)
    expect(await lab.database.sql`select from ipn_events where kind = 'refund'`).toHaveLength(1)
    expect(await lab.database.sql`select from transactions`).toHaveLength(1)
    expect(await lab.status(refundId)).toBe('accepted')
    expect(await notified(payment)).toEqual([])
  })

  it('is not read with those of a transaction, however many there are', async () => {
    const payment = await lab.open()
    await lab.send(payment, '30')
    const { sql } = lab.database
    await sql`
      insert into ipn_events (merchant_code, text_hash, kind, request_id, payment_id, verdict, body,
        address, deliveries)
      select ${ME.merchantCode}, md5(n::text)::uuid, 'refund', gen_random_uuid(), 'P-unknown-' || n,
        'verified', '', '', 1
      from generate_series(1, 5000) as n`
    await sql`analyze ipn_events`
    const key = { ...ME, transactionId: payment.transactionId }
    const plan = await sql`
      explain (analyze, format json)
      select id from (${selectRefundNotifications(sql, key)}) as e where handled_at is null`
    const read = [...JSON.stringify(plan).matchAll(/"(?:Actual Rows|Rows Removed[^"]*)":(\d+)/g)]
    expect(Math.max(...read.map(([, rows]) => Number(rows)))).toBeLessThan(10)
  })
})

const makeUnsigned = ({ id }: LabPayment, requestId: string, code: number) => ({
  ...{ svc_MerchantCode: ME.merchantCode, svc_Command: 'REFUND', svc_RequestID: requestId },
  ...{ svc_PaymentID: id, svc_Amount: 30, svc_ResponseCode: code },
})

describe.each(['off', 'optional'])('with IPN_SIGNATURE=%s', (rule) => {
  const lax = useRefundLab({ settings: { IPN_SIGNATURE: rule } })

  it('a forged success, or failure, never changes a refund', async () => {
    const payment = await lax.open()
    const refundId = await lax.send(payment, '30')
    for (const code of [0, 5]) {
      const unsigned = makeUnsigned(payment, refundId, code)
      const forged = rule === 'off' ? { ...unsigned, svc_SecureHash: 'a'.repeat(64) } : unsigned
      expect((await postIpn(lax.service.url, forged)).status).toBe(200)
      await lax.pass(payment)
      const { status, failureCode } = await lax.row(refundId)
      expect([status, failureCode]).toEqual(['accepted', null])
    }
    expect(await lax.database.sql`select from external_refunds`).toHaveLength(0)
  })

  it('a forged notification of a portal refund matches no delta', async () => {
    const payment = await lax.open()
    await postIpn(lax.service.url, makeUnsigned(payment, 'R-portal', 0))
    await lax.passShowing(payment, '30')
    expect(await lax.disagreements(payment)).toEqual(['unexplained_growth'])
  })
})

it('another account with its own valid signature cannot change our refund by our ids', async () => {
  const rig = await startRefundLab({
    settings: {
      MERCHANTS_FILE: new URL('../../fixtures/two-merchants.json', import.meta.url).pathname,
    },
    sandbox: { accounts: [ME, OTHER] },
  })
  try {
    const payment = await rig.open()
    const refundId = await rig.send(payment, '30')
    await rig.notify(payment, refundId, '30', OTHER)
    await makeDueNow(rig, payment.transactionId)
    await syncDue(rig.service.ctx)
    expect((await rig.row(refundId)).status).toBe('accepted')
    expect(await rig.disagreements(payment)).toEqual([])
    expect(await rig.database.sql`select from external_refunds`).toHaveLength(0)
  } finally {
    await rig.stop()
  }
})
