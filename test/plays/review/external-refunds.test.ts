import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { enterExternalRefund } from '../../../src/decisions/external.ts'
import { recordEvents } from '../../../src/events/record-events.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { ExternalRefund } from '../../../src/refunds/external-view.ts'
import { expectInvalid, expectProblem, NO_IDS, readPage, withKey } from '../../support/api.ts'
import { expectRefused } from '../../support/ask.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'

const OPERATOR = 'key-of-operations-only-01234567890123456'
const PAYMENTS = 'key-that-reads-payments-only-0123456789'

const lab = useFreshLab()
beforeAll(async () => {
  await addKey(lab.database, OPERATOR, ['ops'])
  await addKey(lab.database, PAYMENTS, ['payments:read'])
})

const Page = z.strictObject({ data: z.array(ExternalRefund), nextCursor: z.string().nullable() })

async function list({ id }: LabPayment, query = '') {
  const response = await lab.api(`/v1/payments/${id}/external-refunds${query}`)
  return Page.parse(await response.json())
}

async function readOnly(payment: LabPayment) {
  const [one, ...more] = (await list(payment)).data
  if (!one || more.length > 0) throw new Error('not one external refund')
  return one
}

type Outcome = 'matched' | 'part_of_first_sight' | 'never_happened'

function decide(id: string, outcome: Outcome | 'returned', more: object = {}): Promise<Response> {
  return lab.post(
    `/external-refunds/${id}/resolution`,
    { outcome, reason: 'ticket 4711', ...more },
    OPERATOR,
  )
}

async function expectDecided(response: Response, state: string) {
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  const one = ExternalRefund.parse(JSON.parse(text))
  expect(one.state).toBe(state)
  return one
}

/** A payment of 100 with a refund of 30 that was notified; the refunded amount shows `shown`. */
async function makeReserved(shown = '0', atFirst = '0') {
  const payment = await lab.open()
  if (atFirst !== '0') {
    await lab.database.sql`
      update payments set refunded_at_first = ${atFirst}, refunded_amount = ${atFirst}`
  }
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
    expect(await list(payment)).toEqual({ data: [], nextCursor: null })
    await lab.passNotified(payment, 'portal-1', '30')
    await lab.notify(payment, 'portal-2', '20')
    await lab.passShowing(payment, '20')
    const { data } = await list(payment)
    expect(data).toMatchObject([
      { requestId: 'portal-2', amount: '20', state: 'matched', source: 'notification' },
      { requestId: 'portal-1', amount: '30', state: 'reserved', resolution: null },
    ])
    const first = await list(payment, '?limit=1')
    expect(first.data).toEqual(data.slice(0, 1))
    const second = await list(payment, `?limit=1&cursor=${first.nextCursor}`)
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
    const decided = await expectDecided(await decide(one.id, 'never_happened'), 'never_happened')
    expect(decided.resolution).toMatchObject({
      by: 'test',
      reason: 'ticket 4711',
      againstEvidence: null,
    })
    expect(await lab.left(payment)).toBe('100')
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('100')
    const [open] = await lab.database.sql`
      select count(*)::int as n from discrepancies where resolved_at is null`
    expect(open).toEqual({ n: 0 })
    expect((await readSteps(payment)).at(-1)).toMatchObject({
      before: 'reserved',
      after: 'never_happened',
      cause: expect.stringContaining('resolved with API key test: ticket 4711'),
    })
    expect((await readEvents(payment)).at(-1)).toMatchObject({
      type: 'external_refund.updated',
      data: { state: 'never_happened', resolution: { by: 'test', reason: 'ticket 4711' } },
    })
    const [event] = await lab.database.sql`
      select data -> 'refundableAmount' as amount from event_outbox
      where transaction_id = ${payment.transactionId} and type = 'payment.updated' order by id desc limit 1`
    expect(event).toEqual({ amount: '100' })
  })

  it('that it is part of the first sight consumes that, and no more than that', async () => {
    const { payment, one } = await makeReserved('30', '30')
    expect(await lab.left(payment)).toBe('40')
    await expectDecided(await decide(one.id, 'part_of_first_sight'), 'part_of_first_sight')
    expect(await lab.left(payment)).toBe('70')
    await lab.passNotified(payment, 'portal-2', '10')
    const other = (await list(payment)).data.find(({ requestId }) => requestId === 'portal-2')
    const problem = await expectRefused(
      await decide(other?.id ?? '', 'part_of_first_sight'),
      409,
      'not_decidable',
    )
    expect(problem).toMatchObject({ state: 'reserved' })
    expect(problem.detail).toContain('only 0')
    expect(await lab.left(payment)).toBe('60')
  })

  it('that it is part of the first sight is refused for what refunds of ours explain of it', async () => {
    const { payment, one } = await makeReserved('30', '30')
    const own = await lab.ask(payment, '30')
    await lab.database.sql`
      update refunds set status = 'succeeded', in_first_sight = true, due_at = null where refund_id = ${own}`
    await expectRefused(await decide(one.id, 'part_of_first_sight'), 409, 'not_decidable')
  })

  it('that it is matched settles growth that may be it or one of ours', async () => {
    const { payment, one } = await makeReserved('30', '30')
    const refundId = await lab.send(payment, '30')
    await lab.passShowing(payment, '60')
    expect(await lab.status(refundId)).toBe('accepted')
    expect(await readOnly(payment)).toMatchObject({ state: 'reserved' })
    await expectDecided(await decide(one.id, 'matched'), 'matched')
    expect(await lab.left(payment)).toBe('10')
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('accepted')
    await lab.passShowing(payment, '90')
    expect(await lab.status(refundId)).toBe('succeeded')
  })

  it('that it is matched is refused while no growth is left for it', async () => {
    const { payment, one } = await makeReserved('29')
    const problem = await expectRefused(await decide(one.id, 'matched'), 409, 'not_decidable')
    expect(problem.detail).toContain('no increase of 30')
    expect(await lab.left(payment)).toBe('41')
  })

  it('against what is known needs againstEvidence, and is a discrepancy', async () => {
    const { payment, one } = await makeReserved('30')
    expect(one.state).toBe('matched')
    const problem = await expectRefused(
      await decide(one.id, 'never_happened'),
      409,
      'against_evidence',
    )
    expect(problem.detail).toContain('the refunded amount shows it')
    const against = { againstEvidence: true }
    await expectDecided(await decide(one.id, 'never_happened', against), 'never_happened')
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
    await expectDecided(await decide(one.id, 'never_happened'), 'never_happened')
    await expectRefused(await decide(one.id, 'never_happened'), 409, 'not_decidable')
    await lab.database.sql`update external_refunds set outcome = 'released'`
    const released = await decide(one.id, 'never_happened', { againstEvidence: true })
    await expectRefused(released, 409, 'not_decidable')
    await lab.database.sql`update external_refunds set outcome = 'own'`
    const own = await decide(one.id, 'matched', { againstEvidence: true })
    const { detail } = await expectRefused(own, 409, 'not_decidable')
    expect(detail).toContain(`decided with POST /v1/refunds/${one.requestId}/resolution`)
  })

  it('is accepted once when two people decide at once, and the other learns it', async () => {
    const { payment, one } = await makeReserved('30', '30')
    const answers = await whileUncommitted(
      lab.database,
      (held) => held`select from payments where payment_id = ${payment.id} for update`,
      async (commit) => {
        const outcomes = ['never_happened', 'part_of_first_sight'] as const
        const decided = outcomes.map((outcome) =>
          decide(one.id, outcome, { againstEvidence: true }),
        )
        await waitUntilBlocked(lab.database, 2)
        await commit()
        return await Promise.all(decided)
      },
    )
    const [won, lost] = answers.sort((a, b) => a.status - b.status)
    const { state } = ExternalRefund.parse(await won?.json())
    if (!lost) throw new Error('no second answer')
    const problem = await expectRefused(lost, 409, 'not_decidable')
    expect(problem).toMatchObject({ state })
    expect(problem.detail).toContain(`decided as ${state} by test`)
  })

  it('is refused without a reason, with another outcome, and for an id that does not exist', async () => {
    const { one } = await makeReserved()
    await expectInvalid(await decide(one.id, 'matched', { reason: ' ' }), 'reason')
    await expectInvalid(await decide(one.id, 'returned'), 'outcome')
    for (const id of NO_IDS) {
      await expectProblem(await decide(id, 'matched'), 404, 'external_refund_not_found')
    }
  })
})

describe('growth that a person enters as a refund made elsewhere', () => {
  const enter = (payment: LabPayment) =>
    runInTransaction(lab.service.ctx.db.sql, async (tx) => {
      const { merchantCode } = MERCHANT
      const of = { merchantCode, transactionId: payment.transactionId, paymentId: payment.id }
      const { ctx } = lab.service
      const entered = await enterExternalRefund(ctx, tx, of, { name: 'test' }, 'seen on the portal')
      await recordEvents(tx, entered?.events ?? [])
      return entered?.amount
    })

  it('explains it, frees what waited for it, and changes nothing of what is left', async () => {
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '20')
    await lab.passShowing(payment, '30')
    expect(await lab.status(refundId)).toBe('pending')
    expect(await lab.left(payment)).toBe('50')
    expect(await enter(payment)).toBe('30')
    expect(await lab.left(payment)).toBe('50')
    expect(await readOnly(payment)).toMatchObject({
      amount: '30',
      requestId: null,
      source: 'person',
      state: 'matched',
      resolution: { by: 'test', reason: 'seen on the portal' },
    })
    expect(await enter(payment)).toBeUndefined()
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('accepted')
    expect((await readEvents(payment)).map(({ type }) => type)).toEqual(['external_refund.found'])
    expect(await readSteps(payment)).toMatchObject([{ before: null, after: 'matched' }])
  })
})
