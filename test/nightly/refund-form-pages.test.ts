import { expect, it, onTestFinished } from 'vitest'
import { seedPaid } from '../support/ask.ts'
import { describeInBrowser, openProfile, openSessionIn, watchPage } from '../support/browser.ts'
import { findBarriers, findMisfits, findUnreachable } from '../support/check-page.ts'
import { addVisitor } from '../support/console.ts'
import { refundPathOf } from '../support/refund-form.ts'
import { useRefundLab } from '../support/use-started.ts'

const lab = useRefundLab()

describeInBrowser('the pages between form and refund', () => {
  it.each([1280, 390])('have no barriers and fit at %i px', async (width) => {
    const paid = await seedPaid(lab.database, { paymentMethod: 'QR' })
    const context = await openProfile({ width })
    onTestFinished(() => context.close())
    const agent = await addVisitor(lab.database, { roles: ['agent'] })
    await openSessionIn(context, lab.service.url, agent)
    const page = await context.newPage()
    const problems = watchPage(page, lab.service.url)
    await page.goto(lab.service.url + refundPathOf(paid))
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
    const see = (text: string) => page.getByRole('main').getByText(text).first().waitFor()
    const check = async () =>
      problems.push(
        ...(await findBarriers(page)),
        ...(await findMisfits(page)),
        ...(await findUnreachable(page)),
      )
    await press('Preview')
    await page.locator('#reason-problem').waitFor()
    await check()
    await page.getByLabel('Name of the account holder').fill('A'.repeat(140))
    await page.getByLabel('Account number').fill('1'.repeat(140))
    await page.getByLabel('SWIFT/BIC').fill('odd')
    await page.getByLabel('Reason', { exact: true }).selectOption('Goods returned')
    await page.getByLabel('Remark').fill('x'.repeat(400))
    await press('Preview')
    await see('What will be sent')
    await check()
    await lab.database.sql`update transactions set version = version + 1`
    await press('Confirm refund')
    await see('Nothing was refunded: something changed after you opened the form.')
    await check()
    expect(problems).toEqual([])
  })
})
