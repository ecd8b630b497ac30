import { describe, expect, it } from 'vitest'
import { ask, expectTaken } from '../../support/ask.ts'
import { ageOmission, makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import type { LabRefund } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const [anh, binh] = [usePerson(lab), usePerson(lab)]

/** Two people say that it came back: its fall is announced. */
async function release(refundId: string) {
  await done(anh.decide(refundId, 'returned', AGAINST))
  await done(binh.decide(refundId, 'returned', AGAINST))
}

/** An answer frees nothing, and another one, apart, that shows the same does. */
async function expectToWait({ payment, refundId }: LabRefund, shown: string, left: string[]) {
  await lab.passShowing(payment, shown)
  expect(await lab.left(payment)).toBe(left[0])
  await lab.passTwice(payment, refundId)
  expect(await lab.left(payment)).toBe(left[1])
}

describe('one answer that shows less frees nothing', () => {
  it('after a return that had fallen before two people said so, and a refund at the portal', async () => {
    const made = await lab.openMatched()
    await lab.show(made.payment, '0')
    await lab.passTwice(made.payment, made.refundId)
    await release(made.refundId)
    await lab.passShowing(made.payment, '30')
    expect(await lab.left(made.payment)).toBe('70')
    await expectToWait(made, '0', ['70', '100'])
  })

  it('after a fall and a refund at the portal, before the payment moved and two people said so', async () => {
    const gateway = await startListingGateway(lab)
    const list = (...refunded: number[]) =>
      gateway.list(
        ...refunded.map((refundedAmount) => makeEntry('p1', { amount: 100, refundedAmount })),
      )
    list(0)
    await gateway.sync('T-OLD')
    const { id } = await expectTaken(await ask({ url: lab.service.url }, 'p1', { amount: '30' }))
    gateway.answer('REFUND', '{"svc_ResponseCode":0,"svc_ResponseMsg":"ok"}')
    await gateway.sync('T-OLD')
    await lab.notify({ id: 'p1', transactionId: 'T-OLD' }, id, '30')
    for (const refunded of [30, 0, 30]) {
      list(refunded)
      await gateway.sync('T-OLD')
    }
    await lab.expectRefund(id, 'succeeded', { matched: true })
    list()
    await gateway.sync('T-OLD')
    await ageOmission(lab, 'p1')
    await gateway.sync('T-OLD')
    list(30)
    await gateway.sync('T-NEW')
    expect(await lab.row(id)).toMatchObject({ transactionId: 'T-NEW' })
    await release(id)
    list(0)
    await gateway.sync('T-NEW')
    expect(await lab.left({ id: 'p1' })).toBe('70')
  })

  it.each([
    ['two answers', true],
    ['one answer', false],
  ])(
    'after a fall in %s and a refund at the portal, before two people said so',
    async (_, isConfirmed) => {
      const made = await lab.openMatched()
      await lab.passShowing(made.payment, '0')
      if (isConfirmed) await lab.passTwice(made.payment, made.refundId)
      await lab.passShowing(made.payment, '30')
      await release(made.refundId)
      expect(await lab.left(made.payment)).toBe('70')
      await expectToWait(made, '0', ['70', '100'])
    },
  )

  it('while such a fall waits, and two people say so', async () => {
    const made = await lab.openMatched()
    await lab.show(made.payment, '0')
    await lab.passTwice(made.payment, made.refundId)
    await lab.passShowing(made.payment, '30')
    await lab.passShowing(made.payment, '0')
    await release(made.refundId)
    expect(await lab.left(made.payment)).toBe('70')
  })

  it('of a return that was taken back, and is matched again', async () => {
    const made = await lab.openMatched()
    await release(made.refundId)
    await done(anh.decide(made.refundId, 'succeeded', AGAINST))
    await lab.pass(made.payment)
    expect(await lab.row(made.refundId)).toMatchObject({ status: 'succeeded', matched: true })
    await lab.passShowing(made.payment, '60')
    expect(await lab.left(made.payment)).toBe('40')
    await expectToWait(made, '30', ['40', '70'])
  })

  it('of a return that was decided to have failed', async () => {
    const made = await lab.openMatched()
    await release(made.refundId)
    await done(anh.decide(made.refundId, 'failed', AGAINST))
    await expectToWait(made, '0', ['70', '100'])
  })

  it('once the refunded amount has grown, which may hide that it fell', async () => {
    const made = await lab.openMatched()
    await release(made.refundId)
    // It fell by 30 and grew by 40 between two answers.
    await lab.passShowing(made.payment, '40')
    expect(await lab.left(made.payment)).toBe('60')
    await expectToWait(made, '10', ['60', '90'])
  })

  it('once it has fallen by a part of what was announced', async () => {
    const made = await lab.openMatched()
    await release(made.refundId)
    await lab.passShowing(made.payment, '10')
    expect(await lab.left(made.payment)).toBe('90')
    await expectToWait(made, '0', ['90', '100'])
  })
})

it('a fall that two people announced of two refunds is counted at once where one answer shows both', async () => {
  const { payment, refundId } = await lab.openMatched()
  const other = await lab.send(payment, '20')
  await lab.show(payment, '50')
  await lab.passNotified(payment, other, '20')
  await release(refundId)
  await release(other)
  expect(await lab.left(payment)).toBe('50')
  await lab.passShowing(payment, '0')
  expect(await lab.left(payment)).toBe('100')
})
