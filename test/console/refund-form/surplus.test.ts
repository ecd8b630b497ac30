import { afterEach, describe, expect, it } from 'vitest'
import { storyPath } from '../../../src/console/paths.ts'
import { ask, countRows, expectTaken, RECEIVER } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { findForm, readProblems, readText } from '../../support/forms.ts'
import { payOrder } from '../../support/orders.ts'
import {
  ALL,
  openRefundForm,
  prepareRefund,
  previewForm,
  readConfirmed,
  sendForm,
  surplusPathOf,
  useClerk,
} from '../../support/refund-form.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()
afterEach(() => emptyTables(lab.database))
const agent = useClerk(lab, 'agent', { name: 'Linh' })

const listRefunds = async () =>
  await lab.database.sql`
    select payment_id as "paymentId", amount, reason, surplus, requested_by as by from refunds`

describe('the form of what was paid twice', () => {
  it('shows which payments of which order count, what is kept, and what is refunded', async () => {
    const first = await payOrder(lab, 'DH1', [{ amount: '150000' }])
    const second = await payOrder(lab, 'DH1', [{ amount: '150000' }])
    const html = await agent.read(surplusPathOf(second))
    const text = readText(html)
    expect(text).toContain('Payments that count for order DH1')
    for (const { transactionId, payments } of [first, second]) {
      expect(text).toContain(`${transactionId} ${payments[0]?.id} 150,000 VND 150,000 VND`)
    }
    expect(text).toContain('Kept: one success of the order 150,000 VND')
    expect(text).toContain('Paid beyond it 150,000 VND')
    expect(text).toContain(`This refund is of payment ${second.payments[0]?.id}`)
    expect(findForm(html, 'Preview').shown).toEqual([
      'amountKind',
      'amount',
      'reasonText',
      'reason',
    ])
  })

  it('is the next step of each transaction of the order, until it is asked for', async () => {
    const first = await payOrder(lab, 'DH1', [{ amount: '150000' }])
    const second = await payOrder(lab, 'DH1', [{ amount: '150000' }])
    const readStory = async ({ transactionId }: typeof first) =>
      readText(await agent.read(storyPath({ merchantCode: MERCHANT.merchantCode, transactionId })))
    for (const order of [first, second]) {
      await expect
        .poll(async () => await readStory(order))
        .toContain('The order was paid twice, 150,000 VND of it here')
      expect(await readStory(order)).toContain(
        'What happens next Refund the surplus, after asking the customer.',
      )
    }
    const list = await agent.read('/console/transactions')
    expect(list.match(/class="badge \w+">[^<]+/g)).toEqual(
      Array(2).fill('class="badge warn">Paid twice'),
    )
    await expectTaken(
      await ask({ url: lab.service.url }, second.payments[0]?.id ?? '', { amount: '150000' }),
    )
    expect(await readStory(first)).not.toContain('after asking the customer')
  })

  it('explains why there is nothing to fill in', async () => {
    const once = await payOrder(lab, 'DH1')
    const failed = await payOrder(lab, 'DH2', [{ status: 'FAILED' }])
    const html = await agent.read(surplusPathOf(once))
    expect(readText(html)).toContain('Nothing was paid twice here')
    expect(() => findForm(html, 'Preview')).toThrow('no form')
    expect(readText(await agent.read(surplusPathOf(failed)))).toContain('No payment of this')
  })

  it('says what is left for another refund', async () => {
    const paid = [{ amount: '100' }, { amount: '100' }, { amount: '50' }]
    const order = await payOrder(lab, 'DH1', paid)
    expect(readText(await agent.read(surplusPathOf(order)))).toContain(
      'Another 50 VND is left then',
    )
  })
})

it('lists at most 50 payments, and counts them all', async () => {
  const order = await payOrder(lab, 'DH1', Array(53).fill({ amount: '10' }))
  const text = readText(await agent.read(surplusPathOf(order)))
  expect(text).toContain('3 more payments count, which are not listed here.')
  expect(text).toContain('Paid beyond it 520 VND')
})

it('is a task of an agent, one of each order, until it is being refunded', async () => {
  await payOrder(lab, 'DH1', [{ amount: '150000' }])
  const { payments } = await payOrder(lab, 'DH1', [{ amount: '150000' }])
  const tasks = async () => readText(await agent.read('/console/tasks?section=paidTwice'))
  await expect.poll(tasks).toMatch(/DH1 \S+ 150,000 VND /)
  expect(await tasks()).toContain('Orders paid twice 1 ')
  const { url } = lab.service
  await expectTaken(await ask({ url }, payments[0]?.id ?? '', { amount: '150000' }))
  expect(await tasks()).toMatch(/DH1 \S+ Refunded, or being refunded /)
})

describe('a refund of what was paid twice', () => {
  const payTwice = async (method = 'CC') => {
    const twice = [{ paymentMethod: method }, { paymentMethod: method }]
    return await payOrder(lab, 'DH1', twice)
  }

  it('is previewed, confirmed, and stored as a surplus refund of the person', async () => {
    const order = await payTwice()
    const before = await countRows(lab.database)
    const preview = await prepareRefund(agent, surplusPathOf(order), ALL)
    expect(await countRows(lab.database)).toEqual(before)
    const paymentId = order.payments[1]?.id ?? ''
    expect(preview.text).toContain('100 VND is sent back to where the payment came from.')
    expect(preview.text).toContain(`Of payment ${paymentId}`)
    const { refundId, notice } = readConfirmed(await sendForm(agent, preview))
    expect(notice).toBe('refundRequested')
    const stored = { paymentId, amount: '100', reason: 'Paid twice', surplus: true, by: 'Linh' }
    expect(await listRefunds()).toEqual([stored])
    const { sql } = lab.database
    const [entry] = await sql`
      select actor, operation from audit_entries where object_id = ${refundId}`
    const operation = 'POST /console/transactions/{merchant}/{id}/surplus'
    expect(entry).toEqual({ actor: 'Linh', operation })
    const [change] = await sql`select cause from changes where refund_id = ${refundId}`
    expect(change?.cause).toBe('what was paid beyond one success, requested by Linh: Paid twice')
  })

  it('of a payment by QR code asks for the receiver', async () => {
    const order = await payTwice('QR')
    const form = await openRefundForm(agent, surplusPathOf(order))
    const response = await sendForm(agent, form, ALL)
    const problems = readProblems(await response.text())
    expect(Object.keys(problems)).toEqual(['accountName', 'accountNumber', 'swiftCode'])
    const preview = await previewForm(agent, form, { ...ALL, ...RECEIVER })
    expect(preview.text).toContain('account 123456789')
    readConfirmed(await sendForm(agent, preview))
  })

  it('shown before another refund of the order is refused with what happened', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    const preview = await prepareRefund(agent, surplusPathOf(second), ALL)
    const { id = '' } = first.payments[0] ?? {}
    await expectTaken(await ask({ url: lab.service.url }, id, { amount: '100' }))
    const response = await sendForm(agent, preview)
    const text = readText(await response.text())
    expect(response.status).toBe(200)
    expect(text).toContain('something changed after you opened the form')
    expect(text).toMatch(/Refunds so far .* 100 VND \S[^.]* New first/)
    expect(await listRefunds()).toHaveLength(1)
  })
})
