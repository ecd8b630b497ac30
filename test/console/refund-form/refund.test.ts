import { beforeEach, describe, expect, it } from 'vitest'
import {
  ask,
  countRows,
  findInTables,
  RECEIVER,
  seedCurrency,
  seedPaid,
} from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { findForm, readProblems, readText } from '../../support/forms.ts'
import {
  ALL,
  openRefundForm,
  PART,
  prepareRefund,
  previewForm,
  readConfirmed,
  refundPathOf,
  sendForm,
  useClerk,
} from '../../support/refund-form.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundRig } from '../../support/use-started.ts'

const rig = useRefundRig({ settings: { ROLE: 'web', REFUND_APPROVAL_ABOVE: 'CLF:500' } })
const agent = useClerk(rig, 'agent', { name: 'Linh' })
beforeEach(() => emptyTables(rig.database))

const QR = { paymentMethod: 'QR' }
const listRefunds = async () =>
  await rig.database.sql`
    select amount, reason, status, requested_by as by, on_behalf_of as "for" from refunds`

describe('the form of a payment', () => {
  it('offers all that is left first, and asks for a receiver only where one is needed', async () => {
    const paid = await seedPaid(rig.database)
    const { shown, fields, buttons } = await openRefundForm(agent, refundPathOf(paid))
    expect(shown).toEqual(['amountKind', 'amount', 'reasonText', 'reason'])
    expect(fields).toMatchObject({ amountKind: 'all', amount: '', reason: '', reasonText: '' })
    expect(buttons).toEqual(['Preview'])
    const scanned = await seedPaid(rig.database, QR)
    const asked = await openRefundForm(agent, refundPathOf(scanned))
    expect(asked.shown).toEqual([
      'amountKind',
      'amount',
      'accountName',
      'accountNumber',
      'swiftCode',
      'reasonText',
      'reason',
    ])
  })

  it('shows what was paid, what is left, and the refunds so far', async () => {
    const paid = await seedPaid(rig.database, { amount: '1000' })
    await seedCurrency(rig.database, paid.transactionId, 'CLF')
    await ask({ url: rig.service.url }, paid.id, { amount: '250.5' })
    const text = readText(await agent.read(refundPathOf(paid)))
    expect(text).toContain('Paid 1,000 CLF')
    expect(text).toContain('Can still be refunded 749.5 CLF')
    expect(text).toContain('All that is left: 749.5 CLF')
    expect(text).toMatch(/250\.5 CLF Waiting to be sent first/)
  })

  it.each([
    ['that failed', { status: 'FAILED' }, 'Its status is: Failed'],
    ['that is listed no longer', { missing: true }, 'no longer lists it'],
    ['that cannot be read', { unreadable: true }, 'values that cannot be read'],
    ['of which nothing is left', { refundedAmount: '100' }, 'Nothing is left to refund'],
  ])('%s explains why there is nothing to fill in', async (_, more, words) => {
    const paid = await seedPaid(rig.database, more)
    const html = await agent.read(refundPathOf(paid))
    expect(readText(html)).toContain(words)
    expect(() => findForm(html, 'Preview')).toThrow('no form')
  })
})

describe('a refund in three steps', () => {
  it('of a part: the preview stores nothing, the confirmation leads to its story', async () => {
    const paid = await seedPaid(rig.database)
    await seedCurrency(rig.database, paid.transactionId, 'CLF')
    const before = await countRows(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid), {
      ...PART,
      reasonText: 'at the till',
    })
    expect(await countRows(rig.database)).toEqual(before)
    expect(preview.text).toContain('30 CLF is sent back to where the payment came from.')
    expect(preview.text).toContain('Left to refund after it 70 CLF')
    expect(preview.text).toContain('Reason Paid twice: at the till')
    expect(preview.text).toContain('Not needed.')
    const { refundId, notice } = readConfirmed(await sendForm(agent, preview))
    expect(notice).toBe('refundRequested')
    const reason = 'Paid twice: at the till'
    const stored = { amount: '30', reason, status: 'pending', by: 'Linh', for: null }
    expect(await listRefunds()).toEqual([stored])
    expect((await rig.readRefund(refundId)).paymentId).toBe(paid.id)
  })

  it('of all that is left, which the preview names', async () => {
    const paid = await seedPaid(rig.database, { refundedAmount: '0.25' })
    const preview = await prepareRefund(agent, refundPathOf(paid), ALL)
    expect(preview.text).toContain('99.75 CLF is sent')
    expect(preview.text).toContain('Left to refund after it 0')
    readConfirmed(await sendForm(agent, preview))
    expect(await listRefunds()).toMatchObject([{ amount: '99.75' }])
  })

  it('to a bank account, whose number is whole while it is checked, and masked once it is stored', async () => {
    const paid = await seedPaid(rig.database, QR)
    const preview = await prepareRefund(agent, refundPathOf(paid), { ...ALL, ...RECEIVER })
    expect(preview.text).toContain('to NGUYEN VAN A, account 123456789 at ASCBVNVX')
    const { refundId } = readConfirmed(await sendForm(agent, preview))
    expect((await rig.readRefund(refundId)).receiver?.accountNumber).toBe('•••• 6789')
    expect(await findInTables(rig.database, RECEIVER.accountNumber)).toEqual([])
  })

  it('to an unusual account is previewed with what to check', async () => {
    const paid = await seedPaid(rig.database, QR)
    const odd = { accountName: 'A', accountNumber: '12-34', swiftCode: 'my bank' }
    const { text } = await prepareRefund(agent, refundPathOf(paid), { ...ALL, ...odd })
    expect(text).toContain('The account number is unusual')
    expect(text).toContain('The SWIFT/BIC code is unusual')
  })

  it('above the limit is previewed, and requested, as one that a second person approves', async () => {
    const paid = await seedPaid(rig.database, { amount: '501' })
    const preview = await prepareRefund(agent, refundPathOf(paid), ALL)
    expect(preview.text).toContain('Has to approve it.')
    const { notice } = readConfirmed(await sendForm(agent, preview))
    expect(notice).toBe('refundAwaiting')
    expect(await listRefunds()).toMatchObject([{ status: 'awaiting_approval' }])
  })

  it('can be changed after the preview, with everything still filled in', async () => {
    const paid = await seedPaid(rig.database, QR)
    const typed = { ...PART, ...RECEIVER, reasonText: 'at the till' }
    const preview = await prepareRefund(agent, refundPathOf(paid), typed)
    const change = /<a class="button quiet" href="([^"]*)">Change/.exec(preview.html)?.[1] ?? ''
    const again = findForm(await agent.read(change), 'Preview')
    expect(again.fields).toMatchObject(typed)
    const other = await previewForm(agent, again, { amount: '40' })
    readConfirmed(await sendForm(agent, other))
    expect(await listRefunds()).toMatchObject([{ amount: '40' }])
  })

  it('is confirmed only as it was checked', async () => {
    const paid = await seedPaid(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid))
    const { check = '' } = preview.fields
    const middle = check.length >> 1
    const changed =
      check.slice(0, middle) + (check[middle] === 'A' ? 'B' : 'A') + check.slice(middle + 1)
    for (const wrong of ['', 'x', changed, `${check}x`]) {
      const response = await sendForm(agent, preview, { check: wrong })
      expect(readText(await response.text())).toContain('This form can no longer be used')
    }
    // Other values beside it change nothing.
    readConfirmed(await sendForm(agent, preview, { amount: '99', amountKind: 'all' }))
    expect(await listRefunds()).toMatchObject([{ amount: '30' }])
  })

  it('does not depend on the list of reasons once it was previewed', async () => {
    const paid = await seedPaid(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid))
    await rig.database.sql`
      update merchant_accounts set refund_reasons = '{Only this}'
      where merchant_code = ${MERCHANT.merchantCode}`
    readConfirmed(await sendForm(agent, preview))
    const { options } = await openRefundForm(agent, refundPathOf(paid))
    expect(options.reason).toEqual(['', 'Only this', 'other'])
    await rig.database.sql`update merchant_accounts set refund_reasons = '{}'`
  })
})

describe('a form that is not filled in', () => {
  it('comes back with each problem beside its field, the values, and the focus on the first', async () => {
    const paid = await seedPaid(rig.database, QR)
    const form = await openRefundForm(agent, refundPathOf(paid))
    const typed = { amountKind: 'part', amount: '1,00,0', accountNumber: '123456789' }
    const response = await sendForm(agent, form, typed)
    const html = await response.text()
    expect(response.status).toBe(200)
    const problems = readProblems(html)
    expect(Object.keys(problems).sort()).toEqual(['accountName', 'amount', 'reason', 'swiftCode'])
    expect(problems.amount).toContain('Write an amount above zero')
    expect(findForm(html, 'Preview').fields).toMatchObject(typed)
    // A browser focuses the first of several.
    const [focused] = /<[^>]* autofocus[^>]*>/.exec(html) ?? []
    expect(focused).toContain('name="amount"')
    expect(html).toMatch(/name="amount"[^>]*aria-describedby="amount-hint amount-problem"/)
    expect((await listRefunds()).length).toBe(0)
  })

  it('never runs what somebody has typed', async () => {
    const script = '"><script>alert(1)</script>'
    const path = refundPathOf(await seedPaid(rig.database, QR))
    const typed = { amountKind: script, amount: script, reason: script, reasonText: script }
    const form = await openRefundForm(agent, path)
    const html = await (await sendForm(agent, form, { ...typed, accountName: script })).text()
    expect(html).not.toContain('<script>alert')
    expect(findForm(html, 'Preview').fields.accountName).toBe(script)
    const valid = { ...ALL, ...RECEIVER, accountName: script, reasonText: script }
    expect((await prepareRefund(agent, path, valid)).html).not.toContain('<script>alert')
  })
})
