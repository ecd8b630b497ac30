import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Config } from '../../../src/config/config.ts'
import { previewRefund } from '../../../src/refunds/request.ts'
import { findPersonAccess } from '../../support/access.ts'
import { expectTaken, seedCurrency } from '../../support/ask.ts'
import { addVisitor, type Visitor } from '../../support/console.ts'
import { atOnce } from '../../support/locks.ts'
import { askSurplus, payOrder } from '../../support/orders.ts'
import { done, usePerson } from '../../support/people.ts'
import { MERCHANT } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()

const [asker, approver] = [usePerson(lab), usePerson(lab)]
let visitor: Visitor
beforeEach(async () => {
  visitor = await addVisitor(lab.database, { roles: ['agent'] })
})

const approveAbove = (...thresholds: Config['REFUND_APPROVAL_ABOVE']) => {
  lab.service.ctx.config.REFUND_APPROVAL_ABOVE = thresholds
}

/** A transaction whose verified notifications name these currencies, with paid payments. */
async function open(amounts: readonly string[], ...currencies: readonly string[]) {
  const transactionId = `T-${randomUUID()}`
  const payments = amounts.map((amount) => {
    return { id: `P-${randomUUID()}`, amount, paymentMethod: 'CC', status: 'SUCCESS' }
  })
  await lab.control('POST', '/transactions', { transactionId, payments, ipn: false })
  await lab.database.sql`
    insert into transactions (merchant_code, transaction_id)
    values (${MERCHANT.merchantCode}, ${transactionId})`
  await lab.pass({ id: '', transactionId })
  for (const currency of currencies) await seedCurrency(lab.database, transactionId, currency)
  return { transactionId, ids: payments.map(({ id }) => id) }
}

const request = (paymentId = '', amount: string) =>
  asker.ask({ id: paymentId, transactionId: '' }, amount)

const statusOf = async (paymentId: string | undefined, amount: string) =>
  await lab.status(await request(paymentId, amount))

/** What the dry run says about the approval, as the console shows it. */
async function previewNeed(paymentId: string | undefined, amount: string): Promise<boolean> {
  const merchants = [MERCHANT.merchantCode]
  const access = await findPersonAccess(lab, visitor.token)
  const params = { paymentId: paymentId ?? '', amount, receiver: undefined, reason: undefined }
  return (await previewRefund(lab.service.ctx, access, merchants, params)).needsApproval
}

it.each([
  ['USD', '71'],
  [' vnd ', '51'],
])('a verified currency spelt %j has a threshold of its own', async (currency, above) => {
  approveAbove({ currency: 'VND', amount: '50' }, { currency: 'USD', amount: '70' })
  const { ids } = await open(['100'], currency)
  expect(await statusOf(ids[0], String(Number(above) - 1))).toBe('pending')
  expect(await statusOf(ids[0], '1')).toBe('awaiting_approval')
})

describe('the approval fails closed', () => {
  it('with VND:500, a refund of 100,000 USD awaits approval, and its dry run says so', async () => {
    approveAbove({ currency: 'VND', amount: '500' })
    const { ids } = await open(['100000'], 'USD')
    expect(await previewNeed(ids[0], '100000')).toBe(true)
    expect(await statusOf(ids[0], '100000')).toBe('awaiting_approval')
  })

  it('a currency that the setting does not list needs approval for any amount', async () => {
    approveAbove({ currency: 'VND', amount: '500' }, { currency: 'USD', amount: '70' })
    const { ids } = await open(['100'], 'EUR')
    expect(await statusOf(ids[0], '0.01')).toBe('awaiting_approval')
  })

  it.each([
    ['none', []],
    ['several', ['VND', 'USD']],
    ['no code of three letters', ['dong']],
  ])('with %s as its verified currency any amount needs approval', async (_, currencies) => {
    approveAbove({ currency: 'VND', amount: '500' }, { currency: 'USD', amount: '500' })
    const { ids } = await open(['100'], ...currencies)
    expect(await statusOf(ids[0], '1')).toBe('awaiting_approval')
  })

  it('a currency that only unverified notifications name is none', async () => {
    approveAbove({ currency: 'VND', amount: '500' })
    const { ids, transactionId } = await open(['100', '100'])
    await seedCurrency(lab.database, transactionId, 'VND', { verdict: 'missing' })
    await seedCurrency(lab.database, transactionId, 'VND', { isOther: true })
    expect(await statusOf(ids[0], '1')).toBe('awaiting_approval')
  })

  it('without the setting nothing needs approval', async () => {
    approveAbove()
    const { ids } = await open(['100000'])
    expect(await previewNeed(ids[0], '100000')).toBe(false)
    expect(await statusOf(ids[0], '100000')).toBe('pending')
  })
})

describe('refunds of one transaction count together', () => {
  beforeEach(() => approveAbove({ currency: 'VND', amount: '100' }))

  it('3 x 50 of three payments: the third is above a limit of 100', async () => {
    const { ids } = await open(['50', '50', '50'], 'VND')
    expect(await statusOf(ids[0], '50')).toBe('pending')
    expect(await statusOf(ids[1], '50')).toBe('pending')
    expect(await previewNeed(ids[2], '50')).toBe(true)
    expect(await statusOf(ids[2], '50')).toBe('awaiting_approval')
  })

  it('3 x 50 of one payment: the third is above a limit of 100', async () => {
    const { ids } = await open(['200'], 'VND')
    const statuses = [
      await statusOf(ids[0], '50'),
      await statusOf(ids[0], '50'),
      await statusOf(ids[0], '50'),
    ]
    expect(statuses).toEqual(['pending', 'pending', 'awaiting_approval'])
  })

  it('two at once, of two payments, do not both slip under it', async () => {
    const { ids, transactionId } = await open(['60', '60'], 'VND')
    const taken = await atOnce(
      lab.database,
      (held) => held`select from transactions where transaction_id = ${transactionId} for update`,
      ids.map((id) => () => request(id, '60')),
    )
    const statuses = await Promise.all(taken.map(lab.status))
    expect(statuses.toSorted()).toEqual(['awaiting_approval', 'pending'])
  })

  it('one that failed does not count, one that came back does', async () => {
    const { ids } = await open(['100', '100'], 'VND')
    const first = await request(ids[0], '60')
    const end = (status: string) => {
      const why = status === 'failed' ? 'declined' : null
      return lab.database.sql`
        update refunds set status = ${status}, due_at = null, failure_source = ${why && 'merchant'},
          failure_reason = ${why}, failure_message = ${why},
          resolution = ${JSON.stringify({ outcome: status })}::text::jsonb
        where refund_id = ${first}`
    }
    await end('failed')
    expect(await previewNeed(ids[1], '60')).toBe(false)
    await end('returned')
    expect(await previewNeed(ids[1], '60')).toBe(true)
  })

  it('those of another transaction do not count', async () => {
    const [one, other] = [await open(['100'], 'VND'), await open(['100'], 'VND')]
    expect(await statusOf(one.ids[0], '100')).toBe('pending')
    expect(await statusOf(other.ids[0], '100')).toBe('pending')
  })

  it('surplus refunds obey the same rule', async () => {
    const paid = [{ amount: '100' }, { amount: '100' }, { amount: '100' }]
    const { transactionId } = await payOrder(lab, 'DH1', paid)
    const askFor = async (amount: string) =>
      (await expectTaken(await askSurplus(lab, transactionId, { amount }))).status
    expect(await askFor('60')).toBe('pending')
    expect(await askFor('60')).toBe('awaiting_approval')
  })
})

it('a currency counts as verified only while it is that of the transaction, also once the other one is deleted', async () => {
  approveAbove({ currency: 'VND', amount: '50' }, { currency: 'USD', amount: '70' })
  const { transactionId, ids } = await open(['100'], 'VND')
  await lab.database.sql`
    update transactions set currency = 'USD', order_verified = true
    where transaction_id = ${transactionId}`
  expect(await statusOf(ids[0], '10')).toBe('awaiting_approval')
})

it('a refund fails unsent when a verified notification names another currency than it was judged by', async () => {
  approveAbove({ currency: 'VND', amount: '50' })
  const { transactionId, ids } = await open(['100'], 'VND')
  const id = await request(ids[0], '40')
  expect(await lab.status(id)).toBe('pending')
  await seedCurrency(lab.database, transactionId, 'USD')
  await lab.pass({ id: ids[0] ?? '', transactionId })
  expect((await lab.readRefund(id)).failure).toMatchObject({ code: 'currency_changed' })
  expect(await lab.sent(id)).toBe(0)
  // Asked for again, it waits for a second person.
  expect(await statusOf(ids[0], '40')).toBe('awaiting_approval')
})

/** A refund requested of a transaction that shows `vnd`, sent as soon as it may be. */
async function requestShown(isApproved: boolean, ...verified: readonly string[]) {
  approveAbove(...(isApproved ? [{ currency: 'VND', amount: '50' }] : []))
  const { transactionId, ids } = await open(['100'], ...verified)
  await lab.database.sql`
    update transactions set currency = ' vnd ' where transaction_id = ${transactionId}`
  const id = await request(ids[0], '40')
  if (isApproved) {
    const approved = await done(approver.approve(id))
    expect(approved).toMatchObject({ status: 'pending', currency: ' vnd ' })
  }
  const sendAfter = async (...named: readonly string[]) => {
    for (const currency of named) await seedCurrency(lab.database, transactionId, currency)
    await lab.pass({ id: ids[0] ?? '', transactionId })
    return [await lab.sent(id), (await lab.readRefund(id)).failure?.code]
  }
  return { sendAfter }
}

describe('a refund in a currency that nothing verifies', () => {
  it.each([
    ['approved', true],
    ['that needed no approval', false],
  ])('fails unsent once another is verified: one %s', async (_, isApproved) => {
    const { sendAfter } = await requestShown(isApproved)
    expect(await sendAfter('USD')).toEqual([0, 'currency_changed'])
  })

  it('is sent once that one is verified, and while none is', async () => {
    expect(await (await requestShown(true)).sendAfter('Vnd')).toEqual([1, undefined])
    expect(await (await requestShown(true)).sendAfter()).toEqual([1, undefined])
  })

  it('is sent as approved where notifications disagreed already', async () => {
    const { sendAfter } = await requestShown(true, 'VND', 'USD')
    expect(await sendAfter()).toEqual([1, undefined])
  })
})
