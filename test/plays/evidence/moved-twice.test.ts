import { describe, expect, it } from 'vitest'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import { CONFIRM_MS, type LabPayment, RESEND_MS } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

/** Sequences of events that moved money twice, lost it, or froze it, under rules that were too clever. */

const lab = useFreshLab()
const operator = usePerson(lab)

const decide = (refundId: string, outcome: string) =>
  done(operator.decide(refundId, outcome, AGAINST))

describe('a notification with a code that is not known to be final (a)', () => {
  it('5 fails nothing, and a person decides in the end', async () => {
    const { payment, refundId } = await lab.openSent()
    await lab.passNotified(payment, refundId, '30', { code: 5 })
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'accepted', { left: '70' })
    await lab.age(refundId, CONFIRM_MS)
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'needs_review', { review: 'contradicted', left: '70' })
  })

  it('followed by the same wish under another key and by growth moves nothing unseen', async () => {
    const payment = await lab.open()
    const first = await lab.send(payment, '30')
    await lab.passNotified(payment, first, '30', { code: 24 })
    const second = await lab.send(payment, '30')
    await lab.passSettled(payment, first)
    expect(await lab.row(second)).toMatchObject({ inferred: false })
    expect(await lab.disagreements(payment)).toContain('unexplained_growth')
    expect(await lab.left(payment)).toBe('10')
  })
})

describe('a failed refund whose bytes had left is judged again by growth (b)', () => {
  it('that failed by its notification', async () => {
    const { payment, refundId } = await lab.openSent()
    await lab.notify(payment, refundId, '30', { code: 1 })
    await lab.passTwice(payment, refundId)
    expect(await lab.status(refundId)).toBe('failed')
    await lab.passSettled(payment, refundId)
    expect(await lab.status(refundId)).toBe('needs_review')
    expect(await lab.disagreements(payment)).toContain('unexplained_growth')
  })

  it('that failed by a person', async () => {
    const { payment, refundId } = await lab.openSent('acceptThenReset')
    await lab.age(refundId, CONFIRM_MS)
    await decide(refundId, 'failed')
    await lab.passSettled(payment, refundId)
    await lab.expectRefund(refundId, 'needs_review', { left: '40' })
  })

  it('and not by the growth that the person had before them', async () => {
    const { payment, refundId } = await lab.openSent('acceptThenReset')
    await lab.show(payment, '30')
    await lab.notify(payment, 'portal-1', '40')
    await lab.age(refundId, CONFIRM_MS)
    await lab.pass(payment)
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('unknown')
    await decide(refundId, 'failed')
    await lab.pass(payment)
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('failed')
    expect(await lab.disagreements(payment)).toContain('unexplained_growth')
  })
})

describe('a refund that a restored database knows as never sent (c)', () => {
  it('and whose payment has failed is left to a person while growth may be its own', async () => {
    const payment = await lab.open()
    await lab.show(payment, '30')
    const refundId = await lab.ask(payment, '30')
    await lab.change(payment, { status: 'FAILED' })
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('needs_review')
  })

  it.each([
    ['growth may be its own', true],
    ['its payment is not listed any more', false],
  ])('is left to a person by its deadline while %s', async (_, listed) => {
    const payment = await lab.open()
    if (listed) {
      await lab.passShowing(payment, '30')
    } else {
      await lab.change(payment, { listed: false })
    }
    const refundId = await lab.ask(payment, '30')
    await lab.ageRequest(refundId, 7 * 86_400_000)
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'needs_review', { review: 'contradicted' })
  })
})

describe('a refund that came back (d)', () => {
  async function comeBack(payment: LabPayment): Promise<string> {
    const refundId = await lab.send(payment, '30')
    await lab.settle(refundId)
    await lab.passNotified(payment, refundId, '30')
    await decide(refundId, 'returned')
    await lab.pass(payment)
    return refundId
  }

  it('is not released by two stale answers in a row', async () => {
    const payment = await lab.open()
    const refundId = await comeBack(payment)
    await lab.show(payment, '0')
    for (let answers = 0; answers < 3; answers += 1) await lab.pass(payment)
    expect(await lab.left(payment)).toBe('70')
    await lab.age(refundId, CONFIRM_MS - 60_000)
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('70')
    await lab.passShowing(payment, null)
    await lab.show(payment, '0')
    await lab.age(refundId, 60_000)
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ returnSightings: 1 })
    expect(await lab.left(payment)).toBe('70')
    expect((await lab.refund(payment.id, { amount: '100' })).status).toBe(409)
  })

  it('is not released by answers between which something of the payment was sent', async () => {
    const payment = await lab.open()
    const refundId = await comeBack(payment)
    await lab.passShowing(payment, '0')
    await lab.age(refundId, CONFIRM_MS)
    await lab.database.sql`
      insert into refunds (fingerprint_key_id, requested_principal, merchant_code, refund_id, transaction_id, payment_id, amount, idempotency_key,
        fingerprint, requested_by, status, attempts, first_sent_at, last_sent_at, due_at)
      select 'k', 'key:k', merchant_code, gen_random_uuid(), transaction_id, payment_id, 5, 'between', fingerprint, requested_by,
        'accepted', 1, now(), now(), now()
      from refunds where refund_id = ${refundId}`
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ returnSightings: 1 })
    expect(await lab.left(payment)).toBe('65')
  })
})

describe('inference never frees money (f)', () => {
  it('when a portal refund whose notification is lost is taken for ours', async () => {
    const { payment, refundId } = await lab.openSent()
    await lab.refundAtPortal(payment, '30')
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'succeeded', { inferred: true, left: '40' })
    expect((await lab.refund(payment.id, { amount: '70' })).status).toBe(409)
    await lab.passSettled(payment, refundId)
    expect(await lab.left(payment)).toBe('10')
    await lab.passNotified(payment, refundId, '30')
    await lab.expectRefund(refundId, 'succeeded', { inferred: false })
    expect(await lab.disagreements(payment)).toEqual(['unexplained_growth'])
    expect(await lab.left(payment)).toBe('40')
  })

  it('until its own notification, or a person, makes it known', async () => {
    for (const confirm of ['notification', 'person']) {
      const { payment, refundId } = await lab.openSent()
      await lab.passSettled(payment, refundId)
      expect(await lab.row(refundId)).toMatchObject({ inferred: true, matched: false })
      if (confirm === 'person') await decide(refundId, 'succeeded')
      else await lab.notify(payment, refundId, '30')
      await lab.pass(payment)
      expect(await lab.row(refundId)).toMatchObject({ inferred: false, matched: true })
      expect(await lab.left(payment)).toBe('70')
    }
  })
})

describe('a request id in upper case (l)', () => {
  it('is that of the refund: its success ends it', async () => {
    const { payment, refundId } = await lab.openSent()
    await lab.passNotified(payment, refundId, '30', { requestId: refundId.toUpperCase() })
    expect(await lab.status(refundId)).toBe('succeeded')
    expect(await lab.disagreements(payment)).toEqual([])
  })

  it('stops another send: its failure is not followed by one', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await lab.notify(payment, refundId, '30', { code: 1, requestId: refundId.toUpperCase() })
    await lab.age(refundId, RESEND_MS + 300)
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
  })
})
