import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { leaseMs } from '../../../src/sync/claim-due.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { beginPass } from '../../support/begin-pass.ts'
import { computeShownHmac } from '../../support/body-hmac.ts'
import { type LabPayment, RESEND_MS, waitForSent } from '../../support/refund-lab.ts'
import { startTestService } from '../../support/service.ts'
import { readItem } from '../../support/sync.ts'
import { useFreshLab, useStarted } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { passSending } from '../pass-sending.ts'

const Calls = z.object({
  data: z.array(z.object({ requestId: z.string().optional(), rawBodySha256: z.string() })),
})

/** Two processes on one database, neither with a worker loop. */
const lab = useFreshLab({ settings: { GATEWAY_TIMEOUT_MS: '1000' } })
const other = useStarted(
  () =>
    startTestService(lab.database, lab.sandbox.url, {
      settings: { ROLE: 'web', REFUND_RESEND_AFTER_MS: String(RESEND_MS) },
    }),
  (service) => service.stop(),
)

/** Ends the lease on the transaction, so that the other process may claim it. */
async function loseLease({ transactionId }: LabPayment): Promise<void> {
  await lab.database.sql`
    update transactions set due_at = now() - interval '1 s' where transaction_id = ${transactionId}`
}

describe('a worker that lost its lease', () => {
  it('during the refund call still writes its answer; the next one found the attempt interrupted', async () => {
    const { payment, refundId } = await lab.openAsked()
    const pass = await beginPass(lab, payment, 'REFUND')
    expect(await lab.status(refundId)).toBe('sending')
    await loseLease(payment)
    expect(await syncDue(other.ctx)).toBe(1)
    const found = await lab.row(refundId)
    expect(found).toMatchObject({ status: 'unknown', unanswered: true, attempts: 1 })
    await pass.finish()
    const { gatewayRefundId, ...answered } = await lab.row(refundId)
    expect(answered).toMatchObject({ status: 'accepted', unanswered: false, attempts: 1 })
    expect(gatewayRefundId).not.toBeNull()
    const attempts = await lab.database.sql`
      select outcome, code from refund_attempts where refund_id = ${refundId}`
    expect(attempts).toMatchObject([{ outcome: 'answered', code: '0' }])
    await lab.passSettled(payment, refundId)
    await lab.expectRefund(refundId, 'succeeded', { sent: 1 })
  })

  it('and whose refund another worker sent again meanwhile: code 0 to the first attempt accepts it', async () => {
    const { payment, refundId } = await lab.openAsked()
    const pass = await beginPass(lab, payment, 'REFUND')
    await loseLease(payment)
    expect(await syncDue(other.ctx)).toBe(1)
    await lab.fault('code', { code: 5 })
    await lab.age(refundId, 30_000)
    await lab.database.sql`update refunds set due_at = now()`
    await loseLease(payment)
    expect(await syncDue(other.ctx)).toBe(1)
    await lab.expectRefund(refundId, 'unknown', { attempts: 2 })
    await pass.finish()
    await lab.expectRefund(refundId, 'accepted', { unanswered: true })
  })

  it('and whose refund another worker is sending again waits with its answer, and asks for no query before', async () => {
    const { sql } = lab.database
    const { payment, refundId } = await lab.openAsked()
    const first = await beginPass(lab, payment, 'REFUND')
    await loseLease(payment)
    expect(await syncDue(other.ctx)).toBe(1)
    await lab.age(refundId, RESEND_MS)
    const second = await beginPass({ database: lab.database, service: other }, payment, 'REFUND')
    await lab.expectRefund(refundId, 'sending', { attempts: 2 })
    const countRequests = async () =>
      (await sql`select want from transactions where transaction_id = ${payment.transactionId}`)[0]
    const before = await countRequests()
    const retries = vi.spyOn(Math, 'random').mockReturnValue(0.1)
    const answering = first.finish()
    await waitUntil(async () => retries.mock.calls.length >= 3, { what: 'three retries' })
    expect(await countRequests()).toEqual(before)
    await second.finish()
    await answering.finally(() => vi.restoreAllMocks())
    const attempts = await sql`
      select outcome from refund_attempts where refund_id = ${refundId} order by id`
    expect(attempts).toEqual([{ outcome: 'answered' }, { outcome: 'rejected' }])
    expect(await lab.status(refundId)).toBe('accepted')
  })

  it('and had written no byte, while a failure was notified: somebody else sent it, so a person decides', async () => {
    const { payment, refundId } = await lab.openAsked()
    await passSending(lab, payment, async () => {
      await loseLease(payment)
      expect(await syncDue(other.ctx)).toBe(1)
      await lab.notify(payment, refundId, '30', { code: 1 })
      await loseLease(payment)
      expect(await syncDue(other.ctx)).toBe(1)
      await lab.expectRefund(refundId, 'unknown', { failureCode: '1' })
      return { kind: 'unavailable', reason: 'ECONNREFUSED' }
    })
    await lab.expectRefund(refundId, 'needs_review', { attempts: 0 })
  })

  it('writes its answer while the next one queries', async () => {
    const { payment, refundId } = await lab.openAsked()
    const first = await beginPass(lab, payment, 'REFUND')
    const second = await beginPass({ database: lab.database, service: other }, payment, 'QUERY_PT')
    await first.finish()
    expect(await lab.status(refundId)).toBe('accepted')
    await second.finish()
    expect(await lab.status(refundId)).toBe('accepted')
  })

  it('during the query sends nothing: the other worker did', async () => {
    const { payment, refundId } = await lab.openAsked()
    const pass = await beginPass(lab, payment, 'QUERY_PT')
    await loseLease(payment)
    await lab.database.sql`update refunds set due_at = now()`
    expect(await syncDue(other.ctx)).toBe(1)
    expect(await lab.status(refundId)).toBe('accepted')
    await lab.settle(refundId)
    await pass.finish()
    await lab.expectRefund(refundId, 'accepted', { sent: 1 })
  })

  it('may still record the result of its refund while no other worker has claimed', async () => {
    const { payment, refundId } = await lab.openAsked()
    const pass = await beginPass(lab, payment, 'REFUND')
    await loseLease(payment)
    await pass.finish()
    expect(await lab.status(refundId)).toBe('accepted')
  })
})

describe('a lease that would end before the call', () => {
  it('is too short to send: no attempt is recorded, and the refund waits', async () => {
    const { payment, refundId } = await lab.openAsked()
    const pass = await beginPass(lab, payment, 'QUERY_PT')
    await lab.database.sql`
      update transactions set due_at = clock_timestamp() + interval '900 ms'
      where transaction_id = ${payment.transactionId}`
    await pass.finish()
    await lab.expectRefund(refundId, 'pending', { attempts: 0, sent: 0 })
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('accepted')
  })

  it('is not used by a worker that stalled after it had recorded the attempt: no byte leaves', async () => {
    const { payment, refundId } = await lab.openAsked()
    const { ctx } = lab.service
    const now = performance.now.bind(performance)
    const gateway: typeof ctx.gateway = {
      ...ctx.gateway,
      prepareRefund(order) {
        const late = leaseMs(ctx.config.GATEWAY_TIMEOUT_MS)
        vi.spyOn(performance, 'now').mockImplementation(() => now() + late)
        return ctx.gateway.prepareRefund(order)
      },
    }
    await loseLease(payment)
    await syncDue({ ...ctx, gateway }).finally(() => vi.restoreAllMocks())
    await lab.expectRefund(refundId, 'pending', { attempts: 0, sent: 0 })
  })
})

it('a snapshot older than the stored one is dropped, changes and sends nothing, and the transaction is due at once', async () => {
  const payment = await lab.open()
  const first = await lab.send(payment, '30')
  const second = await lab.ask(payment, '40')
  await lab.settle(first)
  const pass = await beginPass(lab, payment, 'QUERY_PT')
  await lab.database.sql`
    update transactions set as_of = clock_timestamp() where transaction_id = ${payment.transactionId}`
  await pass.finish()
  expect(await lab.status(first)).toBe('accepted')
  await lab.expectRefund(second, 'pending', { sent: 0 })
  const { dueAfterQueryMs, gapMs, leased } = await readItem(lab, payment.transactionId)
  expect(leased).toBe(false)
  expect(dueAfterQueryMs).toBeLessThan(gapMs + 2_000)
  await lab.pass(payment)
  expect(await lab.status(first)).toBe('succeeded')
  expect(await lab.status(second)).toBe('accepted')
})

it('every request sent was recorded and committed first, with the bytes that the gateway received', async () => {
  const payment = await lab.open()
  await lab.fault('acceptThenHang')
  const refundId = await lab.ask(payment, '30')
  const passing = lab.pass(payment)
  await waitForSent(lab, refundId)
  const [attempt] = await lab.database.sql<{ hmac: string; outcome: string | null }[]>`
    select encode(body_hmac, 'hex') as hmac, outcome from refund_attempts
    where refund_id = ${refundId}`
  const calls = Calls.parse(await lab.control('GET', '/calls?command=REFUND'))
  const call = calls.data.find(({ requestId }) => requestId === refundId)
  expect(attempt?.hmac).toBe(computeShownHmac(other, call?.rawBodySha256))
  expect(attempt?.outcome).toBeNull()
  await passing
  expect(await lab.status(refundId)).toBe('unknown')
})
