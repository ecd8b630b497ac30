import type { Context } from '../context.ts'
import type { Call } from '../gateway/client.ts'
import type { LoopRound } from '../loop.ts'
import type { Step, StepPlan } from '../trace.ts'
import { type Claim, claimDue, findNextDue, leaseMs, releaseClaim } from './claim.ts'
import type { Settled } from './lease.ts'
import { findOrigins } from './origins.ts'
import { type Sending, settleQuery, settleRefund } from './settle.ts'

const POLL_MS = 1_000
/** While every call slot is taken no query is made to find out, so this can be short. */
const SLOT_POLL_MS = 20
/** A row that is due but locked by somebody must not make the loop spin. */
const MIN_REST_MS = 20

/** What a query led to, in the words of the metrics. */
const RESULTS = {
  rest: 'final',
  again: 'again',
  'at once': 'at_once',
  abandon: 'abandoned',
  lost: 'lost',
} as const satisfies Record<Settled['next'], string>

/** `handed_back`: it was not asked, or not to the end; `failed`: its end could not be written down. */
export const SYNC_RESULTS = [...Object.values(RESULTS), 'handed_back', 'failed'] as const

/**
 * One round of the sync: claims as many due transactions as there are free call slots, asks the
 * gateway about each with no database transaction open, and settles each as its answer comes.
 * @returns how many were claimed
 */
export async function syncDue(ctx: Context): Promise<number> {
  const { count, finished } = await beginSync(ctx)
  await finished
  return count
}

/** The same, returning as soon as the claims are taken. `onMore` is called when a next round may find work. */
export async function beginSync(ctx: Context, onMore?: () => void): Promise<LoopRound> {
  const limit = ctx.slots.takeAll()
  let claims: Claim[] = []
  try {
    if (limit > 0) claims = await claimDue(ctx, limit)
  } finally {
    ctx.slots.give(limit - claims.length)
  }
  for (const { merchantCode } of claims) ctx.slots.assign(merchantCode)
  const slotsWereShort = claims.length === limit
  const origins = await findOrigins(ctx, claims)
  const finished = Promise.all(
    claims.map(async (claim) => {
      const { merchantCode } = claim
      const findsOut = ctx.breakers.of(merchantCode, 'query').state() !== 'closed'
      const free = (giveBack: () => void) => {
        const wasAtCap = ctx.slots.countHeld(merchantCode) >= ctx.slots.cap
        giveBack()
        if (slotsWereShort || wasAtCap || findsOut) onMore?.()
      }
      let end = () => free(() => ctx.slots.giveBack(merchantCode))
      const onAnswer = () => {
        // A refund may have to be sent yet, in the same slot.
        if (claim.hasRefunds || !ctx.slots.mayEndCall()) return
        free(() => {
          end = ctx.slots.endCall(merchantCode)
        })
      }
      const plan = () => ({ ...describeSync(claim), ...origins.get(claim.leaseId) })
      const dueAgain = await ctx.tracing.run(plan, (step) => syncOne(ctx, claim, step, onAnswer))
      end()
      if (dueAgain) onMore?.()
    }),
  )
  return { count: claims.length, finished: finished.then(() => {}) }
}

/**
 * How long to wait before the next round when one found nothing (ms): until something is due, at most
 * a second, the net under NOTIFY; while every call slot is taken, until one may be free.
 */
export async function restSync(ctx: Context): Promise<number> {
  if (ctx.slots.countFree() === 0) return SLOT_POLL_MS
  return Math.max(MIN_REST_MS, await findNextDue(ctx, POLL_MS))
}

function describeSync({ merchantCode, transactionId, attempts }: Claim): StepPlan {
  return {
    name: 'sync transaction',
    kind: 'consumer',
    attributes: {
      'ipn.merchant_code': merchantCode,
      'ipn.transaction_id': transactionId,
      'sync.attempts': attempts,
    },
  }
}

const SETTLING: StepPlan = { name: 'settle', kind: 'internal' }

/** Asks and settles once. `onAnswer` is called between the two. Returns whether the transaction is due again. */
async function syncOne(
  ctx: Context,
  claim: Claim,
  step: Step,
  onAnswer: () => void,
): Promise<boolean> {
  const { merchantCode, transactionId } = claim
  const tell = (result: (typeof SYNC_RESULTS)[number]) => {
    ctx.metrics.syncQueries.inc({ result })
    step.note({ 'sync.result': result })
    if (result === 'failed' || result === 'abandoned') step.fail(result)
  }
  try {
    const began = performance.now()
    const call = await ctx.gateway.queryPayments(claim, ctx.givingUp)
    const { kind } = call.outcome
    if ('paused' in call.outcome || (ctx.givingUp.aborted && kind !== 'answered')) {
      await releaseClaim(ctx, claim)
      tell('handed_back')
      return false
    }
    ctx.slots.learn(kind === 'answered' || kind === 'rejected', began)
    onAnswer()
    const sentAfterMs = began - claim.knownAt
    const settled = await ctx.tracing.run(
      () => SETTLING,
      () => settleQuery(ctx, { claim, call, sentAfterMs, resume: ctx.tracing.capture() }),
    )
    const { next, lastError, dueAgain } =
      'attempt' in settled ? await sendRefund(ctx, claim, settled) : settled
    tell(RESULTS[next])
    ctx.log.debug({ merchantCode, transactionId, outcome: call.outcome.kind, next }, 'queried')
    if (next === 'abandon') {
      ctx.log.error(
        { merchantCode, transactionId, lastError },
        `transaction abandoned; POST /v1/transactions/${transactionId}/sync asks again`,
      )
    }
    return dueAgain
  } catch (error) {
    // Nothing is lost: the lease ends and the transaction is due again.
    tell('failed')
    ctx.log.error({ err: error, merchantCode, transactionId }, 'a query could not be settled')
    return false
  }
}

/** Sends the refund whose attempt is recorded: its bytes leave once, and its end is written under the same lease. */
async function sendRefund(ctx: Context, claim: Claim, sending: Sending): Promise<Settled> {
  const { attempt, end } = sending
  const call = await sendInTime(ctx, claim, sending)
  ctx.log.info(
    { merchantCode: claim.merchantCode, refundId: attempt.refundId, outcome: call.outcome.kind },
    'refund sent',
  )
  return await ctx.tracing.run(
    () => SETTLING,
    () => settleRefund(ctx, claim, { attempt, call }, end),
  )
}

/** A process that was held up between the record and the bytes must not send under a lease that is over. */
function sendInTime(
  ctx: Context,
  claim: Claim,
  { attempt: { prepared }, permit }: Sending,
): Promise<Call<string | undefined>> {
  const timeoutMs = ctx.config.GATEWAY_TIMEOUT_MS
  const heldMs = performance.now() - claim.knownAt
  if (heldMs < leaseMs(timeoutMs) - timeoutMs) return prepared.send(ctx.givingUp, permit)
  permit.forgo()
  const reason = 'the lease was nearly over before the first byte'
  const record = { command: 'REFUND' as const, bodySha256: prepared.bodySha256, durationMs: 0 }
  return Promise.resolve({
    outcome: { kind: 'unavailable', reason },
    record: { ...record, httpStatus: undefined },
  })
}
