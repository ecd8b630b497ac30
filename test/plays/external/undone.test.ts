import { describe, expect, it } from 'vitest'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const operator = usePerson(lab)

/** What the payment's discrepancies about growth that nothing explains say, and whether they are open, oldest first. */
const readGrowth = async ({ id }: LabPayment) => {
  const rows = await lab.database.sql<{ ours: string; isOpen: boolean }[]>`
    select ours, resolved_at is null as "isOpen" from discrepancies
    where payment_id = ${id} and kind = 'unexplained_growth' order by id`
  return rows.map(({ ours, isOpen }) => [ours, isOpen])
}
const [OPEN, RESOLVED] = [true, false].map((isOpen) => [['no refund explains 30 of it', isOpen]])

/** A payment of 100 that has grown by 30. */
async function grow(atFirst = '0') {
  const payment = await lab.open()
  await lab.seeFirst(payment, atFirst)
  await lab.passShowing(payment, String(Number(atFirst) + 30))
  return payment
}

async function findExternal(payment: LabPayment, source: 'person' | 'notification') {
  const found = (await lab.external(payment)).find((one) => one.source === source)
  return found ?? expect.fail(`no external refund from a ${source}`)
}

async function decide(payment: LabPayment, source: 'person' | 'notification', outcome: string) {
  const { id } = await findExternal(payment, source)
  await done(operator.decideExternal(id, outcome, AGAINST))
}

const enter = (payment: LabPayment) => done(operator.enterGrowth(payment))

describe('growth that was entered and undone is unexplained again', () => {
  it.each([
    ['never_happened', '0'],
    ['part_of_first_sight', '30'],
  ])('at once, when a person decides %s', async (outcome, atFirst) => {
    const payment = await grow(atFirst)
    await enter(payment)
    expect(await readGrowth(payment)).toEqual(RESOLVED)
    await decide(payment, 'person', outcome)
    expect(await readGrowth(payment)).toEqual(OPEN)
    await lab.pass(payment)
    expect(await readGrowth(payment)).toEqual(OPEN)
  })

  it('and can be entered again, as often as it is undone', async () => {
    const payment = await grow()
    for (let times = 0; times < 2; times += 1) {
      await enter(payment)
      await lab.pass(payment)
      expect(await readGrowth(payment)).toEqual(RESOLVED)
      await decide(payment, 'person', 'never_happened')
      expect(await readGrowth(payment)).toEqual(OPEN)
    }
  })

  it('with an answer, whatever it was resolved by', async () => {
    const payment = await grow()
    await enter(payment)
    await lab.pass(payment)
    await lab.database.sql`delete from external_refunds`
    await lab.pass(payment)
    expect(await readGrowth(payment)).toEqual(OPEN)
  })

  it('that was notified is, too, as soon as a person decides that it never happened', async () => {
    const payment = await lab.open()
    await lab.show(payment, '30')
    await lab.passNotified(payment, 'portal-1', '30')
    expect(await readGrowth(payment)).toEqual([])
    await decide(payment, 'notification', 'never_happened')
    expect(await readGrowth(payment)).toEqual(OPEN)
    const [event] = await lab.database.sql`
      select data ->> 'kind' as kind from event_outbox where type = 'discrepancy.found'
        and data ->> 'kind' = 'unexplained_growth' and transaction_id = ${payment.transactionId}`
    expect(event).toEqual({ kind: 'unexplained_growth' })
  })
})

describe('growth that is explained', () => {
  it('by a decision about an external refund is no discrepancy any more, in that commit', async () => {
    const payment = await lab.open()
    await lab.seeFirst(payment, '30')
    await lab.show(payment, '60')
    await lab.notify(payment, 'portal-1', '30')
    await lab.ask(payment, '30')
    await lab.pass(payment)
    expect(await readGrowth(payment)).toEqual(OPEN)
    await decide(payment, 'notification', 'matched')
    expect(await readGrowth(payment)).toEqual(RESOLVED)
  })

  it('by a refund whose success was inferred from it is not entered', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '20')
    await lab.passShowing(payment, '20')
    await lab.expectRefund(refundId, 'succeeded', { inferred: true })
    await lab.passShowing(payment, '50')
    await enter(payment)
    const { amount } = await findExternal(payment, 'person')
    expect(amount).toBe('30')
  })

  it('by refunds that are matched, ours and others, is not entered', async () => {
    const { payment } = await lab.openMatched()
    await lab.show(payment, '35')
    await lab.passNotified(payment, 'portal-1', '5')
    await lab.passShowing(payment, '50')
    expect(await readGrowth(payment)).toEqual([['no refund explains 15 of it', true]])
    await enter(payment)
    expect((await findExternal(payment, 'person')).amount).toBe('15')
  })

  it('in the meantime is resolved without entering anything', async () => {
    const payment = await grow()
    await lab.database.sql`
      insert into external_refunds (merchant_code, request_id, payment_id, amount, matched, ipn_event_id)
      select merchant_code, 'portal-1', payment_id, 30, true, 1 from payments where payment_id = ${payment.id}`
    await enter(payment)
    const rows = await lab.database.sql`select from external_refunds where source = 'person'`
    expect(rows).toHaveLength(0)
    await lab.pass(payment)
    expect(await readGrowth(payment)).toEqual(RESOLVED)
  })
})

it('a success that was inferred from growth is left to a person, in the commit that says the growth was made elsewhere', async () => {
  const payment = await lab.open()
  await lab.seeFirst(payment, '30')
  await lab.show(payment, '30')
  await lab.passNotified(payment, 'portal-1', '30')
  await decide(payment, 'notification', 'part_of_first_sight')
  const refundId = await lab.send(payment, '30')
  await lab.passShowing(payment, '60')
  await lab.expectRefund(refundId, 'succeeded', { inferred: true })
  await decide(payment, 'notification', 'matched')
  await lab.expectRefund(refundId, 'needs_review', { inferred: false })
  expect(await lab.lastEvent(refundId)).toMatchObject({ data: { status: 'needs_review' } })
})

it('growth that a decision leaves to the only open refund of ours shows it with the next answer', async () => {
  const payment = await lab.open()
  await lab.passNotified(payment, 'portal-1', '20')
  await decide(payment, 'notification', 'never_happened')
  const refundId = await lab.send(payment, '30')
  await lab.passShowing(payment, '50')
  await lab.expectRefund(refundId, 'accepted')
  await decide(payment, 'notification', 'matched')
  await lab.pass(payment)
  await lab.expectRefund(refundId, 'succeeded', { inferred: true })
})
