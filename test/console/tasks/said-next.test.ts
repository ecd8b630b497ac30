import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openIn } from '../../support/approvals.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { addVisitors } from '../../support/console.ts'
import { openAs, sendForm } from '../../support/console-pages.ts'
import { emptyTables } from '../../support/database.ts'
import { MERCHANT, startTestService } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab({ settings: { REFUND_APPROVAL_ABOVE: 'VND:50' } })
afterEach(() => emptyTables(lab.database))

let people: Awaited<ReturnType<typeof addVisitors>>
beforeAll(async () => {
  people = await addVisitors(lab.database)
})

const pathOf = (id: string) => `/console/refunds/${MERCHANT.merchantCode}/${id}`

async function request(amount: string) {
  const payment = await openIn(lab, 'VND')
  return (await expectTaken(await ask({ url: lab.service.url }, payment.id, { amount }))).id
}

describe('what a page says happens next', () => {
  it('of a held refund that is approved is not that it is sent within moments', async () => {
    const id = await request('60')
    const shown = await openAs(lab, people.operator, pathOf(id))
    const held = { held: 'true', reason: 'customer called' }
    const holding = await sendForm(lab, people.operator, shown, `${pathOf(id)}/hold`, held)
    expect(holding.status).toBe(303)
    const page = await openAs(lab, people.approver, pathOf(id))
    const done = await sendForm(lab, people.approver, page, `${pathOf(id)}/approval`, {
      decision: 'approve',
    })
    expect(done.status).toBe(303)
    const after = await openAs(lab, people.approver, done.location ?? '')
    expect(after.text).toContain('Nothing is sent until the hold is released')
    expect(after.text).not.toContain('is sent to the gateway within moments')
  })

  it('of a refund that waits while sending is switched off is not that it is sent', async () => {
    const id = await request('30')
    const off = await startTestService(lab.database, lab.sandbox.url, {
      settings: { ROLE: 'web', REFUNDS_ENABLED: 'false' },
    })
    try {
      const { text } = await openAs({ service: off }, people.operator, pathOf(id))
      expect(text).toContain('New refunds are switched off, so it is not sent.')
      const health = await openAs({ service: off }, people.operator, '/console/health')
      expect(health.text).toContain('New refunds are not: REFUNDS_ENABLED is false.')
      expect(health.text).not.toContain('Refunds and webhooks are sent.')
    } finally {
      await off.stop()
    }
  })
})
