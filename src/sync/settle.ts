import postgres from 'postgres'
import type { Permit } from '../breaker.ts'
import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { announceChange } from '../db/due.ts'
import { runInTransaction } from '../db/transaction.ts'
import { announceDiscrepancies, type Recorded } from '../discrepancies/record.ts'
import { ForeignPaymentError } from '../payments/apply.ts'
import { findRefunded } from '../refunds/concern.ts'
import { type Attempt, type EndedAttempt, recordAttempt } from '../refunds/send.ts'
import { bringUpRefunds, type RefundsAtHand, saveRefunds } from '../refunds/settle.ts'
import { isOver } from '../refunds/transitions.ts'
import { writeKey } from '../transactions/find.ts'
import type { PaymentFacts } from '../transactions/state.ts'
import { holdAnswers, judgeEnd, listAnswered, writeAnswers } from './answers.ts'
import type { Claim } from './claim.ts'
import { type Answered, endClaims, LOST, lockLeased, type Settled } from './lease.ts'
import { announceNotes, type Notes, noteAnswers } from './note.ts'
import type { QueryEnd } from './schedule.ts'
import { sumUp, writeSums } from './summarise.ts'
import { type News, readShown, tellNews } from './tell.ts'

/** A refund's attempt was recorded instead of ending the claim: send it under the permit, then `settleRefund`. */
export type Sending = { attempt: Attempt; permit: Permit; end: QueryEnd }

/** `apart`: refunds have to be looked at, or something is wrong with an answer: one commit for each. */
export type Ending = Settled | 'apart'

/**
 * Writes what a query brought, in one commit: the call, the payments, the refunds, the changes, the sum,
 * and when to ask next, or which refund to send now under the same lease. Answers that come while a
 * commit is on its way share the next one, but for those with refunds. Nothing is written when the lease
 * went to somebody else meanwhile. An answer that cannot be true, or that the database refuses, counts
 * as none: it is tried again and abandoned in the end.
 */
export async function settleQuery(ctx: Context, answer: Answered): Promise<Settled | Sending> {
  const ending = answer.claim.hasRefunds
    ? 'apart'
    : await ctx.settling.add(answer, (answers) => settleTogether(ctx, answers))
  if (ending !== 'apart') return ending
  // Before the commit, so that no attempt is recorded that would not be made.
  const gate = ctx.breakers.of(answer.claim.merchantCode, 'refund')
  const permit = gate.enter()
  try {
    const settled = await settleAlone(ctx, answer, permit)
    if (!('attempt' in settled)) permit?.forgo()
    return settled
  } catch (error) {
    permit?.forgo()
    const reason = explainUnusable(error)
    if (reason === undefined) throw error
    const { merchantCode, transactionId } = answer.claim
    ctx.log.error({ err: error, merchantCode, transactionId }, 'an answer could not be stored')
    const call = { ...answer.call, outcome: { kind: 'unknown' as const, reason } }
    return await settleAlone(ctx, { ...answer, call }, undefined)
  }
}

function explainUnusable(error: unknown): string | undefined {
  if (error instanceof ForeignPaymentError) return error.message
  const refused = error instanceof postgres.PostgresError
  return refused ? `the database refused the answer (${error.code})` : undefined
}

/** One bad answer fails no other: then each has a commit of its own, where it shows whose it was. */
async function settleTogether(
  ctx: Context,
  answers: readonly Answered[],
): Promise<PromiseSettledResult<Ending>[]> {
  try {
    const { endings, notes } = await runInTransaction(ctx.sql, (tx) => settleMany(ctx, tx, answers))
    announceNotes(ctx, notes, answers)
    return endings.map((value) => ({ status: 'fulfilled', value }))
  } catch (error) {
    if (explainUnusable(error) === undefined) {
      return answers.map(() => ({ status: 'rejected', reason: error }))
    }
    return answers.map(() => ({ status: 'fulfilled', value: 'apart' }))
  }
}

async function settleMany(
  ctx: Context,
  tx: Tx,
  answers: readonly Answered[],
): Promise<{ endings: Ending[]; notes: Notes }> {
  const held = await holdAnswers(tx, answers)
  const concerned = await findRefunded(
    tx,
    held.map(({ claim, call }) => ({ key: claim, listed: listAnswered(call) })),
  )
  const written = await writeAnswers(
    tx,
    held.filter((_, index) => !concerned[index]),
  )
  const sums = written.flatMap(({ claim, row, applied, snapshot }) =>
    applied ? [sumUp({ claim, ...applied, refundsOpen: false, snapshot, before: row })] : [],
  )
  const turned = new Set(sums.filter(({ turnsFinal }) => turnsFinal).map(writeKey))
  const news = written.map(({ claim, applied }) => {
    const turnsFinal = turned.has(writeKey(claim))
    return { claim, changes: applied?.changes ?? [], turnsFinal, works: [] }
  })
  const ends = written.map(({ claim, call, row, applied }) => ({
    claim,
    end: judgeEnd(call, row.newer, applied?.payments ?? []),
  }))
  // Sent together, run one after the other.
  const [notes, , settled, shown] = await Promise.all([
    noteAnswers(tx, written),
    writeSums(ctx, tx, sums),
    endClaims(ctx, tx, ends),
    readShown(tx, news),
  ])
  const abandoned = ends.flatMap(({ claim }, index) => (isAbandoned(settled[index]) ? [claim] : []))
  await tellNews(ctx, tx, news, shown, { found: notes.found, abandoned })
  const endings = new Map<string, Ending>()
  for (const [index, { claim }] of held.entries())
    if (concerned[index]) endings.set(claim.leaseId, 'apart')
  for (const [index, { claim }] of written.entries())
    endings.set(claim.leaseId, settled[index] ?? LOST)
  return { endings: answers.map(({ claim }) => endings.get(claim.leaseId) ?? LOST), notes }
}

async function settleAlone(
  ctx: Context,
  answer: Answered,
  permit: Permit | undefined,
): Promise<Settled | Sending> {
  const { ending, notes } = await runInTransaction(ctx.sql, (tx) =>
    settleApart(ctx, tx, answer, permit),
  )
  announceNotes(ctx, notes, [answer])
  return ending
}

/** @param permit to send a refund; without one those that are due for it wait for the breaker's time */
async function settleApart(
  ctx: Context,
  tx: Tx,
  answer: Answered,
  permit: Permit | undefined,
): Promise<{ ending: Settled | Sending; notes: Notes }> {
  const [one] = await writeAnswers(tx, await holdAnswers(tx, [answer]))
  if (!one) return { ending: LOST, notes: { found: [], ipnDelaysS: [] } }
  const { claim, call, row, snapshot, applied } = one
  const { found, ipnDelaysS } = await noteAnswers(tx, [one])
  const hand = await bringUpRefunds(ctx, tx, claim, { snapshot, changed: applied?.changed })
  const notes = { found: [...found, ...hand.found], ipnDelaysS }
  const maySend = snapshot && permit && !ctx.stopping.aborted
  const attempt = maySend ? await recordAttempt(ctx, tx, hand, snapshot) : undefined
  const pausedMs = ctx.breakers.of(claim.merchantCode, 'refund').waitMs()
  const answered = call.outcome.kind === 'answered'
  const isHeldUp = snapshot !== undefined && permit === undefined
  const turn = isHeldUp
    ? { answered, had: false, pausedMs }
    : { answered, had: attempt === undefined }
  const refundsChanged = await saveRefunds(ctx, tx, hand.works, turn)
  const refundsOpen = hasOpenRefunds(hand)
  const payments = applied?.payments ?? listFacts(hand)
  const changed = refundsChanged || hand.foreignChanged || applied?.changed === true
  const sum = sumUp({ claim, payments, changed, refundsOpen, snapshot, before: row })
  const isNews = applied !== undefined || changed
  if (isNews) await writeSums(ctx, tx, [sum])
  const turnsFinal = isNews && sum.turnsFinal
  const news = { claim, changes: applied?.changes ?? [], turnsFinal, works: hand.works }
  const end = awaitGrowth(judgeEnd(call, row.newer, applied?.payments ?? []), hand)
  const ended = attempt ? undefined : end
  const settled = await endAlone(ctx, tx, { news, end: ended, found: notes.found })
  return { ending: attempt && permit ? { attempt, permit, end } : settled, notes }
}

/**
 * Ends the claim of a commit of its own, and records its events.
 * @param end undefined when the claim goes on, to send a refund
 */
async function endAlone(
  ctx: Context,
  tx: Tx,
  {
    news,
    end,
    found,
  }: { news: News & { claim: Claim }; end: QueryEnd | undefined; found: readonly Recorded[] },
): Promise<Settled> {
  const { claim } = news
  // Sent together, run one after the other.
  const [[settled = LOST], shown] = await Promise.all([
    end ? endClaims(ctx, tx, [{ claim, end }]) : announceChange(tx, claim),
    readShown(tx, [news]),
  ])
  await tellNews(ctx, tx, [news], shown, { found, abandoned: isAbandoned(settled) ? [claim] : [] })
  return settled
}

function isAbandoned(settled: Settled | undefined): boolean {
  return settled?.next === 'abandon'
}

/**
 * Writes how a refund's attempt ended, with the notifications that came meanwhile, and ends the claim.
 * When the lease was lost nothing is written: whoever has it now finds the attempt interrupted.
 * @param end what the query before the attempt meant for the schedule
 */
export async function settleRefund(
  ctx: Context,
  claim: Claim,
  ended: EndedAttempt,
  end: QueryEnd,
): Promise<Settled> {
  const { settled, found } = await runInTransaction(ctx.sql, async (tx) => {
    const row = (await lockLeased(tx, [{ claim, sentAfterMs: 0 }])).get(claim.leaseId)
    if (!row) return { settled: LOST, found: [] }
    const hand = await bringUpRefunds(ctx, tx, claim, { ended })
    const saved = await saveRefunds(ctx, tx, hand.works, { had: false, answered: true })
    const changed = saved || hand.foreignChanged
    const refundsOpen = hasOpenRefunds(hand)
    const payments = listFacts(hand)
    const sum = sumUp({ claim, payments, changed, refundsOpen, snapshot: undefined, before: row })
    await writeSums(ctx, tx, [sum])
    const { found, works } = hand
    const news = { claim, changes: [], turnsFinal: sum.turnsFinal, works }
    const settled = await endAlone(ctx, tx, { news, end: awaitGrowth(end, hand), found })
    return { settled, found }
  })
  announceDiscrepancies(ctx, found)
  return settled
}

/** A refund that happened shows in the payment's sum sooner or later: until it does, the sum is not settled. */
function awaitGrowth(end: QueryEnd, hand: RefundsAtHand): QueryEnd {
  if (end.kind !== 'final') return end
  const unseen =
    hand.works.some(({ now }) => now.status === 'succeeded' && !now.matched) ||
    hand.payments.some(({ foreign }) => foreign.some(({ matched }) => !matched))
  return unseen ? { kind: 'open', why: 'a refund does not show in its payment yet' } : end
}

function hasOpenRefunds({ works }: RefundsAtHand): boolean {
  return works.some((work) => !isOver(work))
}

function listFacts({ payments }: RefundsAtHand): PaymentFacts[] {
  return payments.map(({ status, amount, refundedNow }) => ({
    status,
    amount,
    refundedAmount: refundedNow,
  }))
}
