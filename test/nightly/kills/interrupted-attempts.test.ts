import { afterEach, describe, expect, it, vi } from 'vitest'
import { emptyTables } from '../../support/database.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
import { waitForSent } from '../../support/refund-lab.ts'
import { useRefundLab } from '../../support/use-started.ts'

/** The API runs here; the sync runs in a process of its own, which is stopped. The crash points kill it. */
vi.setConfig({ testTimeout: 60_000 })

const lab = useRefundLab()
afterEach(() => emptyTables(lab.database))

/** Requests a refund, and stops the process that has sent it before it is answered. */
async function stopWhileSending() {
  const payment = await lab.open()
  const refundId = await lab.ask(payment, '30')
  const worker = await startServiceProcess({
    ...settingsFor(lab.database.url, lab.sandbox.url),
    ROLE: 'worker',
  })
  await waitForSent(lab, refundId)
  worker.child.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
  return { payment, refundId }
}

describe('a process that is stopping', () => {
  it('waits for an answer in flight', async () => {
    await lab.fault('delay', { delayMs: 500 })
    const { refundId } = await stopWhileSending()
    expect((await lab.row(refundId)).status).toBe('accepted')
  })

  it('gives up on an answer that does not come, and records an unknown outcome', async () => {
    await lab.fault('acceptThenHang')
    const { payment, refundId } = await stopWhileSending()
    expect(await lab.row(refundId)).toMatchObject({ status: 'unknown', unanswered: true })
    const attempts = await lab.database.sql`
      select outcome, message from refund_attempts where refund_id = ${refundId}`
    expect(attempts).toEqual([{ outcome: 'unknown', message: 'interrupted' }])
    await lab.settle(refundId)
    await lab.pass(payment)
    expect((await lab.untilEnded(refundId)).status).toBe('succeeded')
    expect(await lab.moved(payment.id)).toEqual(['30'])
    expect(await lab.sent(refundId)).toBe(1)
  })
})
