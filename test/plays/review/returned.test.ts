import { describe, expect, it } from 'vitest'
import { done, usePerson } from '../../support/people.ts'
import { CONFIRM_MS, type LabRefund } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const [operator, second] = [usePerson(lab), usePerson(lab)]

/** A payment of 100 whose refund of 30 succeeded, shows in the refunded amount, and came back. */
async function makeReturned(): Promise<LabRefund> {
  const made = await lab.openMatched()
  await done(operator.decide(made.refundId, 'returned'))
  return made
}

describe('a refund that is sent while another one comes back', () => {
  it('is not sent between the two answers that show it, and then fails by a final refusal', async () => {
    const { payment, refundId } = await makeReturned()
    await lab.fault('code', { code: 33 })
    await lab.show(payment, '0')
    const other = await lab.send(payment, '30')
    await lab.expectRefund(other, 'pending', { attempts: 0 })
    await lab.age(refundId, CONFIRM_MS)
    await lab.pass(payment)
    await lab.expectRefund(other, 'unknown', { refusedCode: '33' })
    await lab.passTwice(payment, other)
    expect(await lab.status(other)).toBe('failed')
    expect(await lab.left(payment)).toBe('100')
  })

  it('is known by its own growth once two people say so, though answers showed the fall for too short a time', async () => {
    const { payment, refundId } = await lab.openMatched()
    const other = await lab.send(payment, '30')
    await lab.expectRefund(other, 'accepted', { refundedBefore: '30' })
    await done(operator.decide(refundId, 'returned'))
    await lab.passShowing(payment, '0')
    // The second answer was asked for a second before the time was over, and is committed after it.
    await lab.age(refundId, CONFIRM_MS)
    await lab.age(other, CONFIRM_MS)
    await lab.database.sql`update payments set refunded_fell_at = now() - interval '1 second'`
    await lab.pass(payment)
    await lab.show(payment, '30')
    await lab.passNotified(payment, other, '30')
    expect(await lab.left(payment)).toBe('40')
    await done(second.decide(refundId, 'returned'))
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('70')
  })

  it('is not lowered below what was refunded before any of them, and then fails by its notification', async () => {
    const payment = await lab.open()
    const other = await lab.send(payment, '30')
    await lab.expectRefund(other, 'accepted', { refundedBefore: '0' })
    const refundId = await lab.send(payment, '40')
    await lab.show(payment, '40')
    await lab.passNotified(payment, refundId, '40')
    await done(operator.decide(refundId, 'returned'))
    await lab.show(payment, '0')
    await lab.age(other, 2 * CONFIRM_MS)
    await lab.passTwice(payment, refundId)
    expect(await lab.left(payment)).toBe('70')
    await lab.notify(payment, other, '30', { code: 1 })
    await lab.passTwice(payment, other)
    expect(await lab.status(other)).toBe('failed')
    expect(await lab.left(payment)).toBe('100')
  })

  it('that was refused for good fails once two answers show no growth', async () => {
    const payment = await lab.open({ amount: '200' })
    const ids: string[] = []
    for (const shown of ['30', '60']) {
      const id = await lab.send(payment, '30')
      await lab.show(payment, shown)
      await lab.passNotified(payment, id, '30')
      ids.push(id)
    }
    await lab.fault('code', { code: 31 })
    const refused = await lab.send(payment, '30')
    await done(operator.decide(ids[0] ?? '', 'returned'))
    await lab.show(payment, '30')
    await lab.pass(payment)
    for (const id of [...ids, refused]) await lab.age(id, 600_000)
    await lab.pass(payment)
    await lab.age(refused, 600_000)
    await lab.passTwice(payment, refused)
    expect(await lab.status(refused)).toBe('failed')
  })

  it('is sent at once when the second answer does not show it', async () => {
    const { payment } = await makeReturned()
    await lab.show(payment, '0')
    const other = await lab.send(payment, '30')
    expect(await lab.sent(other)).toBe(0)
    await lab.passShowing(payment, '30')
    await lab.expectRefund(other, 'accepted', { refundedBefore: '30' })
  })

  it('before any answer shows it, is found by growth after the fall', async () => {
    const { payment, refundId } = await makeReturned()
    const other = await lab.send(payment, '20')
    await lab.show(payment, '0')
    await lab.age(other, 2 * CONFIRM_MS)
    await lab.passTwice(payment, refundId)
    expect(await lab.left(payment)).toBe('80')
    await lab.passShowing(payment, '20')
    await lab.expectRefund(other, 'succeeded', { inferred: true })
    expect(await lab.left(payment)).toBe('60')
  })
})

it('a refund whose return a person decides after an answer has shown it is released by two answers, and the success of another one stays matched', async () => {
  const { payment, refundId } = await lab.openMatched()
  const other = await lab.send(payment, '20')
  await lab.notify(payment, other, '20')
  await lab.passShowing(payment, '50')
  await lab.passShowing(payment, '20')
  await done(operator.decide(refundId, 'returned'))
  await lab.age(other, 2 * CONFIRM_MS)
  await lab.passTwice(payment, refundId)
  await lab.expectRefund(other, 'succeeded', { matched: true })
  expect(await lab.left(payment)).toBe('80')
  const open = await lab.disagreements(payment, { onlyOpen: true })
  expect(open).not.toContain('refunded_amount_fell')
})

it('a refund that came back before the refunded amount ever showed it keeps its amount taken', async () => {
  const { payment, refundId } = await lab.openSent()
  await lab.passNotified(payment, refundId, '30')
  await done(operator.decide(refundId, 'returned'))
  for (let n = 0; n < 3; n += 1) await lab.pass(payment)
  expect(await lab.left(payment)).toBe('70')
  await lab.passShowing(payment, '30')
  expect(await lab.left(payment)).toBe('70')
  await lab.show(payment, '0')
  await lab.passTwice(payment, refundId)
  expect(await lab.left(payment)).toBe('100')
  await lab.passShowing(payment, '30')
  expect(await lab.left(payment)).toBe('70')
  expect(await lab.disagreements(payment)).toContain('unexplained_growth')
})

it('a success notification of a refund that came back is told each time: it may have been paid out again', async () => {
  const { payment, refundId } = await makeReturned()
  await done(second.decide(refundId, 'returned'))
  await lab.passShowing(payment, '0')
  expect(await lab.left(payment)).toBe('100')
  const listOpen = async () =>
    await lab.database.sql`
    select id from discrepancies where kind = 'decided_against_evidence' and resolved_at is null`
  for (const message of ['paid out again', 'and once more']) {
    await lab.passNotified(payment, refundId, '30', { message })
    const [told] = await listOpen()
    expect(told).toBeDefined()
    await done(second.post(`discrepancies/${told?.id}/resolution`))
    expect(await listOpen()).toEqual([])
  }
})

it('a refund that two people have freed is unexplained growth until the refunded amount falls by it', async () => {
  const { payment, refundId } = await makeReturned()
  await done(second.decide(refundId, 'returned'))
  const listOpen = () => lab.disagreements(payment, { onlyOpen: true })
  await lab.pass(payment)
  expect(await listOpen()).toContain('unexplained_growth')
  await lab.passShowing(payment, '0')
  expect(await listOpen()).not.toContain('unexplained_growth')
  expect(await lab.left(payment)).toBe('100')
})

it('a refund that is decided as returned after the amount fell is released by two later answers, apart', async () => {
  const { payment, refundId } = await lab.openMatched()
  await lab.passShowing(payment, '0')
  await lab.age(refundId, CONFIRM_MS)
  await lab.pass(payment)
  await done(operator.decide(refundId, 'returned'))
  await lab.pass(payment)
  await lab.pass(payment)
  expect(await lab.left(payment)).toBe('70')
  await lab.age(refundId, CONFIRM_MS)
  await lab.pass(payment)
  expect(await lab.left(payment)).toBe('100')
})
