import { randomUUID } from 'node:crypto'
import { and, eq } from 'drizzle-orm'
import { describeActor } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { externalRefunds, type StoredResolution } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import {
  buildDiscrepancyEvents,
  logDiscrepancies,
  recordDiscrepancies,
  resolveDiscrepancies,
} from '../discrepancies/store.ts'
import type { NewEvent } from '../events/record-events.ts'
import { compareAmounts } from '../money.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { lockRefunds } from '../refunds/case.ts'
import {
  buildExternalEvents,
  buildUpdatedEvents,
  readExternalRefunds,
  recordExternalChanges,
} from '../refunds/events.ts'
import { nameExternal } from '../refunds/external.ts'
import { DECIDED, deriveExternalState, type ExternalRecord } from '../refunds/external-view.ts'
import { measureUnexplained } from '../refunds/obstacle.ts'
import type { ExternalChange } from '../refunds/types.ts'
import {
  checkFirstSight,
  type ExternalOutcome,
  findContrary,
  fitsGrowth,
  judgeGrowthAgain,
  refuseExternal,
} from './judge-external.ts'
import { refuseAgainstEvidence } from './refusals.ts'
import { describeSelfDecided, requireAnother } from './second-person.ts'
import { buildPaymentEvent, decide, describeResolution } from './unit-of-work.ts'

const OPERATION = 'POST /v1/external-refunds/{externalRefundId}/resolution'

export type ExternalResolution = {
  outcome: ExternalOutcome
  reason: string
  againstEvidence?: boolean | undefined
}

/**
 * Applies a person's decision about a refund made elsewhere, and records it with the API key's name and the
 * reason. `matched` uses up growth that nothing explains, or takes the place of what a person entered for it;
 * `part_of_first_sight` uses up what was refunded when the payment was first seen; `never_happened` deducts
 * nothing more. Growth that nothing explains any more is a discrepancy at once. Whoever asked for a refund of the payment
 * that has not ended does not decide, while another may.
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
    ...{ ...key, actor: access, operation: OPERATION, objectId: id },
    apply: async (tx) => {
      const { contrary, replaced } = await judge(tx, found, request)
      const heldBack = { merchantCode, paymentId, refundId: null }
      const own = await requireAnother(tx, access, heldBack, `decide external refund ${id}`)
      const resolution = describeResolution(ctx, request, access, contrary)
      const decider = `${describeActor(access)}${describeSelfDecided(access, own)}`
      const { outcome } = request
      const changes = [
        ...replaced,
        await applyDecision(tx, found, { outcome, resolution, decider }),
      ]
      await recordExternalChanges(tx, key, changes)
      const recorded = await recordDecision(tx, found, resolution)
      const again = await judgeGrowthAgain(tx, key, paymentId)
      const discrepancies = [...recorded, ...again.found]
      const touched = [...own, ...again.doubted].map(({ refundId }) => refundId)
      const refundIds = [...new Set(touched)]
      return {
        ...{ value: undefined, changed: [key], log: 'external refund resolved by an operator' },
        buildEvents: async () => [
          ...(await buildPaymentEvent(tx, key, paymentId)),
          ...(await buildChangedExternal(tx, merchantCode, changes)),
          ...(await buildUpdatedEvents(ctx, tx, { merchantCode, refundIds })),
          ...buildDiscrepancyEvents(discrepancies),
        ],
        afterCommit: () => logDiscrepancies(ctx, discrepancies),
      }
    },
  })
}

async function buildChangedExternal(
  tx: Tx,
  merchantCode: string,
  changes: readonly ExternalChange[],
): Promise<NewEvent[]> {
  const ids = changes.map(({ externalId }) => externalId)
  return buildExternalEvents(await readExternalRefunds(tx, merchantCode, ids), changes)
}

/**
 * Locks the payment with its refunds, and judges the decision.
 * @returns what it contradicts, if anything, and the change of what a person had entered for it
 * @throws DomainError when it is refused
 */
async function judge(
  tx: Tx,
  found: ExternalRecord,
  { outcome, againstEvidence = false }: ExternalResolution,
): Promise<{ contrary: string | null; replaced: ExternalChange[] }> {
  const { merchantCode, transactionId, paymentId, id } = found
  const { payments, drafts } = await lockRefunds(tx, { merchantCode, transactionId }, null)
  const [row] = await readExternalRefunds(tx, merchantCode, [id])
  const payment = payments.find((one) => one.paymentId === paymentId)
  if (!row || !payment) {
    throw refuseExternal(found, 'its payment has just moved to another transaction; try again')
  }
  const before = deriveExternalState(found)
  if (deriveExternalState(row) !== before) {
    throw refuseExternal(row, `it was ${before} when the decision was requested`)
  }
  const contrary = findContrary(row, outcome)
  if (contrary !== null && !againstEvidence) {
    throw refuseAgainstEvidence(outcome, [contrary], (detail) => refuseExternal(row, detail))
  }
  if (outcome === 'part_of_first_sight') checkFirstSight(row, payment, drafts)
  const isNew = outcome !== 'matched' || fitsGrowth(row, payment, drafts)
  const replaced = isNew ? [] : await takeEntered(tx, row)
  if (!isNew && replaced.length === 0) {
    const detail = `the refunded amount is ${payment.refundedNow}, and no increase of ${row.amount} is left to match it`
    throw refuseExternal(row, detail)
  }
  return { contrary, replaced }
}

/**
 * Takes the amount off a refund that a person entered for growth that nothing explained: the notification names
 * what it was.
 * @returns its change; empty when none is large enough
 */
async function takeEntered(
  tx: Tx,
  { merchantCode, paymentId, amount, requestId }: ExternalRecord,
): Promise<ExternalChange[]> {
  const taken = await tx<{ externalId: string; left: string | null }[]>`
    with entered as (
      select id, amount from foreign_refunds
      where merchant_code = ${merchantCode} and payment_id = ${paymentId} and source = 'person' and matched
        and outcome is null and amount >= ${amount}
      order by amount, id limit 1
    )
    update foreign_refunds f set
      amount = case when f.amount > ${amount} then f.amount - ${amount} else f.amount end,
      matched = f.amount > ${amount}, outcome = case when f.amount > ${amount} then null else 'released' end
    from entered where f.merchant_code = ${merchantCode} and f.id = entered.id
    returning f.id as "externalId", case when f.matched then f.amount::text end as left`
  return taken.map(({ externalId, left }) => {
    const rest = left === null ? '' : `; ${left} is left of it`
    const reason = `a notified refund of ${amount} (request ${requestId}) takes its place${rest}`
    const after = left === null ? ('released' as const) : ('matched' as const)
    return { externalId, paymentId, before: 'matched', after, cause: { reason } }
  })
}

type AppliedDecision = { outcome: ExternalOutcome; resolution: StoredResolution; decider: string }

async function applyDecision(
  tx: Tx,
  found: ExternalRecord,
  { outcome, resolution, decider }: AppliedDecision,
): Promise<ExternalChange> {
  const { merchantCode, id, paymentId, amount, requestId } = found
  const matched = outcome === 'matched'
  await build(tx)
    .update(externalRefunds)
    .set({ matched, outcome: outcome === 'matched' ? null : outcome, resolution })
    .where(and(eq(externalRefunds.merchantCode, merchantCode), eq(externalRefunds.id, id)))
  const { reason, againstEvidence } = resolution
  const against = againstEvidence === null ? '' : ` (against evidence: ${againstEvidence})`
  const cause = `${DECIDED} ${decider}: ${reason}${against}; refund of ${amount} made elsewhere (request ${requestId})`
  const before = deriveExternalState(found)
  return { externalId: id, paymentId, before, after: outcome, cause: { reason: cause } }
}

async function recordDecision(
  tx: Tx,
  { merchantCode, transactionId, paymentId, requestId, amount }: ExternalRecord,
  { outcome, by, againstEvidence }: StoredResolution,
): Promise<RecordedDiscrepancy[]> {
  const key = { merchantCode, transactionId, paymentId }
  // Those of other external refunds are found again by the next answer.
  await resolveDiscrepancies(tx, [
    { ...key, kind: 'external_refund_unmatched' },
    { ...key, kind: 'external_refund_contradicted', ours: nameExternal(requestId, amount) },
  ])
  if (againstEvidence === null) return []
  const ours = `external refund ${requestId} of ${amount} decided as ${outcome} by ${by}`
  const kind = 'decided_against_evidence'
  return await recordDiscrepancies(tx, [{ ...key, kind, ours, theirs: againstEvidence }])
}

/** Who enters an external refund, and why. */
export type EnteredBy = {
  access: Pick<Access, 'name' | 'isPerson'>
  reason: string
  decidedAt: Date
}

/**
 * Enters the growth of a payment that nothing explains as a refund made elsewhere, on the word of the person who
 * resolves the discrepancy `unexplained_growth`. It is matched at once, so what is left to refund stays the same. Growth
 * from which the success of a refund of ours was inferred is not entered: that refund stays reserved.
 * The caller holds the transaction's row; this locks its payments and its refunds: call it before any statement that
 * locks another row of them or a discrepancy.
 * @returns the amount (decimal string) and the events to record as the last statement of the unit of work; undefined
 *   when no growth is left unexplained, and nothing was written
 */
export async function enterExternalRefund(
  tx: Tx,
  key: TransactionKey,
  paymentId: string,
  { access, reason, decidedAt }: EnteredBy,
): Promise<{ amount: string; events: NewEvent[] } | undefined> {
  const { merchantCode, transactionId } = key
  const { payments, drafts } = await lockRefunds(tx, { merchantCode, transactionId }, null)
  const payment = payments.find((one) => one.paymentId === paymentId)
  const amount = payment ? measureUnexplained(payment, drafts) : '0'
  if (compareAmounts(amount, '0') <= 0) return undefined
  const resolution: StoredResolution = {
    outcome: 'matched',
    reason,
    by: access.name,
    againstEvidence: null,
    decidedAt: decidedAt.toISOString(),
  }
  const requestId = `entered-${randomUUID()}`
  const row = { merchantCode, requestId, paymentId, amount, matched: true, resolution }
  const [stored] = await build(tx)
    .insert(externalRefunds)
    .values({ ...row, source: 'person' })
    .returning({ externalId: externalRefunds.id })
  if (!stored) throw new Error('the external refund was not stored')
  const cause = {
    reason: `${DECIDED} ${describeActor(access)}: ${reason}; an increase of ${amount} that nothing explained is a refund made elsewhere`,
  }
  const changes: ExternalChange[] = [
    { ...stored, paymentId, before: null, after: 'matched', cause },
  ]
  await recordExternalChanges(tx, key, changes)
  return { amount, events: await buildChangedExternal(tx, merchantCode, changes) }
}
