import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ask, countRows, expectTaken, RECEIVER, seedPaid } from '../../support/ask.ts'
import { openTestSession } from '../../support/console.ts'
import { emptyTables } from '../../support/database.ts'
import { findForm, type PageForm, readText } from '../../support/forms.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import {
  ALL,
  act,
  enter,
  openRefundForm,
  PART,
  prepareRefund,
  previewForm,
  readConfirmed,
  refundPathOf,
  sendForm,
  useClerk,
} from '../../support/refund-form.ts'
import { useRefundRig } from '../../support/use-started.ts'

const rig = useRefundRig({ settings: { ROLE: 'web' } })
const agent = useClerk(rig, 'agent', { name: 'Linh' })
beforeEach(() => emptyTables(rig.database))

const listRefunds = async () =>
  await rig.database.sql<{ id: string; amount: string }[]>`
    select refund_id as id, amount from refunds order by requested_at`

/** Confirms several forms at once: all wait for the lock of the transaction, then go on. */
async function confirmTogether(transactionId: string, forms: readonly PageForm[]) {
  return await whileUncommitted(
    rig.database,
    (held) => held`select from transactions where transaction_id = ${transactionId} for update`,
    async (commit) => {
      const sent = forms.map((form) => sendForm(agent, form))
      await waitUntilBlocked(rig.database, sent.length)
      await commit()
      return await Promise.all(sent)
    },
  )
}

async function expectStale(response: Response) {
  const html = await response.text()
  const text = readText(html)
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  expect(text).toContain('Nothing was refunded: something changed after you opened the form.')
  return { html, text }
}

describe('the same form, confirmed again', () => {
  it('by a double click makes one refund, and both lead to it', async () => {
    const paid = await seedPaid(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid))
    const clicks = await confirmTogether(paid.transactionId, [preview, preview, preview])
    const confirmed = clicks.map(readConfirmed)
    const notices = confirmed.map(({ notice }) => notice).sort()
    expect(notices).toEqual(['refundRepeated', 'refundRepeated', 'refundRequested'])
    const [refund, ...more] = await listRefunds()
    expect(more).toEqual([])
    expect(confirmed.map(({ refundId }) => refundId)).toEqual(Array(3).fill(refund?.id))
  })

  it.each([
    ['as it was', async () => {}],
    [
      'after the refund has changed the payment',
      async (id: string) => {
        await rig.database.sql`update transactions set version = version + 5`
        await rig.database.sql`update payments set refunded_amount = 100 where payment_id = ${id}`
      },
    ],
    [
      'after the payment was held',
      async (id: string) => {
        await rig.database.sql`
          update payments set hold = '{"reason":"r","by":"b","since":"s"}' where payment_id = ${id}`
      },
    ],
    [
      'after the payment turned out as failed',
      async (id: string) => {
        await rig.database.sql`update payments set status = 'FAILED' where payment_id = ${id}`
      },
    ],
  ])('by a reload or the back button, %s, leads to its refund', async (_, change) => {
    const paid = await seedPaid(rig.database, { paymentMethod: 'QR' })
    const preview = await prepareRefund(agent, refundPathOf(paid), { ...ALL, ...RECEIVER })
    const first = readConfirmed(await sendForm(agent, preview))
    await change(paid.id)
    const before = await countRows(rig.database)
    const again = readConfirmed(await sendForm(agent, preview))
    expect(again).toEqual({ refundId: first.refundId, notice: 'refundRepeated' })
    expect(await countRows(rig.database)).toEqual(before)
  })

  it('in a second session of the same person leads to its refund', async () => {
    const paid = await seedPaid(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid))
    const first = readConfirmed(await sendForm(agent, preview))
    const token = await openTestSession(rig.database, agent.personId)
    const again = act(rig, { personId: agent.personId, name: agent.name, token })
    expect(readConfirmed(await sendForm(again, preview))).toEqual({
      ...first,
      notice: 'refundRepeated',
    })
  })

  it('after more than an hour leads to its refund', async () => {
    const paid = await seedPaid(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid))
    const first = readConfirmed(await sendForm(agent, preview))
    const late = vi.spyOn(rig.service.ctx, 'now').mockReturnValue(new Date(Date.now() + 3_601_000))
    const again = await sendForm(agent, preview)
    const opened = await agent.read(`${refundPathOf(paid)}?check=${preview.fields.check}`)
    late.mockRestore()
    expect(readText(opened)).toContain('This form was already used for a refund.')
    expect(readText(opened)).not.toContain('Nothing was refunded.')
    expect(opened).toContain(`#refund-${first.refundId}"`)
    expect(readConfirmed(again)).toEqual({ ...first, notice: 'refundRepeated' })
    expect(await listRefunds()).toHaveLength(1)
  })

  it('with another preview names the refund that it was used for, and makes none', async () => {
    const paid = await seedPaid(rig.database)
    const form = await openRefundForm(agent, refundPathOf(paid))
    const small = await previewForm(agent, form, PART)
    const large = await previewForm(agent, form, { ...PART, amount: '50' })
    const { refundId } = readConfirmed(await sendForm(agent, small))
    const response = await sendForm(agent, large)
    const html = await response.text()
    expect(response.status).toBe(200)
    expect(readText(html)).toContain('This form was already used for another refund.')
    expect(html).toContain(`#refund-${refundId}"`)
    // A new form stands there, with a key of its own and what was typed.
    const next = findForm(html, 'Preview')
    expect(next.fields).toMatchObject({ ...PART, amount: '50' })
    expect(next.fields.form).not.toBe(form.fields.form)
    expect(await listRefunds()).toHaveLength(1)
  })

  it('with another preview after more than an hour names the refund that it was used for, and makes none', async () => {
    const paid = await seedPaid(rig.database)
    const form = await openRefundForm(agent, refundPathOf(paid))
    const small = await previewForm(agent, form, PART)
    const large = await previewForm(agent, form, { ...PART, amount: '50' })
    const { refundId } = readConfirmed(await sendForm(agent, small))
    const late = vi.spyOn(rig.service.ctx, 'now').mockReturnValue(new Date(Date.now() + 3_601_000))
    const response = await sendForm(agent, large)
    const opened = await agent.read(`${refundPathOf(paid)}?check=${large.fields.check}`)
    late.mockRestore()
    expect(response.status).toBe(200)
    const html = await response.text()
    expect(readText(html)).toContain('This form was already used for another refund.')
    expect(readText(opened)).toContain('This form was already used for a refund.')
    for (const page of [html, opened]) {
      expect(page).toContain(`#refund-${refundId}"`)
      expect(readText(page)).not.toContain('This refund was already requested')
    }
    expect(findForm(html, 'Preview').fields).toMatchObject({ ...PART, amount: '50' })
    expect(await listRefunds()).toMatchObject([{ id: refundId }])
  })

  it('whose answer was lost with the database is filled in again, and makes one refund', async () => {
    const paid = await seedPaid(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid))
    const response = await whileUncommitted(
      rig.database,
      (held) =>
        held`select from transactions where transaction_id = ${paid.transactionId} for update`,
      async () => {
        const sent = sendForm(agent, preview)
        await waitUntilBlocked(rig.database)
        await rig.database.shutOut()
        return await sent
      },
    )
    await rig.database.letIn()
    expect(response.status).toBe(503)
    const [, back = ''] = /url=([^"]*)"/.exec(await response.text()) ?? []
    const html = await agent.read(back.replaceAll('&amp;', '&'))
    expect(readText(html)).toContain('It may have been carried out already')
    const form = findForm(html, 'Confirm refund')
    expect(form.fields.check).toBe(preview.fields.check)
    const first = readConfirmed(await sendForm(agent, form))
    const again = readConfirmed(await sendForm(agent, preview))
    expect(again).toEqual({ ...first, notice: 'refundRepeated' })
    expect(await listRefunds()).toHaveLength(1)
  })
})

describe('another form of the same payment', () => {
  it('that was shown before the refund is refused with what happened, and filled in anew', async () => {
    const paid = await seedPaid(rig.database)
    const other = await prepareRefund(agent, refundPathOf(paid), { ...PART, amount: '40' })
    const preview = await prepareRefund(agent, refundPathOf(paid))
    const { refundId } = readConfirmed(await sendForm(agent, preview))
    const { html, text } = await expectStale(await sendForm(agent, other))
    expect(text).toMatch(/30 CLF \S[^.]* New Linh/)
    expect(text).toContain('All that is left: 70 CLF')
    expect(html).toContain(`#refund-${refundId}"`)
    expect(await listRefunds()).toHaveLength(1)
    const next = findForm(html, 'Preview')
    expect(next.fields).toMatchObject({ ...PART, amount: '40' })
    readConfirmed(await sendForm(agent, await previewForm(agent, next, {})))
    expect((await listRefunds()).map((one) => one.amount)).toEqual(['30', '40'])
  })

  it('is refused already when it is previewed', async () => {
    const paid = await seedPaid(rig.database)
    const form = await openRefundForm(agent, refundPathOf(paid))
    await expectTaken(await ask({ url: rig.service.url }, paid.id, { amount: '100' }))
    const { html, text } = await expectStale(await sendForm(agent, form, PART))
    expect(text).toContain('Nothing is left to refund')
    expect(() => findForm(html, 'Preview')).toThrow('no form')
  })

  it('confirmed at the same time makes no second refund', async () => {
    const paid = await seedPaid(rig.database)
    const forms = [
      await prepareRefund(agent, refundPathOf(paid)),
      await prepareRefund(agent, refundPathOf(paid)),
    ]
    const ends = await confirmTogether(paid.transactionId, forms)
    expect(ends.map(({ status }) => status).sort()).toEqual([200, 303])
    expect(await listRefunds()).toHaveLength(1)
  })

  it.each([
    [
      'a hold',
      (id: string) => rig.hold(`payment/${id}`, 'disputed'),
      'Refunds of this payment are held: disputed.',
    ],
    [
      'a detail',
      async () => void (await rig.database.sql`update transactions set version = version + 1`),
      'All that is left: 100 CLF',
    ],
  ])('is refused after %s changed', async (_, change, words) => {
    const paid = await seedPaid(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid))
    await change(paid.id)
    const { text } = await expectStale(await sendForm(agent, preview))
    expect(text).toContain(words)
    expect(await listRefunds()).toEqual([])
  })
})

describe('a check of somebody or something else', () => {
  it('is refused, and makes no refund', async () => {
    const [paid, other] = [await seedPaid(rig.database), await seedPaid(rig.database)]
    const colleague = await enter(rig, 'agent')
    const theirs = await prepareRefund(colleague, refundPathOf(paid))
    const mine = await prepareRefund(agent, refundPathOf(other))
    const own = await openRefundForm(agent, refundPathOf(paid))
    for (const { check = '' } of [theirs.fields, mine.fields]) {
      const response = await sendForm(agent, own, { check })
      const opened = await agent.read(`${refundPathOf(paid)}?check=${check}`)
      for (const text of [readText(await response.text()), readText(opened)]) {
        expect(text).toContain('This form can no longer be used. If it was sent before')
        expect(text).not.toContain('Nothing was refunded')
      }
    }
    expect(await listRefunds()).toEqual([])
  })

  it('is too old after an hour', async () => {
    const paid = await seedPaid(rig.database)
    const preview = await prepareRefund(agent, refundPathOf(paid))
    const late = vi.spyOn(rig.service.ctx, 'now').mockReturnValue(new Date(Date.now() + 3_601_000))
    const response = await sendForm(agent, preview)
    const opened = await agent.read(`${refundPathOf(paid)}?check=${preview.fields.check}`)
    late.mockRestore()
    for (const text of [readText(await response.text()), readText(opened)])
      expect(text).toContain('This form can no longer be used. Nothing was refunded.')
    expect(await listRefunds()).toEqual([])
  })

  it('of the longest receiver and reason can be confirmed', async () => {
    const paid = await seedPaid(rig.database, { paymentMethod: 'QR' })
    const accountName = '漢'.repeat(140)
    const long = { accountName, accountNumber: accountName, swiftCode: accountName }
    const typed = { ...ALL, ...long, reasonText: '漢'.repeat(400) }
    const preview = await prepareRefund(agent, refundPathOf(paid), typed)
    readConfirmed(await sendForm(agent, preview))
  })
})
