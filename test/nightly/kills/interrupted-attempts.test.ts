import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Sql } from '../../../src/platform/postgres/types.ts'
import { emptyTables } from '../../support/database.ts'
import { type Seen, serve } from '../../support/gateway.ts'
import { forward } from '../../support/gateway-tap.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { type ServiceProcess, settingsFor, startServiceProcess } from '../../support/process.ts'
import { type LabPayment, waitForSent } from '../../support/refund-lab.ts'
import { useRefundLab } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** The API runs here; the sync runs in a process of its own, which is killed. */
vi.setConfig({ testTimeout: 60_000 })

const lab = useRefundLab()
afterEach(() => emptyTables(lab.database))

const startWorker = (env: Record<string, string> = {}) =>
  startServiceProcess({
    ...settingsFor(lab.database.url, lab.sandbox.url),
    ROLE: 'worker',
    REFUND_BACKOFF_MS: '50',
    REFUND_BACKOFF_MAX_MS: '200',
    ...env,
  })

async function killNow({ child, ended }: ServiceProcess): Promise<void> {
  child.kill('SIGKILL')
  await ended
}

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
  hold: (held: Sql) => Promise<unknown>,
  begin: () => ServiceProcess | Promise<ServiceProcess>,
): Promise<void> {
  await whileUncommitted(lab.database, hold, async () => {
    const worker = await begin()
    await waitUntilBlocked(lab.database)
    await killNow(worker)
  })
}

/** A gateway that forwards everything but refunds, which it receives and keeps. */
const startSwallower = () =>
  serve(async (response, request) => {
    if (!isRefund(request)) await forward(lab.sandbox.url, response, request)
  })

const isRefund = ({ body }: Seen) => body.includes('"REFUND"')

/** Starts a worker, and waits until it has sent the refund; its answer comes half a second later. */
async function startAndSend(refundId: string): Promise<ServiceProcess> {
  await lab.fault('delay', { delayMs: 500 })
  const worker = await startWorker()
  await waitForSent(lab, refundId)
  return worker
}

type Kill = {
  when: string
  /** Runs a worker up to there, and kills it. */
  kill: (refundId: string) => Promise<void>
  left: { status: string; attempts: number }
  /** How often the gateway got it from the process that was killed. */
  sent: number
  /** The outcomes of its attempts in the end. */
  attempts: string[]
}

const KILLS: Kill[] = [
  {
    when: 'before the attempt is recorded',
    kill: (refundId) =>
      killWhile(
        (held) => held`select from refunds where refund_id = ${refundId} for update`,
        () => startWorker(),
      ),
    left: { status: 'pending', attempts: 0 },
    sent: 0,
    attempts: ['answered'],
  },
  {
    when: 'after the record, with a request that never arrives',
    kill: async () => {
      const gateway = await startSwallower()
      const worker = await startWorker({ GATEWAY_BASE_URL: gateway.url })
      const swallowed = () => gateway.seen.filter(isRefund).length
      await waitUntil(() => swallowed() === 1, { what: 'the bytes of the refund' })
      await killNow(worker)
    },
    left: { status: 'sending', attempts: 1 },
    sent: 0,
    attempts: ['unknown', 'answered'],
  },
  {
    when: 'after the request was sent',
    kill: async (refundId) => {
      await lab.fault('acceptThenHang')
      const worker = await startWorker()
      await waitForSent(lab, refundId)
      await killNow(worker)
    },
    left: { status: 'sending', attempts: 1 },
    sent: 1,
    attempts: ['unknown'],
  },
  {
    when: 'after the answer',
    kill: async (refundId) => {
      const worker = await startAndSend(refundId)
      await killWhile(
        (held) => held`
          select from transactions where transaction_id =
            (select transaction_id from refunds where refund_id = ${refundId}) for update`,
        () => worker,
      )
    },
    left: { status: 'sending', attempts: 1 },
    sent: 1,
    attempts: ['unknown'],
  },
  {
    when: 'before the answer is committed',
    kill: async (refundId) => {
      const worker = await startAndSend(refundId)
      await killWhile(
        (held) => held`select from refund_attempts where refund_id = ${refundId} for update`,
        () => worker,
      )
    },
    left: { status: 'sending', attempts: 1 },
    sent: 1,
    attempts: ['unknown'],
  },
]

it.each(KILLS.map((row): [string, Kill] => [row.when, row]))(
  'a process killed %s leaves a refund that moves its money once, by one request',
  async (_, { kill, left, sent, attempts }) => {
    await lab.mode({ settleMs: 50 })
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    await kill(refundId)
    expect(await lab.row(refundId)).toMatchObject(left)
    expect(await lab.sent(refundId)).toBe(sent)
    const begun = { outcome: null, message: null }
    expect(await attemptsOf(refundId)).toEqual(Array(left.attempts).fill(begun))
    // What never arrived is sent again; what did is found by its growth.
    await takeUp(sent === 0 ? { REFUND_RESEND_AFTER_MS: '100' } : {})
    await expectMovedOnce(payment, refundId)
    expect(await lab.sent(refundId)).toBe(1)
    const ended = await attemptsOf(refundId)
    expect(ended.map(({ outcome }) => outcome)).toEqual(attempts)
    const interrupted = ended.filter(({ outcome }) => outcome === 'unknown')
    expect(interrupted.every(({ message }) => message === 'interrupted')).toBe(true)
  },
)

describe('a process that is stopping', () => {
  it('waits for an answer in flight', async () => {
    await lab.fault('delay', { delayMs: 500 })
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    const worker = await startWorker()
    await waitForSent(lab, refundId)
    worker.child.kill('SIGTERM')
    expect(await worker.ended).toBe(0)
    expect((await lab.row(refundId)).status).toBe('accepted')
  })

  it('gives up on an answer that does not come, and records an unknown outcome', async () => {
    await lab.fault('acceptThenHang')
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    const worker = await startWorker()
    await waitForSent(lab, refundId)
    worker.child.kill('SIGTERM')
    expect(await worker.ended).toBe(0)
    expect(await lab.row(refundId)).toMatchObject({ status: 'unknown', unanswered: true })
    expect(await attemptsOf(refundId)).toEqual([{ outcome: 'unknown', message: 'interrupted' }])
    await lab.settle(refundId)
    await lab.pass(payment)
    await expectMovedOnce(payment, refundId)
    expect(await lab.sent(refundId)).toBe(1)
  })
})
