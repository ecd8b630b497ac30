import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Sql } from '../../src/platform/postgres/types.ts'
import { emptyTables } from '../support/database.ts'
import { serve } from '../support/gateway.ts'
import { forward } from '../support/gateway-tap.ts'
import { waitUntilBlocked, whileUncommitted } from '../support/locks.ts'
import { startMain } from '../support/main-process.ts'
import { type LabPayment, waitForSent } from '../support/refund-lab.ts'
import { MERCHANT } from '../support/service.ts'
import { useRefundLab } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

/** The API runs here; the sync runs in a process of its own, which is killed. */
vi.setConfig({ testTimeout: 60_000 })

const lab = useRefundLab()
afterEach(() => emptyTables(lab.database))

const startWorker = (env: Record<string, string> = {}) =>
  startMain({
    ROLE: 'worker',
    PORT: '0',
    DEMO: 'false',
    DATABASE_URL: lab.database.url,
    GATEWAY_BASE_URL: lab.sandbox.url,
    GATEWAY_MERCHANT_CODE: MERCHANT.merchantCode,
    GATEWAY_SECRET: MERCHANT.secret,
    DATA_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
    GATEWAY_REFUND_DEDUPES: 'true',
    REFUND_BACKOFF_MS: '50',
    REFUND_BACKOFF_MAX_MS: '200',
    ...env,
  })

/** Ends the lease of the killed process; another process takes over its work. */
async function takeUp(env: Record<string, string> = {}): Promise<void> {
  await lab.database.sql`update transactions set due_at = now() where lease_id is not null`
  await startWorker(env)
}

async function expectMovedOnce(payment: LabPayment, refundId: string): Promise<void> {
  expect((await lab.untilEnded(refundId)).status).toBe('succeeded')
  expect(await lab.moved(payment.id)).toEqual(['30'])
  // What only growth shows stays reserved beside it, until it is known.
  const { inferred } = await lab.row(refundId)
  expect(await lab.payment(payment.id)).toMatchObject({ refundableAmount: inferred ? '40' : '70' })
}

const attemptsOf = (refundId: string) =>
  lab.database.sql<
    { outcome: string | null; message: string | null }[]
  >`select outcome, message from refund_attempts where refund_id = ${refundId} order by id`

/** Kills a process while a lock it needs is held; the lock is released only then. */
async function killWhile(
  worker: { kill(): Promise<void> },
  hold: (held: Sql) => Promise<unknown>,
  begin: () => Promise<unknown>,
): Promise<void> {
  await whileUncommitted(lab.database, hold, async () => {
    await begin()
    await waitUntilBlocked(lab.database)
    await worker.kill()
  })
}

/** A proxy that forwards everything but refunds, which it receives and keeps. */
async function startSwallower(): Promise<{ url: string; swallowed(): number }> {
  let swallowed = 0
  const { url } = await serve(async (response, request) => {
    if (request.body.includes('"REFUND"')) swallowed += 1
    else await forward(lab.sandbox.url, response, request)
  })
  return { url, swallowed: () => swallowed }
}

describe('a process that is killed', () => {
  it('before the attempt is recorded has sent nothing: the refund is sent later, once', async () => {
    await lab.mode({ settleMs: 50 })
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    let worker: Awaited<ReturnType<typeof startWorker>> | undefined
    await killWhile(
      { kill: async () => worker?.kill() },
      (held) => held`select from refunds where refund_id = ${refundId} for update`,
      async () => {
        worker = await startWorker()
      },
    )
    expect(await lab.row(refundId)).toMatchObject({ status: 'pending', attempts: 0 })
    expect(await lab.sent(refundId)).toBe(0)
    await takeUp()
    await expectMovedOnce(payment, refundId)
    expect(await lab.sent(refundId)).toBe(1)
  })

  it('after the record, with a request that never arrives, leaves an unknown outcome, and the refund is sent again', async () => {
    await lab.mode({ settleMs: 50 })
    const gateway = await startSwallower()
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    const worker = await startWorker({ GATEWAY_BASE_URL: gateway.url })
    await waitUntil(() => gateway.swallowed() === 1, { what: 'the bytes of the refund' })
    await worker.kill()
    expect(await attemptsOf(refundId)).toEqual([{ outcome: null, message: null }])
    await takeUp({ REFUND_RESEND_AFTER_MS: '100' })
    await expectMovedOnce(payment, refundId)
    const [first, second] = await attemptsOf(refundId)
    expect(first).toEqual({ outcome: 'unknown', message: 'interrupted' })
    expect(second).toMatchObject({ outcome: 'answered' })
    expect(await lab.sent(refundId)).toBe(1)
  })

  it('after the request was sent, the refund is matched to the delta and not sent again', async () => {
    await lab.mode({ settleMs: 50 })
    await lab.fault('acceptThenHang')
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    const worker = await startWorker()
    await waitForSent(lab, refundId)
    await worker.kill()
    expect((await lab.row(refundId)).status).toBe('sending')
    await takeUp()
    await expectMovedOnce(payment, refundId)
    expect(await lab.sent(refundId)).toBe(1)
  })

  it.each([
    [
      'after the answer',
      (refundId: string) => (held: Sql) =>
        held`
        select from transactions where transaction_id =
          (select transaction_id from refunds where refund_id = ${refundId}) for update`,
    ],
    [
      'before the answer is committed',
      (refundId: string) => (held: Sql) =>
        held`
        select from refund_attempts where refund_id = ${refundId} for update`,
    ],
  ])('%s finds the refund by its growth, without sending it again', async (_, hold) => {
    await lab.mode({ settleMs: 50 })
    await lab.fault('delay', { delayMs: 500 })
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    const worker = await startWorker()
    await waitForSent(lab, refundId)
    await killWhile(worker, hold(refundId), async () => {})
    expect(await lab.row(refundId)).toMatchObject({ status: 'sending', attempts: 1 })
    await takeUp()
    await expectMovedOnce(payment, refundId)
    expect(await lab.sent(refundId)).toBe(1)
  })
})

describe('a process that is stopping', () => {
  it('waits for an answer in flight', async () => {
    await lab.fault('delay', { delayMs: 500 })
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    const worker = await startWorker()
    await waitForSent(lab, refundId)
    expect(await worker.stop()).toBe(0)
    expect((await lab.row(refundId)).status).toBe('accepted')
  })

  it('gives up on an answer that does not come, and records an unknown outcome', async () => {
    await lab.fault('acceptThenHang')
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    const worker = await startWorker()
    await waitForSent(lab, refundId)
    expect(await worker.stop()).toBe(0)
    expect(await lab.row(refundId)).toMatchObject({ status: 'unknown', unanswered: true })
    expect(await attemptsOf(refundId)).toEqual([{ outcome: 'unknown', message: 'interrupted' }])
    await lab.settle(refundId)
    await lab.pass(payment)
    await expectMovedOnce(payment, refundId)
    expect(await lab.sent(refundId)).toBe(1)
  })
})
