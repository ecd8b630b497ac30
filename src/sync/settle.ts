import postgres from 'postgres'
import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { TRANSACTION_CHANGED } from '../db/due.ts'
import type { Call } from '../gateway/client.ts'
import type { ListedPayment } from '../gateway/messages.ts'
import { applyPayments, ForeignPaymentError } from '../payments/apply.ts'
import { summarisePayments } from '../transactions/state.ts'
import type { Claim } from './claim.ts'
import { type NextStep, type QueryEnd, scheduleNext } from './schedule.ts'

/** What was written; `lost` when the lease had gone to somebody else and nothing was. */
export type Settled = {
  next: NextStep['kind'] | 'lost'
  lastError: string | null
  dueAgain: boolean
}

/** Not final by documented meaning: waiting for the payer, and processing. */
const OPEN_CODES = ['9', '99']

type Row = { version: number; newer: boolean; state: string; asOf: string }

/**
 * Writes what a query brought, in one commit: the call, the payments, the changes, the sum, and when
 * to ask next. Nothing is written when the lease went to somebody else meanwhile. An answer that
 * cannot be true, or that the database refuses, counts as none: it is tried again and abandoned in the end.
 * @param sentAfterMs from `claim.claimedAt` to the sending, by the monotonic clock
 */
export async function settleQuery(
  ctx: Context,
  claim: Claim,
  call: Call<ListedPayment[]>,
  sentAfterMs: number,
): Promise<Settled> {
  try {
    return await ctx.sql.begin((tx) => settle(ctx, tx, claim, call, sentAfterMs))
  } catch (error) {
    const reason = explainUnusable(error)
    if (reason === undefined) throw error
    const { merchantCode, transactionId } = claim
    ctx.log.error({ err: error, merchantCode, transactionId }, 'an answer could not be stored')
    const outcome = { kind: 'unknown' as const, reason }
    return await ctx.sql.begin((tx) => settle(ctx, tx, claim, { ...call, outcome }, sentAfterMs))
  }
}

function explainUnusable(error: unknown): string | undefined {
  if (error instanceof ForeignPaymentError) return error.message
  const refused = error instanceof postgres.PostgresError
  return refused ? `the database refused the answer (${error.code})` : undefined
}

async function settle(
  ctx: Context,
  tx: Tx,
  claim: Claim,
  call: Call<ListedPayment[]>,
  sentAfterMs: number,
): Promise<Settled> {
  const row = await lockLeased(tx, claim, sentAfterMs)
  if (!row) return { next: 'lost', lastError: null, dueAgain: false }
  const callId = await recordCall(tx, claim, call, row.asOf)
  const { outcome } = call
  if (outcome.kind !== 'answered') {
    const code = outcome.kind === 'rejected' ? outcome.code : undefined
    const why = outcome.kind === 'rejected' ? `code ${code}: ${outcome.message}` : outcome.reason
    const open = code !== undefined && OPEN_CODES.includes(code)
    return await finish(ctx, tx, claim, { kind: open ? 'open' : 'failed', why })
  }
  if (!row.newer) {
    return await finish(ctx, tx, claim, { kind: 'overtaken' })
  }
  const applied = await applyPayments(tx, claim, outcome.value, { asOf: row.asOf, callId })
  const summary = summarisePayments(applied.payments)
  const missing = applied.payments.some((payment) => payment.missing)
  if (summary.state !== row.state) {
    await tx`
      insert into changes (merchant_code, transaction_id, field, before, after, call_id, cause)
      values (${claim.merchantCode}, ${claim.transactionId}, 'state', ${row.state}, ${summary.state},
        ${callId}, 'query')`
  }
  await tx`
    update transactions set
      state = ${summary.state}, final = ${summary.final}, paid_amount = ${summary.paidAmount},
      refunded_amount = ${summary.refundedAmount}, duplicate_payment = ${summary.duplicatePayment},
      as_of = ${row.asOf}, version = version + ${applied.changed ? 1 : 0},
      updated_at = case when ${applied.changed} then now() else updated_at end
    where merchant_code = ${claim.merchantCode} and transaction_id = ${claim.transactionId}`
  if (summary.final && !missing) return await finish(ctx, tx, claim, { kind: 'final' })
  const why = missing ? 'a payment is not listed any more' : `${summary.state}, not final`
  return await finish(ctx, tx, claim, { kind: 'open', why })
}

/** The fence: only who holds the lease gets the row, and keeps it locked until the commit. */
async function lockLeased(tx: Tx, claim: Claim, sentAfterMs: number): Promise<Row | undefined> {
  const [row] = await tx<Row[]>`
    select version, state, as_of is null or as_of < sent.at as newer, sent.at::text as "asOf"
    from transactions, (
      select ${claim.claimedAt}::timestamptz + ${sentAfterMs}::float8 * interval '1 millisecond' as at
    ) as sent
    where merchant_code = ${claim.merchantCode} and transaction_id = ${claim.transactionId}
      and lease_id = ${claim.leaseId}
    for update of transactions`
  return row
}

async function recordCall(
  tx: Tx,
  { merchantCode, transactionId }: Claim,
  { outcome, record }: Call<ListedPayment[]>,
  sentAt: string,
): Promise<number> {
  const code = { answered: '0', rejected: null, unavailable: null, unknown: null }[outcome.kind]
  const [row] = await tx<{ id: number }[]>`
    insert into gateway_calls (merchant_code, transaction_id, command, body_sha256, sent_at,
      duration_ms, outcome, http_status, code, message, answer)
    values (${merchantCode}, ${transactionId}, ${record.command}, ${record.bodySha256}, ${sentAt},
      ${record.durationMs}, ${outcome.kind}, ${record.httpStatus ?? null},
      ${outcome.kind === 'rejected' ? outcome.code : code},
      ${'message' in outcome ? outcome.message : outcome.reason},
      ${outcome.kind === 'answered' ? JSON.stringify(outcome.value) : null}::text::jsonb)
    returning id`
  if (!row) throw new Error('the call was not recorded')
  return row.id
}

/**
 * Ends the claim. Who asked while the query ran gets one more, and so does a question whose answer was
 * overtaken; both at the burst's distance.
 */
async function finish(ctx: Context, tx: Tx, claim: Claim, end: QueryEnd): Promise<Settled> {
  const step = scheduleNext(end, claim, ctx.config)
  const [row] = await tx<{ next: Settled['next']; dueAgain: boolean }[]>`
    update transactions set
      lease_id = null,
      attempts = case when want = claimed then ${step.attempts}::int else 0 end,
      polls = case when want = claimed then ${step.polls}::int else 0 end,
      last_error = ${step.lastError},
      abandoned_at = case when want = claimed and ${step.kind === 'abandon'} then now() end,
      due_at = case
        when want <> claimed or ${step.kind === 'at once'}
          then greatest(now(), queried_at + gap_ms * interval '1 millisecond')
        else now() + ${step.kind === 'again' ? step.inMs : null}::float8 * interval '1 millisecond' end
    where merchant_code = ${claim.merchantCode} and transaction_id = ${claim.transactionId}
    returning due_at is not null as "dueAgain",
      case when want = claimed then ${step.kind} else 'at once' end as next`
  const key = JSON.stringify([claim.merchantCode, claim.transactionId])
  await tx`select pg_notify(${TRANSACTION_CHANGED}, ${key})`
  if (!row) throw new Error('the claim was not ended')
  return { ...row, lastError: step.lastError }
}
