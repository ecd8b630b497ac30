import { randomUUID } from 'node:crypto'
import { deriveRefundId } from '../../../src/refunds/idempotency.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { MERCHANT } from '../../support/service.ts'
import { settleAtGateway } from './observe.ts'
import type { Stage } from './stage.ts'

/** A customer's refund, from the request's idempotency key to the gateway's request id. */
export type Case = { payment: LabPayment; key: string; refundId: string; amount: string }

/** A part of a refund's path that is played again and again, each time with another fault. */
export type Play = {
  name: string
  /** Whether the gateway refuses a request id that it has seen. */
  dedupes: boolean
  /** What starts it: the client's request, or a round of the sync. */
  trigger: 'request' | 'round'
  /** What its transactions do, in the order in which they begin. */
  steps: readonly string[]
  /** Whether it sends a REFUND. */
  sends: boolean
  /** Does what comes before it. */
  prepare(stage: Stage): Promise<Case>
}

export const RECORD_RESULT = 'record the result'

const SENDING = {
  trigger: 'round',
  steps: ['record the attempt', RECORD_RESULT],
  sends: true,
} as const
const SILENT = { trigger: 'round', steps: ['apply the answer'], sends: false } as const

export const PLAYS: readonly Play[] = [
  {
    name: 'request',
    dedupes: true,
    trigger: 'request',
    steps: ['store the refund'],
    sends: false,
    prepare: openCase,
  },
  {
    name: 'repeated request',
    dedupes: true,
    trigger: 'request',
    steps: [],
    sends: false,
    prepare: requestCase,
  },
  { name: 'first send', dedupes: true, ...SENDING, prepare: requestCase },
  { name: 'first send, not deduplicated', dedupes: false, ...SENDING, prepare: requestCase },
  {
    name: 'resend of what never arrived',
    dedupes: true,
    ...SENDING,
    prepare: (stage) => sendUnanswered(stage, 'reset'),
  },
  {
    name: 'resend of what was accepted',
    dedupes: true,
    ...SENDING,
    prepare: (stage) => sendUnanswered(stage, 'acceptThenReset'),
  },
  {
    name: 'unanswered, not deduplicated',
    dedupes: false,
    ...SILENT,
    prepare: (stage) => sendUnanswered(stage, 'acceptThenReset'),
  },
  { name: 'interrupted', dedupes: true, ...SENDING, prepare: interrupt },
  { name: 'interrupted, not deduplicated', dedupes: false, ...SILENT, prepare: interrupt },
  { name: 'match', dedupes: true, ...SILENT, prepare: settle },
]

/** How long ago an attempt is made to be, so that it may be repeated (ms): less than REFUND_RESEND_FOR_MS. */
export const LONG_AGO_MS = 300_000

async function openCase({ lab }: Stage): Promise<Case> {
  const payment = await lab.open()
  const key = randomUUID()
  const refundId = deriveRefundId(MERCHANT.merchantCode, key)
  return { payment, key, refundId, amount: '30' }
}

async function requestCase(stage: Stage): Promise<Case> {
  const one = await openCase(stage)
  const { status } = await stage.lab.refund(one.payment.id, { amount: one.amount }, one.key)
  if (status !== 202) throw new Error(`the refund was refused with ${status}`)
  return one
}

/** Sends a first attempt that gets no answer, long enough ago for the next. */
async function sendUnanswered(stage: Stage, kind: 'reset' | 'acceptThenReset'): Promise<Case> {
  const one = await requestCase(stage)
  await stage.lab.fault(kind)
  await stage.lab.pass(one.payment)
  await stage.lab.age(one.refundId, LONG_AGO_MS)
  return one
}

/** Leaves a refund as a process does that is killed after its request has arrived. */
async function interrupt(stage: Stage): Promise<Case> {
  const one = await sendUnanswered(stage, 'acceptThenReset')
  const { sql } = stage.lab.database
  await sql`
    update refund_attempts set outcome = null, message = null, duration_ms = null
    where refund_id = ${one.refundId}`
  await sql`
    update refunds set status = 'sending', unanswered = false where refund_id = ${one.refundId}`
  await sql`
    update transactions set lease_id = gen_random_uuid()
    where transaction_id = ${one.payment.transactionId}`
  return one
}

/** Sends a refund, whose money then moves. */
async function settle(stage: Stage): Promise<Case> {
  const one = await requestCase(stage)
  await stage.lab.pass(one.payment)
  await settleAtGateway(stage, one)
  return one
}
