import type { Page } from 'playwright-core'
import { afterEach, expect, it } from 'vitest'
import { openIn } from '../../support/approvals.ts'
import { moveTo } from '../../support/ask.ts'
import { describeInBrowser, openProfile, openSessionIn, openTab } from '../../support/browser.ts'
import { findBarriers, findMisfits } from '../../support/check-page.ts'
import { addVisitor } from '../../support/console.ts'
import { emptyTables } from '../../support/database.ts'
import { useRefundLab } from '../../support/use-started.ts'

const readMain = async (page: Page) => await page.locator('main').innerText()

/** @param script whether scripts run in the browser */
export function playTaskStories(script: boolean): void {
  describeInBrowser('a task', () => {
    const lab = useRefundLab({ settings: { REFUND_APPROVAL_ABOVE: 'VND:50' } })
    afterEach(() => emptyTables(lab.database))

    /** Opens a browser of its own, in which a person with this role is signed in. */
    async function openBrowserOf(given: Parameters<typeof addVisitor>[1]) {
      const visitor = await addVisitor(lab.database, given)
      const context = await openProfile({ script })
      await openSessionIn(context, lab.service.url, visitor)
      return { visitor, ...(await openTab(context, lab.service.url, '/console/tasks')) }
    }

    it('a refund that needs a decision is decided with the proof beside it', async () => {
      const payment = await openIn(lab, 'VND')
      const id = await lab.send(payment, '30')
      await moveTo(lab.database, id, 'needs_review')
      await lab.notify(payment, id, '30')
      const operator = await openBrowserOf({ roles: ['operator'] })
      const { page } = operator
      await page.locator('#reviews').getByRole('link', { name: '30' }).first().click()
      await page.getByRole('heading', { level: 1, name: 'Refund of 30' }).waitFor()
      expect(await page.locator('#proof').innerText()).toMatch(
        /the money moved[\s\S]*Notification[\s\S]*code 0/,
      )
      expect(await readMain(page)).toContain(id)
      await page.getByRole('button', { name: 'Record the decision' }).click()
      // The browser itself asks for the reason first.
      await page.getByLabel('The money did not move').check()
      await page.locator('#decide').getByLabel('Reason').fill('their support denies it')
      await page.getByRole('button', { name: 'Record the decision' }).click()
      await page.getByText('This decision contradicts the evidence').waitFor()
      expect(await page.locator('#decide').innerText()).toContain('notified that it succeeded')
      if (script) expect([...(await findBarriers(page)), ...(await findMisfits(page))]).toEqual([])
      await page.getByLabel(/^The money moved/).check()
      await page.getByRole('button', { name: 'Record the decision' }).click()
      await page.getByText('The decision is recorded.').waitFor()
      expect(await readMain(page)).toContain('their support denies it')
      expect(await lab.row(id)).toMatchObject({
        status: 'succeeded',
        resolution: { by: operator.visitor.name, againstEvidence: null },
      })
      await page.goto(`${lab.service.url}/console/tasks`)
      expect(await readMain(page)).toContain('No refund needs a decision.')
      expect(operator.problems).toEqual([])
    })
  })
}
