import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { describeInBrowser, openProfile, openSessionIn, openTab } from '../../support/browser.ts'
import { addVisitor } from '../../support/console.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

describe('the script', () => {
  it('is small', () => {
    const path = new URL('../../../src/console/assets/console.js', import.meta.url)
    expect(readFileSync(path).byteLength).toBeLessThanOrEqual(6 * 1024)
  })
})

/** An open page asks again every five seconds: here every fifth of one. */
const HURRY = `{
  const wait = setTimeout
  window.setTimeout = (done, ms) => wait(done, ms === 5_000 ? 200 : ms)
}`

describeInBrowser('a page with scripts', () => {
  const lab = useRefundLab()

  type Opened = {
    page: Page
    personId: string
    payment: { id: string; transactionId: string }
  }

  /** Opens the story of a new payment, as an operator. */
  async function open(run: (opened: Opened) => Promise<void>): Promise<void> {
    const payment = await lab.open()
    const { personId, token } = await addVisitor(lab.database, { roles: ['operator'] })
    const { url } = lab.service
    const context = await openProfile()
    await context.addInitScript(HURRY)
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url })
    await openSessionIn(context, url, { token })
    const path = `/console/transactions/${MERCHANT.merchantCode}/${payment.transactionId}`
    const { page, problems } = await openTab(context, url, path)
    await run({ page, personId, payment })
    expect(problems).toEqual([])
  }

  it('shows what changed, keeps what is unfolded, typed and focused, and reads a new first line aloud', async () => {
    await open(async ({ page, payment }) => {
      await page.locator('#part-payments summary').click()
      const field = page.locator('#part-payments input[name=reason]')
      await field.fill('the shop disputes')
      await lab.ask(payment, '10')
      await page.getByText('Refund of 10').waitFor()
      // The part of the payment itself changed as well: less can be refunded.
      await page.locator('#part-payments').getByText('90', { exact: true }).waitFor()
      expect(await field.inputValue()).toBe('the shop disputes')
      expect(await page.locator('#part-payments input:focus').count()).toBe(1)
      await page.keyboard.type(' it')
      expect(await field.inputValue()).toBe('the shop disputes it')
      await lab.show(payment, '40')
      await lab.pass(payment)
      await page.getByRole('heading', { name: 'Paid, 40 of 100 refunded' }).waitFor()
      expect(await page.locator('#announcer').textContent()).toBe('Paid, 40 of 100 refunded')
    })
  })

  it('leads to the sign-in once the session has ended', async () => {
    await open(async ({ page, payment, personId }) => {
      await lab.database.sql`update sessions set ended_at = now() where person_id = ${personId}`
      await lab.ask(payment, '10')
      await page.waitForURL('**/console/sign-in')
    })
  })

  it('keeps what was typed when the session ends, until it is sent', async () => {
    await open(async ({ page, payment, personId }) => {
      await page.locator('#part-payments summary').click()
      const field = page.locator('#part-payments input[name=reason]')
      await field.fill('the shop disputes it')
      await lab.database.sql`update sessions set ended_at = now() where person_id = ${personId}`
      const led = page.waitForResponse((response) => response.status() === 303)
      await lab.ask(payment, '10')
      await led
      expect(await field.inputValue()).toBe('the shop disputes it')
      await page.getByRole('button', { name: 'Hold the refunds of this payment' }).click()
      await page.waitForURL('**/console/sign-in')
    })
  })

  it('says how long ago things happened, beside when', async () => {
    await open(async ({ page }) => {
      const time = page.locator('#part-state time').first()
      expect(await time.textContent()).toMatch(
        /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(this minute\)$/,
      )
      expect(await time.getAttribute('title')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/)
    })
  })

  it('copies an id', async () => {
    await open(async ({ page, payment }) => {
      await page
        .getByRole('button', { name: `Copy ${payment.id}` })
        .first()
        .click()
      await page.getByText(`Copied ${payment.id}`).waitFor({ state: 'attached' })
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(payment.id)
    })
  })
})
