import { describe, expect, it } from 'vitest'
import { seedPaid } from '../../support/ask.ts'
import { openAs, sendForm } from '../../support/console-pages.ts'
import {
  type Clerk,
  enter,
  prepareRefund,
  readConfirmed,
  refundPathOf,
  sendForm as send,
} from '../../support/refund-form.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundRig } from '../../support/use-started.ts'

const rig = useRefundRig({ settings: { ROLE: 'web' } })

async function request(clerk: Clerk) {
  const check = await prepareRefund(clerk, refundPathOf(await seedPaid(rig.database)))
  return readConfirmed(await send(clerk, check)).refundId
}

async function cancel(clerk: Clerk, refundId: string) {
  const path = `/console/refunds/${MERCHANT.merchantCode}/${refundId}`
  const page = await openAs(rig, clerk, path)
  const fields = { cancelReason: 'my mistake' }
  expect((await sendForm(rig, clerk, page, `${path}/cancellation`, fields)).status).toBe(303)
}

describe('among the refunds of a person that did not arrive', () => {
  it.each([
    ['is not what they cancelled themselves', true],
    ['is what somebody else cancelled', false],
  ])('%s', async (_, isOwn) => {
    const agent = await enter(rig, 'agent')
    const refundId = await request(agent)
    await cancel(isOwn ? agent : await enter(rig, 'admin'), refundId)
    const { html, status } = await openAs(rig, agent, '/console/tasks')
    expect([status, html.includes(refundId)]).toEqual([200, !isOwn])
  })
})
