import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { explainRefundRefusal, readValues } from '../../../src/console/refund-fields.ts'
import type { RefundSubject } from '../../../src/console/refund-targets.tsx'
import { showTo } from '../../../src/console/view.ts'
import { DomainError, type RefusalCode } from '../../../src/errors.ts'
import { RECEIVER, seedPaid } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { findForm, readProblems, readText } from '../../support/forms.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import {
  ALL,
  act,
  type Clerk,
  openRefundForm,
  PART,
  prepareRefund,
  refundPathOf,
  sendForm,
  useClerk,
} from '../../support/refund-form.ts'
import { MERCHANT, startTestService } from '../../support/service.ts'
import { useRefundRig } from '../../support/use-started.ts'

const rig = useRefundRig({ settings: { ROLE: 'web' } })
const agent = useClerk(rig, 'agent', { name: 'Linh' })
beforeEach(() => emptyTables(rig.database))

const countRefunds = async () => (await rig.database.sql`select from refunds`).length
/** Sends a form for its preview and expects it back, filled in. */
async function expectRefused(person: Clerk, path: string, fields: Record<string, string>) {
  const form = await openRefundForm(person, path)
  const response = await sendForm(person, form, fields)
  const html = await response.text()
  expect({ status: response.status, text: readText(html) }).toMatchObject({ status: 200 })
  const again = findForm(html, 'Preview')
  expect(again.fields).toMatchObject({ ...fields, form: form.fields.form })
  expect(await countRefunds()).toBe(0)
  return { problems: readProblems(html), text: readText(html) }
}

describe('a refusal of the domain is explained, with everything still filled in:', () => {
  it.each([
    ['more than is left', '101', 'Only 100 VND is left to refund. Write that, or less.'],
    ['more decimals than the currency has', '1.5', 'VND does not have so many decimals.'],
  ])('%s, beside the amount', async (_, amount, problem) => {
    const paid = await seedPaid(rig.database)
    await rig.database.sql`update transactions set currency = 'VND'`
    const { problems } = await expectRefused(agent, refundPathOf(paid), { ...PART, amount })
    expect(problems).toEqual({ amount: problem })
  })

  it('more than is left, in the audit log once it was confirmed, and not while it was previewed', async () => {
    const paid = await seedPaid(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid))
    const { sql } = rig.database
    await sql`update payments set refunded_amount = 80 where payment_id = ${paid.id}`
    await sql`delete from audit_entries`
    const form = await openRefundForm(agent, refundPathOf(paid))
    await sendForm(agent, form, { ...PART, amount: '1,00,0' })
    await sendForm(agent, form, PART)
    expect(await sql`select from audit_entries`).toHaveLength(0)
    await sendForm(agent, preview)
    const operation = 'POST /console/payments/{merchant}/{id}/refund'
    const refused = { actor: 'Linh', operation, object: paid.id, outcome: 'exceeds_refundable' }
    const entries = await sql`
      select actor, operation, object_id as object, outcome from audit_entries`
    expect(entries).toEqual([refused])
  })

  it('a hold of the account, with its reason', async () => {
    const paid = await seedPaid(rig.database)
    await rig.hold(`merchant/${MERCHANT.merchantCode}`, 'disputed')
    const { text } = await expectRefused(agent, refundPathOf(paid), PART)
    expect(text).toMatch(/are held: disputed\. Ask an operator to release the hold/)
  })

  it('an unusual receiver, where the service is strict', async () => {
    const strict = await startTestService(rig.database, rig.sandbox.url, {
      settings: { ROLE: 'web', REFUND_RECEIVER_CHECK: 'strict' },
    })
    onTestFinished(() => strict.stop())
    const paid = await seedPaid(rig.database, { paymentMethod: 'QR' })
    const odd = { ...ALL, ...RECEIVER, accountNumber: '12-34', swiftCode: 'my bank' }
    const there = act({ service: strict }, agent)
    const { problems } = await expectRefused(there, refundPathOf(paid), odd)
    expect(Object.keys(problems)).toEqual(['accountNumber', 'swiftCode'])
  })

  it('a payment that has failed meanwhile, without a form to fill in', async () => {
    const paid = await seedPaid(rig.database)
    const form = await openRefundForm(agent, refundPathOf(paid))
    await rig.database.sql`update payments set status = 'FAILED'`
    const response = await sendForm(agent, form, PART)
    expect(response.status).toBe(200)
    expect(readText(await response.text())).toContain('Its status is: Failed.')
  })

  it('a payment that moves to another transaction at this moment, as not known', async () => {
    const paid = await seedPaid(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid))
    const response = await whileUncommitted(
      rig.database,
      async (held) => {
        await held`
          insert into transactions (merchant_code, transaction_id)
          values (${MERCHANT.merchantCode}, 'T-OTHER')`
        await held`
          select from transactions where transaction_id = ${paid.transactionId} for update`
        await held`update payments set transaction_id = 'T-OTHER' where payment_id = ${paid.id}`
      },
      async (commit) => {
        const sent = sendForm(agent, preview)
        await waitUntilBlocked(rig.database)
        await commit()
        return await sent
      },
    )
    expect(response.status).toBe(503)
    expect(await countRefunds()).toBe(0)
  })
})

describe('every refusal that a refund can get', () => {
  const subject: RefundSubject = {
    ...{ merchantCode: 'M', transactionId: 'T', paymentId: 'P', path: '/', title: '' },
    ...{ currency: 'VND', left: '70', needsReceiver: false, version: '', refunds: [] },
    ...{ obstacle: undefined, warnings: [], summary: '', target: { paymentId: 'P' } },
  }
  const explain = (code: RefusalCode, extra = {}, amountKind = 'part') => {
    const values = readValues({ amountKind })
    const error = new DomainError(code, 'as the API says it', { extra })
    return showTo({ language: 'en', zone: 'UTC' }, () =>
      explainRefundRefusal(error, subject, values),
    )
  }

  it.each([
    ['exceeds_refundable', { refundableAmount: '20' }, 'Only 20 VND is left'],
    ['refund_cap_exceeded', { leftToday: '5' }, '5 VND is left to you today'],
    ['refund_cap_exceeded', {}, 'at once'],
  ] as const)('%s %j stands beside the amount of a part', (code, extra, words) => {
    const explained = explain(code, extra)
    expect(explained?.problems?.amount).toContain(words)
    expect(explained?.alert).toBeUndefined()
    expect(explain(code, extra, 'all')).toEqual({ alert: expect.any(String) })
  })

  it.each([
    ['held', 'release the hold'],
    ['payment_not_refundable', 'cannot be refunded'],
    ['refunds_disabled', 'switched off'],
    ['merchant_not_found', 'no longer set up'],
    ['idempotency_key_reused', 'already used for another refund'],
  ] as const)('%s stands above the form', (code, words) => {
    expect(explain(code)).toEqual({ alert: expect.stringContaining(words) })
  })

  it('receiver_required stands beside each of its fields', () => {
    const names = Object.keys(explain('receiver_required')?.problems ?? {})
    expect(names).toEqual(['accountName', 'accountNumber', 'swiftCode'])
  })

  it.each(['unavailable', 'payment_not_found', 'unauthenticated'] as const)(
    '%s is not about the refund',
    (code) => {
      expect(explain(code)).toBeUndefined()
    },
  )
})
