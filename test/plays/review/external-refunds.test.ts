import { beforeAll, describe, expect, it } from 'vitest'
import { ExternalRefund } from '../../../src/refunds/external-view.ts'
import { expectInvalid, expectProblem, NO_IDS, readPage, withKey } from '../../support/api.ts'
import { expectRefused } from '../../support/ask.ts'
import { atOnce } from '../../support/locks.ts'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { addKey } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'

const PAYMENTS = 'key-that-reads-payments-only-0123456789'

const lab = useFreshLab()
const operator = usePerson(lab)
beforeAll(() => addKey(lab.database, PAYMENTS, ['payments:read']))

async function readOnly(payment: LabPayment) {
  const [one, ...more] = await lab.external(payment)
  if (!one || more.length > 0) throw new Error('not one external refund')
  return one
}

async function expectDecided(id: string, outcome: string, more?: object) {
  const decided = await done(operator.decideExternal(id, outcome, more), ExternalRefund)
  expect(decided.state).toBe(outcome)
  return decided
}

const refuse = async (id: string, outcome: string, more?: object) =>
  await expectRefused(await operator.decideExternal(id, outcome, more), 409, 'not_decidable')

/** A payment of 100 with a refund of 30 that was notified; the refunded amount shows `shown`. */
async function makeReserved(shown = '0', atFirst = '0') {
  const payment = await lab.open()
  await lab.seeFirst(payment, atFirst)
  await lab.show(payment, shown)
  await lab.passNotified(payment, 'portal-1', '30')
  return { payment, one: await readOnly(payment) }
}

async function readEvents(payment: LabPayment) {
  return await lab.database.sql<{ type: string; data: Record<string, unknown> }[]>`
    select type, data from event_outbox where transaction_id = ${payment.transactionId}
      and type like 'external_refund.%' order by id`
}

async function readSteps(payment: LabPayment, key?: string) {
  const path = `${lab.service.url}/v1/transactions/${payment.transactionId}/timeline`
  const { data } = await readPage(await fetch(path, withKey(key)))
  return data.filter(({ field }) => field === 'external_refund')
}

describe('the external refunds of a payment', () => {
  it('are listed with their state, newest first, page by page', async () => {
    const payment = await lab.open()
    expect(await lab.external(payment)).toEqual([])
    await lab.passNotified(payment, 'portal-1', '30')
    await lab.notify(payment, 'portal-2', '20')
    await lab.passShowing(payment, '20')
    const data = await lab.external(payment)
    expect(data).toMatchObject([
      { requestId: 'portal-2', amount: '20', state: 'matched', source: 'notification' },
      { requestId: 'portal-1', amount: '30', state: 'reserved', resolution: null },
    ])
    const path = `/v1/payments/${payment.id}/external-refunds?limit=1`
    const first = await readPage(await lab.api(path))
    expect(first.data).toEqual(data.slice(0, 1))
    const second = await readPage(await lab.api(`${path}&cursor=${first.nextCursor}`))
    expect(second).toEqual({ data: data.slice(1), nextCursor: null })
  })

  it('explain the refunded amount in the feed, and in the timeline of keys that read refunds', async () => {
    const { payment } = await makeReserved()
    await lab.passShowing(payment, '30')
    expect(await readEvents(payment)).toMatchObject([
      { type: 'external_refund.found', data: { requestId: 'portal-1', state: 'reserved' } },
      { type: 'external_refund.updated', data: { requestId: 'portal-1', state: 'matched' } },
    ])
    expect(await readSteps(payment)).toMatchObject([
      { before: null, after: 'reserved', cause: expect.stringContaining('portal-1') },
      { before: 'reserved', after: 'matched', cause: expect.stringContaining('refund of 30') },
    ])
    expect(await readSteps(payment, PAYMENTS)).toEqual([])
  })
})

describe("a person's decision about an external refund", () => {
  it('that it never happened gives its amount back, with person and reason in timeline and feed', async () => {
    const { payment, one } = await makeReserved()
    await lab.database.sql`update external_refunds set first_seen_at = now() - interval '4 days'`
    await lab.pass(payment)
    expect(await lab.disagreements(payment)).toEqual(['external_refund_unmatched'])
    expect(await lab.left(payment)).toBe('70')
    const decided = await expectDecided(one.id, 'never_happened')
    expect(decided.resolution).toMatchObject({
      ...{ by: operator.name, reason: 'ticket 4711', againstEvidence: null },
    })
    expect(await lab.left(payment)).toBe('100')
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('100')
    expect(await lab.disagreements(payment, { onlyOpen: true })).toEqual([])
    expect((await readSteps(payment)).at(-1)).toMatchObject({
      before: 'reserved',
      after: 'never_happened',
      cause: expect.stringContaining(`resolved with API key ${operator.name}: ticket 4711`),
    })
    expect((await readEvents(payment)).at(-1)).toMatchObject({
      type: 'external_refund.updated',
      data: { state: 'never_happened', resolution: { by: operator.name, reason: 'ticket 4711' } },
    })
    expect(await lab.lastEvent(payment.id)).toMatchObject({
      ...{ type: 'payment.updated', data: { refundableAmount: '100' } },
    })
  })

  it('that it is part of the first sight consumes that, and no more than that', async () => {
    const { payment, one } = await makeReserved('30', '30')
    expect(await lab.left(payment)).toBe('40')
    await expectDecided(one.id, 'part_of_first_sight')
    expect(await lab.left(payment)).toBe('70')
    await lab.passNotified(payment, 'portal-2', '10')
    const [other] = await lab.external(payment)
    const problem = await refuse(other?.id ?? '', 'part_of_first_sight')
    expect(problem).toMatchObject({ state: 'reserved' })
    expect(problem.detail).toContain('only 0')
    expect(await lab.left(payment)).toBe('60')
  })

  it('that it is part of the first sight is refused for what refunds of ours explain of it', async () => {
    const { payment, one } = await makeReserved('30', '30')
    const own = await lab.ask(payment, '30')
    await lab.database.sql`
      update refunds set status = 'succeeded', in_first_sight = true, due_at = null where refund_id = ${own}`
    await refuse(one.id, 'part_of_first_sight')
  })

  it('that it is matched settles growth that may be it or one of ours', async () => {
    const { payment, one } = await makeReserved('30', '30')
    const refundId = await lab.send(payment, '30')
    await lab.passShowing(payment, '60')
    expect(await lab.status(refundId)).toBe('accepted')
    expect(await readOnly(payment)).toMatchObject({ state: 'reserved' })
    await expectDecided(one.id, 'matched')
    expect(await lab.left(payment)).toBe('10')
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('accepted')
    await lab.passShowing(payment, '90')
    expect(await lab.status(refundId)).toBe('succeeded')
  })

  it('that it is matched is refused while no growth is left for it', async () => {
    const { payment, one } = await makeReserved('29')
    const problem = await refuse(one.id, 'matched')
    expect(problem.detail).toContain('no increase of 30')
    expect(await lab.left(payment)).toBe('41')
  })

  it('against what is known needs againstEvidence, and is a discrepancy', async () => {
    const { payment, one } = await makeReserved('30')
    expect(one.state).toBe('matched')
    const refused = await operator.decideExternal(one.id, 'never_happened')
    const { detail } = await expectRefused(refused, 409, 'against_evidence')
    expect(detail).toContain('the refunded amount shows it')
    await expectDecided(one.id, 'never_happened', AGAINST)
    expect(await lab.disagreements(payment)).toContain('decided_against_evidence')
    expect(await lab.left(payment)).toBe('70')
    await lab.passShowing(payment, '0')
    expect(await lab.left(payment)).toBe('70')
    await lab.database.sql`
      update payments set refunded_fell_at = refunded_fell_at - interval '10 min' where payment_id = ${payment.id}`
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('100')
  })

  it('about one that is ours, or has that state already, is refused', async () => {
    const { one } = await makeReserved()
    await expectDecided(one.id, 'never_happened')
    await refuse(one.id, 'never_happened')
    await lab.database.sql`update external_refunds set outcome = 'released'`
    await refuse(one.id, 'never_happened', AGAINST)
    await lab.database.sql`update external_refunds set outcome = 'own'`
    const { detail } = await refuse(one.id, 'matched', AGAINST)
    expect(detail).toContain(`decided with POST /v1/refunds/${one.requestId}/resolution`)
  })

  it('is accepted once when two people decide at once, and the other learns it', async () => {
    const { payment, one } = await makeReserved('30', '30')
    const outcomes = ['never_happened', 'part_of_first_sight']
    const answers = await atOnce(
      lab.database,
      (held) => held`select from payments where payment_id = ${payment.id} for update`,
      outcomes.map((outcome) => () => operator.decideExternal(one.id, outcome, AGAINST)),
    )
    const [won, lost] = answers.sort((a, b) => a.status - b.status)
    const { state } = ExternalRefund.parse(await won?.json())
    if (!lost) throw new Error('no second answer')
    const problem = await expectRefused(lost, 409, 'not_decidable')
    expect(problem).toMatchObject({ state })
    expect(problem.detail).toContain(`decided as ${state} by ${operator.name}`)
  })

  it('is refused without a reason, with another outcome, and for an id that does not exist', async () => {
    const { one } = await makeReserved()
    const decide = operator.decideExternal
    await expectInvalid(await decide(one.id, 'matched', { reason: ' ' }), 'reason')
    await expectInvalid(await decide(one.id, 'returned'), 'outcome')
    for (const id of NO_IDS) {
      await expectProblem(await decide(id, 'matched'), 404, 'external_refund_not_found')
    }
  })
})

it('growth that a person enters as a refund made elsewhere is explained: what waited for it is sent, and no less is left', async () => {
  const payment = await lab.open()
  const refundId = await lab.ask(payment, '20')
  await lab.passShowing(payment, '30')
  await lab.expectRefund(refundId, 'pending', { left: '50' })
  await done(operator.enterGrowth(payment))
  expect(await lab.left(payment)).toBe('50')
  expect(await readOnly(payment)).toMatchObject({
    ...{ amount: '30', requestId: null, source: 'person', state: 'matched' },
    resolution: { by: operator.name, reason: 'ticket 4711' },
  })
  await lab.pass(payment)
  expect(await lab.status(refundId)).toBe('accepted')
  expect((await readEvents(payment)).map(({ type }) => type)).toEqual(['external_refund.found'])
  expect(await readSteps(payment)).toMatchObject([{ before: null, after: 'matched' }])
})
