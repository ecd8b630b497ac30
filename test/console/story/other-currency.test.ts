import { expect, it } from 'vitest'
import { addVisitor } from '../../support/console.ts'
import { openAs } from '../../support/console-pages.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const lab = useRefundLab()

it('the timeline shows the amount of a notification in the currency that this notification names', async () => {
  const operator = await addVisitor(lab.database, { roles: ['operator'] })
  const payments = [{ amount: '250000', paymentMethod: 'CC', status: 'SUCCESS' }]
  await lab.control('POST', '/transactions', { transactionId: 'T-CUR', currency: 'VND', payments })
  const path = `/console/transactions/${MERCHANT.merchantCode}/T-CUR?view=technical`
  const read = async () => (await openAs(lab, operator, path)).text
  await waitUntil(async () => (await read()).includes('amount 250,000 VND'), {
    timeoutMs: 8_000,
    everyMs: 200,
    what: 'the notification',
  })
  const fields = { Currency: 'USD', Amount: 99 }
  await lab.control('POST', '/transactions/T-CUR/ipn', { fields })
  await waitUntil(async () => /amount 99/.test(await read()), {
    timeoutMs: 8_000,
    everyMs: 200,
    what: 'the notification',
  })
  expect(await read()).not.toContain('amount 99 VND')
})
