import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ExternalRefund } from '../../../src/refunds/external-view.ts'
import { addPrincipal, type TestKey } from '../../support/approvals.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()

let operator: TestKey
beforeEach(async () => {
  operator = await addPrincipal(lab.database)
})

async function post(path: string, body: object = {}): Promise<void> {
  const response = await lab.post(`/${path}`, { reason: 'ticket 4711', ...body }, operator.key)
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
}

type Growth = { id: string; ours: string; isOpen: boolean }

/** The payment's discrepancies about growth that nothing explains, oldest first. */
const readGrowth = ({ id }: LabPayment) => lab.database.sql<Growth[]>`
  select id::text, ours, resolved_at is null as "isOpen" from discrepancies
  where payment_id = ${id} and kind = 'unexplained_growth' order by id`

const isOpen = async (payment: LabPayment) =>
  (await readGrowth(payment)).map((one) => [one.ours, one.isOpen])

/** A payment of 100 that has grown by `growth`, and the id of the discrepancy. */
async function grow(growth: string, atFirst = '0') {
  const payment = await lab.open()
  await lab.database.sql`
    update payments set refunded_at_first = ${atFirst}, refunded_amount = ${atFirst}
    where payment_id = ${payment.id}`
  await lab.passShowing(payment, String(Number(atFirst) + Number(growth)))
  const [found] = await readGrowth(payment)
  return { payment, id: found?.id ?? '' }
}

async function findExternal({ id }: LabPayment, source: 'person' | 'notification') {
  const response = await lab.api(`/v1/payments/${id}/external-refunds`)
  const { data } = z.object({ data: z.array(ExternalRefund) }).parse(await response.json())
  const found = data.find((one) => one.source === source)
  if (!found) throw new Error(`no external refund from a ${source}`)
  return found
}

async function decide(payment: LabPayment, source: 'person' | 'notification', outcome: string) {
  const { id } = await findExternal(payment, source)
  await post(`external-refunds/${id}/resolution`, { outcome, againstEvidence: true })
}

const enter = (id: string) => post(`discrepancies/${id}/resolution`)

describe('growth that was entered and undone is unexplained again', () => {
  it.each([
    ['never_happened', '0'],
    ['part_of_first_sight', '30'],
  ])('at once, when a person decides %s', async (outcome, atFirst) => {
    const { payment, id } = await grow('30', atFirst)
    await enter(id)
    expect(await isOpen(payment)).toEqual([['no refund explains 30 of it', false]])
    await decide(payment, 'person', outcome)
    expect(await isOpen(payment)).toEqual([['no refund explains 30 of it', true]])
    await lab.pass(payment)
    expect(await isOpen(payment)).toEqual([['no refund explains 30 of it', true]])
  })

  it('and can be entered again, as often as it is undone', async () => {
    const { payment, id } = await grow('30')
    for (let times = 0; times < 2; times += 1) {
      await enter(id)
      await lab.pass(payment)
      expect(await isOpen(payment)).toEqual([['no refund explains 30 of it', false]])
      const [entered] = await lab.database.sql<{ id: string }[]>`
        select id from external_refunds where source = 'person' and outcome is null`
      await post(`external-refunds/${entered?.id}/resolution`, {
        outcome: 'never_happened',
        againstEvidence: true,
      })
      expect(await isOpen(payment)).toEqual([['no refund explains 30 of it', true]])
    }
  })

  it('with an answer, whatever it was resolved by', async () => {
    const { payment, id } = await grow('30')
    await enter(id)
    await lab.pass(payment)
    await lab.database.sql`delete from external_refunds`
    await lab.pass(payment)
    expect(await isOpen(payment)).toEqual([['no refund explains 30 of it', true]])
  })

  it('that was notified is, too, as soon as a person decides that it never happened', async () => {
    const payment = await lab.open()
    await lab.show(payment, '30')
    await lab.passNotified(payment, 'portal-1', '30')
    expect(await isOpen(payment)).toEqual([])
    await decide(payment, 'notification', 'never_happened')
    expect(await isOpen(payment)).toEqual([['no refund explains 30 of it', true]])
    const [event] = await lab.database.sql`
      select data ->> 'kind' as kind from event_outbox where type = 'discrepancy.found'
        and data ->> 'kind' = 'unexplained_growth' and transaction_id = ${payment.transactionId}`
    expect(event).toEqual({ kind: 'unexplained_growth' })
  })
})

describe('growth that is explained', () => {
  it('by a decision about an external refund is no discrepancy any more, in that commit', async () => {
    const payment = await lab.open()
    await lab.database.sql`
      update payments set refunded_at_first = 30, refunded_amount = 30 where payment_id = ${payment.id}`
    await lab.show(payment, '60')
    await lab.notify(payment, 'portal-1', '30')
    await lab.ask(payment, '30')
    await lab.pass(payment)
    expect(await isOpen(payment)).toEqual([['no refund explains 30 of it', true]])
    await decide(payment, 'notification', 'matched')
    expect(await isOpen(payment)).toEqual([['no refund explains 30 of it', false]])
  })

  it('by a refund whose success was inferred from it is not entered', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '20')
    await lab.passShowing(payment, '20')
    expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: true })
    await lab.passShowing(payment, '50')
    const [found] = await readGrowth(payment)
    await enter(found?.id ?? '')
    const { amount } = await findExternal(payment, 'person')
    expect(amount).toBe('30')
  })

  it('in the meantime is resolved without entering anything', async () => {
    const { payment, id } = await grow('30')
    await lab.database.sql`
      insert into external_refunds (merchant_code, request_id, payment_id, amount, matched, ipn_event_id)
      select merchant_code, 'portal-1', payment_id, 30, true, 1 from payments where payment_id = ${payment.id}`
    await enter(id)
    const rows = await lab.database.sql`select from external_refunds where source = 'person'`
    expect(rows).toHaveLength(0)
    await lab.pass(payment)
    expect(await isOpen(payment)).toEqual([['no refund explains 30 of it', false]])
  })
})

it('a success that was inferred from growth is left to a person, in the commit that says the growth was made elsewhere', async () => {
  const payment = await lab.open()
  await lab.database.sql`
    update payments set refunded_at_first = 30, refunded_amount = 30 where payment_id = ${payment.id}`
  await lab.show(payment, '30')
  await lab.passNotified(payment, 'portal-1', '30')
  await decide(payment, 'notification', 'part_of_first_sight')
  const refundId = await lab.send(payment, '30')
  await lab.passShowing(payment, '60')
  expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: true })
  await decide(payment, 'notification', 'matched')
  expect(await lab.row(refundId)).toMatchObject({ status: 'needs_review', inferred: false })
  const events = await lab.database.sql`
    select data ->> 'status' as status from event_outbox
    where type = 'refund.updated' and data ->> 'id' = ${refundId} order by id desc limit 1`
  expect(events).toEqual([{ status: 'needs_review' }])
})

it('growth that a decision leaves to the only open refund of ours shows it with the next answer', async () => {
  const payment = await lab.open()
  await lab.passNotified(payment, 'portal-1', '20')
  await decide(payment, 'notification', 'never_happened')
  const refundId = await lab.send(payment, '30')
  await lab.passShowing(payment, '50')
  expect(await lab.row(refundId)).toMatchObject({ status: 'accepted' })
  await decide(payment, 'notification', 'matched')
  await lab.pass(payment)
  expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: true })
})
