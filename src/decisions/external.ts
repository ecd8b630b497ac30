import { randomUUID } from 'node:crypto'
import { Big } from 'big.js'
import { describeActor } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { StoredResolution } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import {
  buildDiscrepancyEvents,
  logDiscrepancies,
  recordDiscrepancies,
  resolveDiscrepancies,
} from '../discrepancies/store.ts'
import { DomainError } from '../errors.ts'
import type { NewEvent } from '../events/record-events.ts'
import { addAmounts, compareAmounts } from '../money.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { buildUpdatedEvents, readExternalEvents } from '../refunds/events.ts'
import { changeExternal, countExternal, enterExternal, nameExternal } from '../refunds/external.ts'
import { DECIDED, deriveExternalState, type ExternalRecord } from '../refunds/external-view.ts'
import { lockRefunds } from '../refunds/lock-refunds.ts'
import { rejudgeInferred } from '../refunds/match.ts'
import {
  buildGrowthFinding,
  measureCounted,
  measureUnexplained,
  measureUnmatched,
} from '../refunds/measure.ts'
import { saveDraft, saveExternalRefunds } from '../refunds/save.ts'
import type { ExternalDraft, ExternalRow, LockedPayment, LockedRefunds } from '../refunds/types.ts'
import { describeDecided, refuseAgainstEvidence } from './refusals.ts'
import { describeSelfDecided, listTransactionsOf, requireAnother } from './second-person.ts'
import { buildPaymentEvent, decide, describeResolution, recordResolution } from './unit-of-work.ts'

export const EXTERNAL_OUTCOMES = ['matched', 'part_of_first_sight', 'never_happened'] as const
type ExternalOutcome = (typeof EXTERNAL_OUTCOMES)[number]

type ExternalResolution = {
  outcome: ExternalOutcome
  reason: string
  againstEvidence?: boolean | undefined
}

type LockedExternal = { draft: ExternalDraft; payment: LockedPayment; locked: LockedRefunds }

const OPERATION = 'POST /v1/external-refunds/{externalRefundId}/resolution'

/**
 * Decides about an external refund. `matched` uses up unexplained growth, or replaces what a person entered for it;
 * `part_of_first_sight` uses up what was refunded when the payment was first seen; `never_happened` deducts nothing
 * more. Growth that is unexplained afterwards is a discrepancy at once. Whoever asked for a refund of the payment that
 * has not ended may not decide while another person may.
 * @param found as the caller read it: of two decisions at once, the second finds it changed
 * @throws DomainError `not_decidable`, `against_evidence`, `same_person`
 */
export async function resolveExternalRefund(
  ctx: Context,
  found: ExternalRecord,
  request: ExternalResolution,
  access: Access,
): Promise<void> {
  const { merchantCode, transactionId, paymentId, id } = found
  const key = { merchantCode, transactionId }
  await decide(ctx, {
    ...{ ...key, locksOrder: true, actor: access, operation: OPERATION, objectId: id },
    apply: async (tx) => {
      const external = findLocked(await lockRefunds(tx, key, null), found)
      const contrary = judge(external, found, request)
      const heldBack = { ...key, paymentId, refundId: null }
      const own = await requireAnother(tx, access, heldBack, `decide external refund ${id}`)
      const resolution = describeResolution(ctx, request, access, contrary)
      const decider = `${describeActor(access)}${describeSelfDecided(access, own)}`
      applyDecision(external, request.outcome, resolution, decider)
      const changes = await saveExternalRefunds(tx, key, external.locked)
      const name = nameExternal(found.requestId, external.draft.now.amount)
      const recorded = await recordResolution(tx, { ...key, paymentId }, resolution, {
        ours: `${name} decided as ${resolution.outcome} by ${resolution.by}`,
        // Those of other external refunds are found again by the next answer.
        answered: [
          { kind: 'external_refund_unmatched' },
          { kind: 'external_refund_contradicted', ours: name },
        ],
      })
      const again = await judgeGrowthAgain(ctx, tx, key, external)
      const discrepancies = [...recorded, ...again.found]
      const refundIds = [...new Set([...own.map(({ refundId }) => refundId), ...again.doubted])]
      return {
        ...{ value: undefined, log: 'external refund resolved by an operator' },
        changed: listTransactionsOf([...own, key]),
        buildEvents: async () => [
          ...(await buildPaymentEvent(tx, key, paymentId)),
          ...(await readExternalEvents(tx, merchantCode, changes)),
          ...(await buildUpdatedEvents(ctx, tx, { merchantCode, refundIds })),
          ...buildDiscrepancyEvents(discrepancies),
        ],
        afterCommit: () => logDiscrepancies(ctx, discrepancies),
      }
    },
  })
}

function findLocked(locked: LockedRefunds, found: ExternalRecord): LockedExternal {
  const draft = locked.external.find(({ now }) => now.id === found.id)
  const payment = locked.payments.find(({ paymentId }) => paymentId === found.paymentId)
  if (draft && payment) return { draft, payment, locked }
  throw refuse(found, 'its payment has just moved to another transaction; try again')
}

/** Refuses a decision, with the state of the external refund and any earlier decision. */
function refuse(
  row: Pick<ExternalRow, 'id' | 'matched' | 'outcome' | 'resolution'>,
  detail: string,
): DomainError {
  const state = deriveExternalState(row)
  const text = `External refund ${row.id} is ${state}: ${detail}${describeDecided(row.resolution)}`
  return new DomainError('not_decidable', text, { extra: { state } })
}

/** Why the state of an external refund does not admit an outcome; undefined when it does. */
export function findExternalObstacle(
  row: Pick<ExternalRecord, 'matched' | 'outcome'>,
  outcome: ExternalOutcome,
): 'own' | 'already' | 'nothing_deducted' | undefined {
  const state = deriveExternalState(row)
  if (state === 'own') return 'own'
  if (state === outcome) return 'already'
  return state === 'released' && outcome === 'never_happened' ? 'nothing_deducted' : undefined
}

const EXPLAINED = {
  already: () => 'it is decided already',
  nothing_deducted: () => 'nothing is deducted for it any more',
  own: ({ requestId }: ExternalRow) =>
    `it is a refund of this service, which is decided with POST /v1/refunds/${requestId}/resolution`,
}

/** @returns what the decision contradicts; null for nothing @throws DomainError when it is refused */
function judge(
  external: LockedExternal,
  found: ExternalRecord,
  { outcome, againstEvidence = false }: ExternalResolution,
): string | null {
  const { now } = external.draft
  const before = deriveExternalState(found)
  if (deriveExternalState(now) !== before) {
    throw refuse(now, `it was ${before} when the decision was requested`)
  }
  const obstacle = findExternalObstacle(now, outcome)
  if (obstacle) throw refuse(now, EXPLAINED[obstacle](now))
  const contrary = findContrary(external, outcome)
  if (contrary !== null && !againstEvidence) {
    throw refuseAgainstEvidence(outcome, [contrary], (detail) => refuse(now, detail))
  }
  if (outcome === 'part_of_first_sight') requireFirstSight(external)
  return contrary
}

/** Finds what a decision contradicts; null while only the notification of a success is known. */
function findContrary(external: LockedExternal, outcome: ExternalOutcome): string | null {
  const { payment, locked } = external
  const row = external.draft.now
  const state = deriveExternalState(row)
  if (state === 'reserved') {
    if (row.failureNotifiedAt === null) return null
    if (outcome !== 'never_happened') return 'its failure was notified'
    const hasGrown = compareAmounts(measureCounted(payment, locked.drafts), row.amount) >= 0
    return hasGrown ? 'the refunded amount grew by it, and no other refund explains that' : null
  }
  if (row.resolution !== null) return `a person decided it as ${row.resolution.outcome}`
  if (state === 'matched') return 'the refunded amount shows it'
  if (state === 'released')
    return 'its failure was notified, or another reading of its notification was matched'
  return 'the refunded amount showed it when the payment was first seen'
}

/** @throws DomainError unless enough of what was refunded at first is not known to be other refunds */
function requireFirstSight({ draft, payment, locked }: LockedExternal): void {
  const own = locked.drafts.filter(({ now }) => now.inFirstSight && isOf(payment, now))
  const explained = [payment.explainedAtFirst, ...own.map(({ now }) => now.amount)]
  const left = new Big(payment.refundedAtFirst).minus(addAmounts(explained))
  if (left.gte(draft.now.amount)) return
  const detail = `only ${left.toFixed()} of what was refunded when the payment was first seen is not explained by other refunds`
  throw refuse(draft.now, detail)
}

const isOf = ({ paymentId }: LockedPayment, one: { paymentId: string }) =>
  one.paymentId === paymentId

/** @throws DomainError `not_decidable` when no growth is left that may be it */
function applyDecision(
  external: LockedExternal,
  outcome: ExternalOutcome,
  resolution: StoredResolution,
  decider: string,
): void {
  const { draft, payment, locked } = external
  const { requestId, amount } = draft.now
  const isMatched = outcome === 'matched'
  const fits = new Big(measureUnmatched(payment, locked.drafts)).gte(amount)
  if (isMatched && !fits) takeEntered(external)
  const { reason, againstEvidence } = resolution
  const against = againstEvidence === null ? '' : ` (against evidence: ${againstEvidence})`
  const cause = `${DECIDED} ${decider}: ${reason}${against}; refund of ${amount} made elsewhere (request ${requestId})`
  const state = { matched: isMatched, outcome: isMatched ? null : outcome }
  changeExternal(draft, { ...state, resolution }, { reason: cause })
  countExternal(locked)
}

/**
 * Takes the amount off the smallest sufficient refund that a person entered for the growth.
 * @throws DomainError `not_decidable` when there is none
 */
function takeEntered({ draft, payment, locked }: LockedExternal): void {
  const { amount, requestId } = draft.now
  const [entered] = locked.external
    .filter(({ now }) => isOf(payment, now) && now.source === 'person')
    .filter(({ now }) => now.matched && now.outcome === null)
    .filter(({ now }) => compareAmounts(now.amount, amount) >= 0)
    .toSorted((a, b) => compareAmounts(a.now.amount, b.now.amount))
  if (!entered) {
    const detail = `the refunded amount is ${payment.refundedNow}, and no increase of ${amount} is left to match it`
    throw refuse(draft.now, detail)
  }
  const left = new Big(entered.now.amount).minus(amount)
  const rest = left.gt(0) ? `; ${left.toFixed()} is left of it` : ''
  const reason = `a notified refund of ${amount} (request ${requestId}) takes its place${rest}`
  const taken = left.gt(0)
    ? { amount: left.toFixed() }
    : ({ matched: false, outcome: 'released' } as const)
  changeExternal(entered, taken, { reason })
}

/**
 * The decision's commit, and not only the next answer, records growth that nothing explains any more.
 * @returns the discrepancies recorded for the first time, and the refunds that were left to a person
 */
async function judgeGrowthAgain(
  { config }: Pick<Context, 'config'>,
  tx: Tx,
  key: TransactionKey,
  { payment, locked }: LockedExternal,
): Promise<{ found: RecordedDiscrepancy[]; doubted: string[] }> {
  const doubted = await doubtInferred(config, tx, { payment, locked })
  const { paymentId } = payment
  const unexplained = measureUnexplained(payment, locked.drafts)
  await resolveDiscrepancies(tx, [{ ...key, paymentId, kind: 'unexplained_growth' }])
  const isGrown = compareAmounts(unexplained, '0') > 0
  const growth = isGrown ? [{ ...key, ...buildGrowthFinding(payment, unexplained) }] : []
  const found = await recordDiscrepancies(tx, growth)
  return { found, doubted }
}

/** @returns the ids of the inferred refunds that are not shown any more and were left to a person */
async function doubtInferred(
  config: Context['config'],
  tx: Tx,
  { payment, locked: { drafts } }: Omit<LockedExternal, 'draft'>,
): Promise<string[]> {
  rejudgeInferred(payment, drafts)
  const doubted = drafts.filter(({ transitions }) => transitions.length > 0)
  for (const draft of doubted) draft.dueInMs = null
  for (const draft of drafts) await saveDraft(tx, config, draft)
  return doubted.map(({ now }) => now.refundId)
}

/**
 * Enters unexplained growth as an external refund, matched at once, so that what is left stays the same; growth from
 * which a success was inferred is left out. The caller holds the transaction's row, and none of a payment, a refund or
 * a discrepancy.
 * @returns the amount (decimal string), the events, and the refunds left to a person; undefined when nothing is
 *   entered
 */
export async function enterExternalRefund(
  ctx: Pick<Context, 'now' | 'config'>,
  tx: Tx,
  { merchantCode, transactionId, paymentId }: TransactionKey & { paymentId: string },
  access: Pick<Access, 'name' | 'isPerson'>,
  reason: string,
): Promise<{ amount: string; events: NewEvent[]; doubted: string[] } | undefined> {
  const key = { merchantCode, transactionId }
  const locked = await lockRefunds(tx, key, null)
  const payment = locked.payments.find((one) => one.paymentId === paymentId)
  const amount = payment ? measureUnexplained(payment, locked.drafts) : '0'
  if (!payment || compareAmounts(amount, '0') <= 0) return undefined
  const resolution = describeResolution(ctx, { outcome: 'matched', reason }, access, null)
  const cause = `${DECIDED} ${describeActor(access)}: ${reason}; an increase of ${amount} that nothing explained is a refund made elsewhere`
  const row = { id: randomUUID(), requestId: `entered-${randomUUID()}`, paymentId, amount }
  enterExternal(locked, { ...row, resolution }, { reason: cause })
  const changes = await saveExternalRefunds(tx, key, locked)
  countExternal(locked)
  const events = await readExternalEvents(tx, merchantCode, changes)
  return { amount, events, doubted: await doubtInferred(ctx.config, tx, { payment, locked }) }
}
