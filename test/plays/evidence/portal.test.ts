import { describe, expect, it } from 'vitest'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import { type LabPayment, RESOLVE_MS } from '../../support/refund-lab.ts'
import { MERCHANT } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const operator = usePerson(lab)

async function states(payment: LabPayment): Promise<string[]> {
  return (await lab.external(payment)).map(({ state }) => state)
}

async function decideExternal(payment: LabPayment, outcome: string): Promise<void> {
  const [one] = await lab.external(payment)
  await done(operator.decideExternal(one?.id ?? '', outcome, AGAINST))
}

const enterGrowth = (payment: LabPayment) => done(operator.enterGrowth(payment))

/** A payment that the service sees for the first time after `before` has happened at the gateway. */
async function openLater(before: (payment: LabPayment) => Promise<void>): Promise<LabPayment> {
  const payment = await lab.open()
  await lab.database.sql.unsafe(
    'delete from refunds; delete from payments; delete from transactions',
  )
  await before(payment)
  await lab.database.sql`
    insert into transactions (merchant_code, transaction_id)
    values (${MERCHANT.merchantCode}, ${payment.transactionId})`
  await lab.pass(payment)
  await lab.pass(payment)
  return payment
}

it('portal refunds from before the payment was first seen are consumed whole, oldest first', async () => {
  const payment = await openLater(async (payment) => {
    await lab.refundAtPortal(payment, '30')
    await lab.refundAtPortal(payment, '20')
    await lab.notify(payment, 'portal-1', '30')
    await lab.notify(payment, 'portal-2', '20')
  })
  expect(await lab.left(payment)).toBe('50')
  const rows = await lab.database.sql`select outcome from external_refunds`
  expect(rows.map(({ outcome }) => outcome)).toEqual(Array(2).fill('part_of_first_sight'))
})

it('what was judged without an external refund failed by its code goes to review once the external refund that took its growth did not happen', async () => {
  const { payment, refundId } = await lab.openSent('acceptThenCode', { code: 33 })
  await lab.passTwice(payment, refundId)
  await lab.notify(payment, 'portal-1', '30')
  await lab.passSettled(payment, refundId)
  expect(await lab.status(refundId)).toBe('failed')
  await decideExternal(payment, 'never_happened')
  await lab.pass(payment)
  expect(await lab.status(refundId)).toBe('needs_review')
})

describe('an external refund', () => {
  it('whose request id is used again counts once more', async () => {
    const payment = await lab.open()
    await lab.show(payment, '0')
    await lab.notify(payment, 'portal-1', '30')
    await lab.notify(payment, 'portal-1', '20')
    const other = await lab.open()
    await lab.show(other, '0')
    await lab.notify(other, 'portal-1', '30')
    await lab.pass(payment)
    await lab.pass(other)
    expect([await lab.left(payment), await lab.left(other)]).toEqual(['50', '70'])
  })

  it.each([
    ['after', [0, 5]],
    ['before', [5, 0]],
  ])(
    'whose failure is notified %s its success stays reserved, and a person decides',
    async (_, codes) => {
      const payment = await lab.open()
      await lab.show(payment, '0')
      for (const code of codes) {
        await lab.passNotified(payment, 'portal-1', '30', { code })
      }
      expect(await lab.left(payment)).toBe('70')
      expect(await lab.disagreements(payment)).toEqual(['external_refund_contradicted'])
      await lab.passShowing(payment, '30')
      expect(await states(payment)).toEqual(['reserved'])
      expect(await lab.left(payment)).toBe('40')
      await decideExternal(payment, 'never_happened')
      await lab.pass(payment)
      expect(await lab.left(payment)).toBe('70')
    },
  )

  it('that a person decided never to have happened stays so, whatever is notified later', async () => {
    const payment = await lab.open()
    await lab.show(payment, '0')
    await lab.passNotified(payment, 'portal-1', '30')
    await decideExternal(payment, 'never_happened')
    await lab.passNotified(payment, 'portal-1', '30', { message: 'once more' })
    expect(await states(payment)).toEqual(['never_happened'])
    expect(await lab.left(payment)).toBe('100')
    expect(await lab.disagreements(payment)).toEqual(['decided_against_evidence'])
  })

  it('that was matched and fails stays matched, and a person decides', async () => {
    const payment = await lab.open()
    await lab.refundAtPortal(payment, '30')
    await lab.passNotified(payment, 'portal-1', '30')
    await lab.passNotified(payment, 'portal-1', '30', { code: 5 })
    expect(await lab.left(payment)).toBe('70')
    expect(await states(payment)).toEqual(['matched'])
    expect(await lab.disagreements(payment)).toEqual(['external_refund_contradicted'])
  })
})

describe('where nothing is queried for as long as a refund may take', () => {
  const lab = useFreshLab({ settings: { SYNC_REPOLL_FOR_MS: '1000', RECONCILE_FINAL_FOR_MS: '0' } })

  it('an external refund that no growth shows is queried once more, and told', async () => {
    const payment = await lab.open()
    const { sql } = lab.database
    const key = { merchantCode: MERCHANT.merchantCode, transactionId: payment.transactionId }
    await lab.notify(payment, 'portal-1', '30')
    await sql`update transactions set asked_for_at = now() - interval '1 day'`
    await lab.pass(payment)
    const [{ seconds } = {}] = await sql`
      select extract(epoch from due_at - now())::float8 as seconds from transactions
      where transaction_id = ${key.transactionId}`
    expect(seconds).toBeCloseTo(RESOLVE_MS / 1000, -1)
    await sql`
      update external_refunds set first_seen_at = first_seen_at - ${RESOLVE_MS} * interval '1 ms'`
    await lab.pass(payment)
    expect(await lab.disagreements(payment)).toEqual(['external_refund_unmatched'])
  })
})

describe('a verified success of a refund at the portal', () => {
  it('whose amount has binary noise is reserved as the decimal that it was', async () => {
    const payment = await lab.open()
    await lab.passNotified(payment, 'portal-1', '30.3', { amount: 30.299999999999997 })
    expect(await lab.left(payment)).toBe('69.7')
  })

  it('whose amount cannot be read is told', async () => {
    const payment = await lab.open()
    await lab.passNotified(payment, 'portal-1', '30', { amount: 30.12345 })
    expect(await lab.disagreements(payment)).toEqual(['external_refund_unreadable'])
  })

  const notifyUnreadable = (payment: LabPayment) =>
    lab.passNotified(payment, 'portal-1', '30', { amount: 30.00002 })

  it('whose amount cannot be read keeps growth from settling a refund of ours, until growth was entered', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await notifyUnreadable(payment)
    await lab.passShowing(payment, '30')
    expect(await lab.status(refundId)).toBe('unknown')
    await enterGrowth(payment)
    await lab.passShowing(payment, '60')
    await lab.expectRefund(refundId, 'succeeded', { inferred: true })
  })

  it.each(['first', 'last'])(
    'whose amount cannot be read, told %s, is not explained by the entry that explains one that can be',
    async (place) => {
      const payment = await lab.open()
      if (place === 'first') await notifyUnreadable(payment)
      await lab.notifyUndocumented(payment, 'portal-2')
      if (place === 'last') await notifyUnreadable(payment)
      await lab.passShowing(payment, '30')
      await enterGrowth(payment)
      await lab.fault('reset')
      const refundId = await lab.send(payment, '30')
      await lab.passShowing(payment, '60')
      expect(await lab.status(refundId)).toBe('unknown')
    },
  )

  it('whose amount cannot be read is explained by one entry, and a second one is not', async () => {
    const payment = await lab.open()
    await notifyUnreadable(payment)
    await lab.passNotified(payment, 'portal-2', '30', { amount: 30.00002 })
    await lab.passShowing(payment, '10')
    await enterGrowth(payment)
    await lab.fault('reset')
    const refundId = await lab.send(payment, '30')
    await lab.passShowing(payment, '40')
    expect(await lab.status(refundId)).toBe('unknown')
  })

  it('whose amount cannot be read leaves to a person what was inferred before', async () => {
    const { payment, refundId } = await lab.openInferred('reset')
    await notifyUnreadable(payment)
    expect(await lab.status(refundId)).toBe('needs_review')
  })

  it('whose amount cannot be read is explained by the same with one that can, once growth shows it', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await notifyUnreadable(payment)
    await lab.passNotified(payment, 'portal-1', '20')
    await lab.passShowing(payment, '20')
    await lab.passShowing(payment, '50')
    await lab.expectRefund(refundId, 'succeeded', { inferred: true })
  })

  it('is later than the first answer, also by a clock that has gone back since', async () => {
    const payment = await lab.open()
    const { sql } = lab.database
    // First seen by a clock that was an hour ahead, with 10 refunded long ago.
    await sql`
      update payments set refunded_at_first = 10, refunded_amount = 10,
        first_as_of = first_as_of + interval '1 hour', as_of = as_of + interval '1 hour'`
    await sql`update transactions set as_of = as_of + interval '1 hour'`
    await lab.show(payment, '10')
    await lab.passNotified(payment, 'portal-1', '10')
    expect(await lab.left(payment)).toBe('80')
  })
})

describe('growth that fits a verified success with a member that no table lists', () => {
  it('settles no refund of ours', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await lab.notifyUndocumented(payment)
    await lab.passShowing(payment, '30')
    expect(await lab.status(refundId)).toBe('unknown')
    expect(await lab.disagreements(payment)).toEqual(['unexplained_growth'])
  })

  it.each([
    ['30', 'succeeded'],
    ['10', 'unknown'],
  ])('%s of which was entered since leaves ours %s', async (entered, status) => {
    const payment = await lab.open()
    await lab.notifyUndocumented(payment)
    await lab.passShowing(payment, entered)
    await enterGrowth(payment)
    await lab.fault('reset')
    const refundId = await lab.send(payment, '30')
    await lab.passShowing(payment, String(Number(entered) + 30))
    expect(await lab.status(refundId)).toBe(status)
  })

  it.each([
    ['a second refund', 'unknown', 'portal-2'],
    ['the same, told again in other words', 'succeeded', 'portal-1'],
  ])('is not explained twice by what was entered: with %s ours is %s', async (_, status, id) => {
    const payment = await lab.open()
    await lab.notifyUndocumented(payment)
    await lab.notifyUndocumented(payment, id, 'api')
    await lab.passShowing(payment, '30')
    await enterGrowth(payment)
    await lab.fault('reset')
    const refundId = await lab.send(payment, '30')
    await lab.passShowing(payment, '60')
    expect(await lab.status(refundId)).toBe(status)
  })
})

it.each([
  ['never_happened', '30', 409],
  ['never_happened', '0', 200],
  ['matched', '30', 409],
])(
  'an external refund whose success and failure were both notified %s of it, with growth of %s, leads to %d without againstEvidence',
  async (outcome, growth, status) => {
    const payment = await lab.open()
    await lab.passNotified(payment, 'portal-1', '30')
    await lab.passNotified(payment, 'portal-1', '30', { code: 33 })
    await lab.passShowing(payment, growth)
    const [one] = await lab.external(payment)
    expect(one?.state).toBe('reserved')
    const response = await operator.decideExternal(one?.id ?? '', outcome)
    expect(response.status).toBe(status)
  },
)
