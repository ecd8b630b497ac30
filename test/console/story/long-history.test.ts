import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { addVisitors } from '../../support/console.ts'
import { openAs } from '../../support/console-pages.ts'
import { emptyTables } from '../../support/database.ts'
import { act, prepareRefund, refundPathOf, sendForm } from '../../support/refund-form.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()
afterEach(() => emptyTables(lab.database))

let people: Awaited<ReturnType<typeof addVisitors>>
beforeAll(async () => {
  people = await addVisitors(lab.database)
})

describe('the history tells who asked for a refund', () => {
  it.each([
    ['before an order system asks the gateway', 0],
    ['after an order system has asked the gateway 200 times', 200],
  ])('%s', async (_, times) => {
    const payment = await lab.open()
    const clerk = act(lab, people.agent)
    await sendForm(clerk, await prepareRefund(clerk, refundPathOf(payment)))
    for (let n = 0; n < times; n += 1) {
      const path = `/v1/transactions/${payment.transactionId}/sync`
      expect((await lab.api(path, { method: 'POST' })).status).toBe(202)
    }
    const story = `/console/transactions/${MERCHANT.merchantCode}/${payment.transactionId}`
    const { text } = await openAs(lab, people.agent, `${story}?view=history`)
    expect(text).toContain(`${people.agent.name} : Asked for a refund`)
  })
})
