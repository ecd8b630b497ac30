import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { RECEIVER } from '../../support/ask.ts'
import { describeInBrowser, openProfile, openSessionIn, openTab } from '../../support/browser.ts'
import { addVisitor } from '../../support/console.ts'
import { useRefundRig } from '../../support/use-started.ts'

/** @param script whether scripts run in the browser */
export function playCallStories(script: boolean): void {
  describeInBrowser('a call is answered', () => {
    const rig = useRefundRig()

    /** Opens a browser in which a viewer is signed in. */
    async function open(run: (page: Page) => Promise<void>): Promise<void> {
      const { url } = rig.service
      const context = await openProfile({ script })
      await openSessionIn(context, url, await addVisitor(rig.database))
      const { page, problems } = await openTab(context, url, '/console')
      await run(page)
      expect(problems).toEqual([])
    }

    async function search(page: Page, text: string): Promise<void> {
      await page.getByRole('searchbox').fill(text)
      await page.getByRole('button', { name: 'Search' }).click()
    }

    it("“my refund has not come”: found by the reference of the customer's bank", async () => {
      const { id } = await rig.pay({ amount: '250000', paymentMethod: 'QR' })
      const body = { amount: '150000', reason: 'Returned goods', receiver: RECEIVER }
      const { body: refund } = await rig.refund(id, body)
      const { gatewayReference } = await rig.untilEnded(refund.id)
      await open(async (page) => {
        await search(page, gatewayReference ?? '')
        await page.waitForURL(`**/console/refunds/*/${refund.id}`)
        const shown = page.locator('main')
        await shown.getByText('The gateway has paid it out').waitFor()
        const text = await shown.innerText()
        expect(text).toContain(gatewayReference)
        expect(text).toContain('NGUYEN VAN A, •••• 6789')
        expect(text).not.toContain(RECEIVER.accountNumber)
      })
    })

    it('“my order is not marked paid”: the gateway is asked now, and the page shows what it says', async () => {
      const transactionId = 'T-LOST-1'
      const payments = [{ amount: '99000', paymentMethod: 'ATM', status: 'SUCCESS' }]
      await rig.control('POST', '/transactions', { transactionId, payments, ipn: false })
      await open(async (page) => {
        await search(page, transactionId)
        await page.getByRole('heading', { name: /Nothing found/ }).waitFor()
        await page.getByRole('button', { name: 'Ask the gateway about this id' }).click()
        await page.getByText('What it answers appears on this page').waitFor()
        const state = page.getByRole('heading', { name: /^Paid, 99,000/ })
        if (script) await state.waitFor()
        while (!script && !(await state.isVisible())) {
          const link = page.getByRole('link', { name: 'Show the current state' })
          if (await link.isVisible()) await link.click()
          else await page.reload()
        }
        await page.getByRole('button', { name: 'Ask the gateway now' }).click()
        await page.getByText('The gateway is being asked.').waitFor()
        await state.waitFor()
      })
    })

    it('“who refunded this, and why?”: found by the order', async () => {
      const { id, transactionId } = await rig.pay({ amount: '80000', paymentMethod: 'CC' })
      const orderId = 'DH-WHY-1'
      await rig.database.sql`
      update transactions set order_id = ${orderId} where transaction_id = ${transactionId}`
      const body = { reason: 'Goodwill after a late delivery', onBehalfOf: 'Tran Thi B' }
      await rig.untilEnded((await rig.refund(id, body)).body.id)
      await open(async (page) => {
        await search(page, orderId)
        await page.getByRole('heading', { name: 'Refunded in full, 80,000 VND' }).waitFor()
        const text = await page.locator('#part-refunds').innerText()
        expect(text).toContain('Tran Thi B')
        expect(text).toContain('Goodwill after a late delivery')
        await page.getByRole('link', { name: 'History' }).click()
        await page.getByText('with API key').first().waitFor()
      })
    })
  })
}
