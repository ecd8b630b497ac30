import type { BrowserContext, Page } from 'playwright-core'
import { afterEach, expect, it } from 'vitest'
import { findText, type Language, type TextKey } from '../../../src/console/texts/text.ts'
import { RECEIVER, seedPaid } from '../../support/ask.ts'
import { describeInBrowser, openProfile, openSessionIn, openTab } from '../../support/browser.ts'
import { addVisitor } from '../../support/console.ts'
import { emptyTables } from '../../support/database.ts'
import { payOrder } from '../../support/orders.ts'
import { refundPathOf } from '../../support/refund-form.ts'
import { useRefundLab } from '../../support/use-started.ts'

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
/** Waits until the page shows a text: a click does not wait for the page it leads to. */
const see = async (page: Page, text: string | RegExp) =>
  await page.getByRole('main').getByText(text).first().waitFor()
const readMain = async (page: Page) => await page.getByRole('main').innerText()
/** Fills in a part to refund, and previews it. */
async function preparePart(page: Page, amount: string) {
  await page.getByLabel('A part', { exact: true }).check()
  await page.getByLabel('Amount of the part').fill(amount)
  await page.getByLabel('Reason', { exact: true }).selectOption('Paid twice')
  await press(page, 'Preview')
  await page.getByRole('button', { name: 'Confirm refund' }).waitFor()
}

/** @param script whether scripts run in the browser */
export function playRefundFormStories(script: boolean): void {
  describeInBrowser('the form of a refund', () => {
    const lab = useRefundLab()
    afterEach(() => emptyTables(lab.database))

    /** Opens a browser in which an agent is signed in. */
    async function openAgent(language: Language = 'en') {
      const agent = await addVisitor(lab.database, { roles: ['agent'], language })
      const context = await openProfile({ script })
      await openSessionIn(context, lab.service.url, agent)
      return { agent, context }
    }

    const openPage = (context: BrowserContext, path: string) =>
      openTab(context, lab.service.url, path)

    const listRefunds = async () =>
      await lab.database.sql<{ id: string; amount: string; by: string }[]>`
    select refund_id as id, amount, requested_by as by from refunds order by requested_at`

    it.each<Language>(['en', 'vi'])(
      'what was paid twice is found by its order three hours after the sign-in, refunded, and seen to arrive, in %s',
      async (language) => {
        const say = (key: TextKey, values = {}) => findText(language, key, values) ?? ''
        const amount = language === 'vi' ? '150.000 VND' : '150,000 VND'
        const first = await payOrder(lab, 'DH77', [{ amount: '150000' }])
        const second = await payOrder(lab, 'DH77', [{ amount: '150000' }])
        const { agent, context } = await openAgent(language)
        await lab.database.sql`
          update sessions set signed_in_at = now() - interval '3 hours' where person_id = ${agent.personId}`
        const { page, problems } = await openPage(context, '/console')
        await page.locator('input[name=q]').fill('DH77')
        await page.locator('input[name=q]').press('Enter')
        await page.getByRole('link', { name: second.transactionId, exact: true }).click()
        await page.waitForURL(/\/console\/transactions\//)
        await see(page, say('story.headline.orderPaidTwice', { paid: amount }))
        await page.getByRole('link', { name: say('story.actions.surplus') }).click()
        await see(page, say('refundForm.surplus.card'))
        const counted = say('refundForm.surplus.countedOf', { orderId: 'DH77' })
        expect(await readMain(page)).toContain(counted)
        const reason = say('reasons.default.4')
        await page.getByLabel(say('field.reason'), { exact: true }).selectOption({ label: reason })
        await press(page, say('refundForm.form.preview'))
        const to = say('refundForm.preview.backToPayer')
        await see(page, say('refundForm.preview.sentence', { amount, to }))
        expect(await readMain(page)).toContain(reason)
        await press(page, say('refundForm.preview.confirm'))
        await see(page, say('notice.refundRequested'))
        const [refund, ...more] = await listRefunds()
        expect(more).toEqual([])
        expect(refund).toMatchObject({ amount: '150000', by: agent.name })
        const [other, refunded] = [first, second].map(({ payments: [payment] }) => payment)
        if (!other || !refunded) throw new Error('no payments')
        // Before it is sent, the other transaction of the order is asked about.
        for (const payment of [refunded, other, refunded]) await lab.pass(payment)
        await lab.settle(refund?.id ?? '')
        await lab.pass(refunded)
        await page.reload()
        const shown = await page.locator(`#refund-${refund?.id}`).innerText()
        expect(shown).toContain(say('states.refund.succeeded'))
        expect(shown).toContain(reason)
        expect(await lab.moved(refunded.id)).toEqual(['150000'])
        expect(problems).toEqual([])
      },
    )

    it('two tabs, a double click, a reload and the back button make one refund', async () => {
      const paid = await seedPaid(lab.database)
      const { context } = await openAgent()
      const first = await openPage(context, refundPathOf(paid))
      const second = await openPage(context, refundPathOf(paid))
      await preparePart(first.page, '30')
      await preparePart(second.page, '40')
      await first.page.getByRole('button', { name: 'Confirm refund' }).dblclick()
      await see(first.page, /Refund requested\.|This refund was already requested/)
      // The other tab was opened before.
      await press(second.page, 'Confirm refund')
      await see(second.page, 'Nothing was refunded: something changed after you opened the form.')
      await second.page.locator('tr', { hasText: '30 CLF' }).getByText('New').waitFor()
      expect(await second.page.getByLabel('Amount of the part').inputValue()).toBe('40')
      expect((await listRefunds()).map(({ amount }) => amount)).toEqual(['30'])
      // The new form of the other tab is good for the second refund.
      await press(second.page, 'Preview')
      await press(second.page, 'Confirm refund')
      await second.page.waitForURL(/#refund-/)
      // Back leads to what was checked, and a reload of it asks nothing: confirmed again, it leads to its refund.
      await second.page.goBack()
      await second.page.reload()
      await see(
        second.page,
        'Something changed after you opened the form, or this refund was requested already.',
      )
      await press(second.page, 'Confirm refund')
      await see(second.page, 'This refund was already requested')
      expect((await listRefunds()).map(({ amount }) => amount)).toEqual(['30', '40'])
      expect([...first.problems, ...second.problems]).toEqual([])
    })

    it('Back shows what was typed, but the account that receives the refund is asked for again', async () => {
      const paid = await seedPaid(lab.database, { paymentMethod: 'QR' })
      const { context } = await openAgent()
      const { page, problems } = await openPage(context, refundPathOf(paid))
      for (const [name, value] of Object.entries(RECEIVER)) {
        await page.locator(`[name=${name}]`).fill(value)
      }
      await preparePart(page, '30')
      await page.goBack()
      const amount = page.getByLabel('Amount of the part')
      await amount.waitFor()
      // Without a script no browser gives back what it is told not to remember.
      expect(await amount.inputValue()).toBe(script ? '30' : '')
      for (const name of Object.keys(RECEIVER)) {
        expect(await page.locator(`[name=${name}]`).inputValue()).toBe('')
      }
      const kept = JSON.stringify(await page.evaluate<unknown>('history.state'))
      for (const value of Object.values(RECEIVER)) expect(kept).not.toContain(value)
      await press(page, 'Preview')
      for (const name of Object.keys(RECEIVER)) await page.locator(`#${name}-problem`).waitFor()
      expect(problems).toEqual([])
    })

    it('what was typed wrongly is said where the focus is', async () => {
      const paid = await seedPaid(lab.database)
      const { context } = await openAgent()
      const { page } = await openPage(context, refundPathOf(paid))
      await page.getByLabel('A part', { exact: true }).check()
      await page.getByLabel('Amount of the part').fill('1,00,0')
      await press(page, 'Preview')
      await page.locator('#amount-problem').waitFor()
      const focused = page.locator(':focus')
      expect(await focused.getAttribute('name')).toBe('amount')
      expect(await focused.getAttribute('aria-invalid')).toBe('true')
      expect(await page.locator('#amount-problem').innerText()).toContain(
        'Write an amount above zero',
      )
    })
  })
}
