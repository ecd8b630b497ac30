import { describe, expect, it } from 'vitest'
import { expectRefused } from '../../support/ask.ts'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import { type LabPayment, RESOLVE_MS } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const operator = usePerson(lab)

const find = async (payment: LabPayment, requestId: string | null) => {
  const found = (await lab.external(payment)).find((one) => one.requestId === requestId)
  return found ?? expect.fail(`no external refund ${requestId}`)
}

/** A payment of 100 that grew by `growth`, which a person has entered as a refund made elsewhere. */
async function makeEntered(growth: string, atFirst = '0'): Promise<LabPayment> {
  const payment = await lab.open()
  await lab.seeFirst(payment, atFirst)
  await lab.passShowing(payment, String(Number(atFirst) + Number(growth)))
  await done(operator.enterGrowth(payment))
  return payment
}

const readEvents = async ({ transactionId }: LabPayment) =>
  await lab.database.sql`
    select type, data ->> 'id' as id, data ->> 'state' as state, data ->> 'amount' as amount from event_outbox
    where transaction_id = ${transactionId} and type like 'external_refund.%' order by event_outbox.id`

const readSteps = async (payment: LabPayment) =>
  (await lab.timeline(payment)).filter(({ field }) => field === 'external_refund')

describe('a refund that a person entered for growth', () => {
  it('is replaced by the one whose notification arrives later, in the feed and in the timeline', async () => {
    const payment = await makeEntered('30')
    const entered = await find(payment, null)
    await lab.passNotified(payment, 'portal-1', '30')
    const notified = await find(payment, 'portal-1')
    await done(operator.decideExternal(notified.id, 'matched'))
    expect(await lab.left(payment)).toBe('70')
    expect(await find(payment, null)).toMatchObject({ state: 'released' })
    const events = await readEvents(payment)
    expect(events.filter(({ id }) => id === entered.id)).toMatchObject([
      { type: 'external_refund.found', state: 'matched', amount: '30' },
      { type: 'external_refund.updated', state: 'released', amount: '30' },
    ])
    expect(events.filter(({ id }) => id === notified.id).at(-1)).toMatchObject({
      type: 'external_refund.updated',
      state: 'matched',
    })
    expect(await readSteps(payment)).toMatchObject([
      { before: null, after: 'matched' },
      { before: null, after: 'reserved' },
      { before: 'matched', after: 'released', cause: expect.stringContaining('portal-1') },
      { before: 'reserved', after: 'matched' },
    ])
  })

  it('is lowered by a smaller one, which the feed and the timeline show', async () => {
    const payment = await makeEntered('30')
    const entered = await find(payment, null)
    await lab.passNotified(payment, 'portal-1', '10')
    const notified = await find(payment, 'portal-1')
    await done(operator.decideExternal(notified.id, 'matched'))
    expect(await lab.left(payment)).toBe('70')
    expect(await find(payment, null)).toMatchObject({ state: 'matched', amount: '20' })
    const events = await readEvents(payment)
    expect(events.filter(({ id }) => id === entered.id).at(-1)).toMatchObject({
      type: 'external_refund.updated',
      state: 'matched',
      amount: '20',
    })
    expect((await readSteps(payment)).at(-2)).toMatchObject({
      before: 'matched',
      after: 'matched',
      cause: expect.stringContaining('20'),
    })
  })

  it('uses up the first sight once a person decides that it is part of it', async () => {
    const payment = await makeEntered('30', '30')
    const { id } = await find(payment, null)
    await done(operator.decideExternal(id, 'part_of_first_sight', AGAINST))
    await lab.passNotified(payment, 'portal-1', '30')
    const portal = await find(payment, 'portal-1')
    const refused = await operator.decideExternal(portal.id, 'part_of_first_sight', AGAINST)
    const problem = await expectRefused(refused, 409, 'not_decidable')
    expect(problem.detail).toContain('only 0')
  })

  it('that never happened leaves its growth unexplained again', async () => {
    const payment = await makeEntered('30')
    const { id } = await find(payment, null)
    const refused = await operator.decideExternal(id, 'never_happened')
    await expectRefused(refused, 409, 'against_evidence')
    await done(operator.decideExternal(id, 'never_happened', AGAINST))
    expect(await lab.left(payment)).toBe('70')
    const refundId = await lab.send(payment, '30')
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'pending', { sent: 0 })
  })
})

it('growth that is entered leaves to a person what was inferred and may not be its own', async () => {
  const payment = await lab.open()
  const one = await lab.send(payment, '30')
  await lab.passShowing(payment, '30')
  await lab.expectRefund(one, 'succeeded', { inferred: true })
  expect(await lab.status(await lab.send(payment, '40'))).toBe('accepted')
  await lab.passShowing(payment, '50')
  await done(operator.enterGrowth(payment))
  expect(await lab.status(one)).toBe('needs_review')
})

it('growth that is entered and was a refund of ours is told once that succeeds and nothing shows it', async () => {
  const payment = await lab.open()
  const refundId = await lab.send(payment, '30')
  // Ours of 30 and one of 20 at the portal, in one answer.
  await lab.passShowing(payment, '50')
  await done(operator.enterGrowth(payment))
  await lab.passNotified(payment, refundId, '30')
  expect(await lab.status(refundId)).toBe('succeeded')
  const open = () => lab.disagreements(payment, { onlyOpen: true })
  expect(await open()).toEqual([])
  await lab.age(refundId, RESOLVE_MS)
  await lab.pass(payment)
  expect(await open()).toEqual(['refund_without_growth'])
  const { id } = await find(payment, null)
  await done(operator.decideExternal(id, 'never_happened', AGAINST))
  await lab.pass(payment)
  expect(await lab.row(refundId)).toMatchObject({ matched: true })
  expect((await open()).toSorted()).toEqual(['decided_against_evidence', 'unexplained_growth'])
})

it.each([
  ['at once', false],
  ['after an answer', true],
])(
  'growth that is entered beside a refund decided as failed is no growth that the person saw, %s',
  async (_, isAnswered) => {
    const { payment, refundId } = await lab.openSent('reset')
    await lab.passShowing(payment, '30')
    await done(operator.decide(refundId, 'failed', AGAINST))
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('failed')
    await done(operator.enterGrowth(payment))
    if (isAnswered) await lab.pass(payment)
    // As much again: this time it may be its own.
    await lab.passShowing(payment, '60')
    expect(await lab.status(refundId)).toBe('needs_review')
  },
)
