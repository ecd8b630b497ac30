import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { RequestedRefund } from '../../../../src/refunds/idempotency.ts'
import { requestRefund } from '../../../../src/refunds/request.ts'
import { formatTransactionVersion } from '../../../../src/refunds/request-facts.ts'
import { StaleVersionError } from '../../../../src/refunds/request-rules.ts'
import { describeSurplus } from '../../../../src/refunds/surplus.ts'
import { findAccess } from '../../../support/access.ts'
import { atOnce } from '../../../support/locks.ts'
import { type PaidOrder, payBoth, payOrder } from '../../../support/orders.ts'
import { done, usePerson } from '../../../support/people.ts'
import type { LabPayment } from '../../../support/refund-lab.ts'
import { MERCHANT } from '../../../support/service.ts'
import { readItem } from '../../../support/sync.ts'
import { useFreshLab } from '../../../support/use-started.ts'

const lab = useFreshLab()
const operator = usePerson(lab)

type Asked = { key?: string; amount?: string; version: string | undefined }

async function request(
  of: { paymentId: string } | { transactionId: string },
  { key = randomUUID(), amount, version }: Asked,
) {
  const access = await findAccess(lab)
  const wish = { ...of, amount, receiver: undefined, reason: undefined, expectedVersion: version }
  return await requestRefund(lab.service.ctx, access, access.merchants, key, wish)
}

const refund = ({ id }: LabPayment, asked: Asked) => request({ paymentId: id }, asked)
const refundSurplus = ({ transactionId }: PaidOrder, asked: Asked) =>
  request({ transactionId }, asked)

async function readVersion({ transactionId }: LabPayment): Promise<string> {
  const { version } = await readItem(lab, transactionId)
  return formatTransactionVersion({ transactionId, version })
}

const describeOrder = ({ transactionId }: PaidOrder) =>
  describeSurplus(lab.service.ctx, { merchantCode: MERCHANT.merchantCode, transactionId })

const countRefunds = async () => (await lab.database.sql`select from refunds`).length

/** Lets two requests wait for the lock of the transaction, then go on: one is stored, and the other too late. */
async function expectOne(transactionId: string, requests: (() => Promise<RequestedRefund>)[]) {
  const ends = await atOnce(
    lab.database,
    (held) => held`select from transactions where transaction_id = ${transactionId} for update`,
    requests.map(
      (one) => () =>
        one().then(
          () => 'stored',
          (error: unknown) => error,
        ),
    ),
  )
  const [late] = ends.filter((end) => end !== 'stored')
  expect(ends).toHaveLength(2)
  expect(ends).toContain('stored')
  expect(late).toBeInstanceOf(StaleVersionError)
}

describe('a refund that names the version it was decided on', () => {
  it('is stored while nothing visible has changed, also after another query', async () => {
    const payment = await lab.open()
    const version = await readVersion(payment)
    await lab.pass(payment)
    expect(await refund(payment, { amount: '30', version })).toMatchObject({ replayed: false })
  })

  it.each([
    ['another refund', async (payment: LabPayment) => void (await lab.ask(payment, '1'))],
    [
      'a refund made at the portal',
      async (payment: LabPayment) => {
        await lab.passShowing(payment, '5')
      },
    ],
    [
      'a hold that was set and released',
      async ({ id }: LabPayment) => {
        await done(operator.hold(`payment/${id}`))
        await done(operator.release(`payment/${id}`))
      },
    ],
  ])('is refused after %s, and nothing is stored', async (_, change) => {
    const payment = await lab.open()
    const version = await readVersion(payment)
    await change(payment)
    const before = await countRefunds()
    await expect(refund(payment, { amount: '30', version })).rejects.toThrow(StaleVersionError)
    await expect(refund(payment, { version })).rejects.toThrow(StaleVersionError)
    expect(await countRefunds()).toBe(before)
    await refund(payment, { amount: '30', version: await readVersion(payment) })
  })

  it('is refused once its payment belongs to another transaction, of the same version', async () => {
    const [payment, other] = [await lab.open(), await lab.open()]
    const version = await readVersion(payment)
    const { sql } = lab.database
    await sql`
      update payments set transaction_id = ${other.transactionId} where payment_id = ${payment.id}`
    await sql`
      update transactions as t set version = o.version from transactions as o
      where t.transaction_id = ${other.transactionId} and o.transaction_id = ${payment.transactionId}`
    await expect(refund(payment, { version })).rejects.toThrow(StaleVersionError)
  })

  it('of two under different keys that waited together, one is stored', async () => {
    const payment = await lab.open({ amount: '100' })
    const version = await readVersion(payment)
    const asked = { amount: '30', version }
    await expectOne(
      payment.transactionId,
      [1, 2].map(() => () => refund(payment, asked)),
    )
    expect(await countRefunds()).toBe(1)
  })

  it('is replayed under its key, whatever version is named then', async () => {
    const payment = await lab.open({ amount: '100' })
    const version = await readVersion(payment)
    const first = await refund(payment, { key: 'kept', version })
    for (const later of [version, await readVersion(payment), 'T-1@7', undefined]) {
      const again = await refund(payment, { key: 'kept', version: later })
      expect(again).toMatchObject({ refundId: first.refundId, replayed: true })
    }
  })

  it('whose row was lost is stored as what the gateway notified, and not sent', async () => {
    const payment = await lab.open()
    const version = await readVersion(payment)
    const { refundId } = await refund(payment, { key: 'lost', amount: '30', version })
    await lab.pass(payment)
    await lab.loseRow(refundId)
    await lab.notify(payment, refundId, '30')
    const again = await refund(payment, { key: 'lost', amount: '30', version })
    expect(again).toMatchObject({ refundId, replayed: false })
    expect(await lab.readRefund(refundId)).toMatchObject({ status: 'succeeded', amount: '30' })
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
  })
})

describe('a surplus refund that names the version it was decided on', () => {
  it('is described with the payments that count, what is kept, and what is refunded', async () => {
    const [first, second] = await payBoth(lab)
    const found = await describeOrder(second)
    const payment = { ...second.payments[0], own: true, amount: '100', paymentMethod: 'CC' }
    const { id: paymentId, ...rest } = payment
    expect(found).toMatchObject({
      success: '100',
      surplus: '100',
      chosen: { payment: { ...rest, paymentId }, amount: '100' },
    })
    const shown = found.payments.map(({ transactionId, own }) => [transactionId, own])
    expect(shown).toEqual([
      [first.transactionId, false],
      [second.transactionId, true],
    ])
  })

  it('is described as nothing where one success is paid, or none', async () => {
    const once = await payOrder(lab, 'DH2')
    const none = await payOrder(lab, 'DH3', [{ status: 'FAILED' }])
    for (const order of [once, none]) {
      expect(await describeOrder(order)).toMatchObject({ surplus: '0', chosen: undefined })
    }
  })

  it('is stored while nothing visible of the order has changed', async () => {
    const [, second] = await payBoth(lab)
    const { version } = await describeOrder(second)
    expect(await refundSurplus(second, { version })).toMatchObject({ replayed: false })
  })

  it.each([
    [
      "a refund of the order's other transaction",
      async ([payment]: readonly LabPayment[]) => {
        if (payment) await lab.ask(payment, '1')
      },
    ],
    ['another transaction of the order', async () => void (await payOrder(lab, 'DH1'))],
  ])('is refused after %s', async (_, change) => {
    const [first, second] = await payBoth(lab)
    const { version } = await describeOrder(second)
    await change(first.payments)
    const before = await countRefunds()
    const stale = refundSurplus(second, { amount: '10', version })
    await expect(stale).rejects.toThrow(StaleVersionError)
    expect(await countRefunds()).toBe(before)
    await refundSurplus(second, { amount: '10', version: (await describeOrder(second)).version })
  })

  it('of two for both transactions that waited together, one is stored', async () => {
    const [first, second] = await payBoth(lab)
    const { version } = await describeOrder(second)
    expect((await describeOrder(first)).version).toBe(version)
    const asked = { amount: '30', version }
    await expectOne(
      first.transactionId,
      [first, second].map((one) => () => refundSurplus(one, asked)),
    )
  })

  it('is replayed under its key, whatever version is named then', async () => {
    const [, second] = await payBoth(lab)
    const { version } = await describeOrder(second)
    const first = await refundSurplus(second, { key: 'kept', version })
    for (const later of [version, 'another']) {
      const again = await refundSurplus(second, { key: 'kept', version: later })
      expect(again).toMatchObject({ refundId: first.refundId, replayed: true })
    }
  })
})
