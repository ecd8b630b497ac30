import { describeActor } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { ReviewNote } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { DiscrepancyRow } from '../discrepancies/kinds.ts'
import { buildDiscrepancyUpdate, findDiscrepancy } from '../discrepancies/store.ts'
import { DomainError, invalidField } from '../errors.ts'
import { type NewEvent, recordChanges } from '../events/record-events.ts'
import { compareAmounts } from '../money.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { buildUpdatedEvents } from '../refunds/events.ts'
import type { RefundRecord } from '../refunds/find.ts'
import { notifyTransactionChanged } from '../transactions/due.ts'
import { enterExternalRefund } from './external.ts'
import { describeSelfDecided, listTransactionsOf, requireAnother } from './second-person.ts'
import { decide } from './unit-of-work.ts'

export type DiscrepancyStep = {
  field: 'discrepancy' | 'discrepancy_note' | 'discrepancy_assignee'
  before: string | null
  after: string | null
  /** What was done, without the key that did it. */
  verb: string
  /** What else is to be said of whoever did it. */
  also?: string
  reason: string
  /** The transactions that it changes what is known of. */
  changed?: readonly TransactionKey[]
  /** Builds the events of what else happened. */
  buildEvents?: () => Promise<NewEvent[]>
}

/**
 * Changes a discrepancy, in one unit of work with its entry in the timeline, the audit entry and the event.
 * @param write changes the row, locked after its transaction; undefined if its state forbids that
 * @returns the discrepancy as it is now
 * @throws DomainError `discrepancy_resolved`, with what was decided
 */
export async function changeDiscrepancy(
  ctx: Pick<Context, 'sql' | 'log'>,
  access: Access,
  { merchantCode, transactionId, id }: DiscrepancyRow,
  operation: string,
  write: (tx: Tx, row: DiscrepancyRow) => Promise<DiscrepancyStep | undefined>,
): Promise<DiscrepancyRow> {
  return await decide(ctx, {
    ...{ merchantCode, transactionId, actor: access, operation, objectId: String(id) },
    apply: async (tx) => {
      const before = await findDiscrepancy(tx, [merchantCode], String(id))
      const step = await write(tx, before)
      if (!step) throw new DomainError('discrepancy_resolved', describeResolution(before))
      const after = await findDiscrepancy(tx, [merchantCode], String(id))
      const { paymentId, refundId, kind } = after
      const { verb, also = '', reason, changed = [], buildEvents, ...change } = step
      const cause = `discrepancy ${id} (${kind}) ${verb} ${describeActor(access)}${also}: ${reason}`
      const key = { merchantCode, transactionId, paymentId, refundId }
      await recordChanges(tx, [{ ...key, ...change, cause }])
      return {
        ...{ value: after, changed, log: `discrepancy ${verb}` },
        buildEvents: async () => [
          ...((await buildEvents?.()) ?? []),
          buildDiscrepancyUpdate(after),
        ],
      }
    },
  })
}

function describeResolution({ id, resolvedAt, resolvedBy, resolution }: DiscrepancyRow): string {
  const how =
    resolvedBy === null
      ? `The two sides of discrepancy ${id} have agreed again since ${toIso(resolvedAt)}`
      : `Discrepancy ${id} was resolved by ${resolvedBy} at ${toIso(resolvedAt)}: ${resolution}`
  return `${how}. You can still add a note with POST /v1/discrepancies/${id}/note`
}

const OPERATION = 'POST /v1/discrepancies/{id}/resolution'

/** Kinds whose resolution changes what the next answer makes of the transaction. */
const QUERIED_AGAIN: readonly string[] = ['payment_unreadable', 'unexplained_growth']

export type DiscrepancyDecision = {
  reason: string
  /**
   * Of `unexplained_growth`: the amount that the person was shown as the one to be entered (decimal string). Nothing is
   * resolved when it has changed since.
   */
  shownAmount?: string | undefined
}

/**
 * Resolves a discrepancy by a person's decision. It stays resolved while both sides stay the same. Whoever asked for a
 * refund of its payment that has not ended does not resolve it, while another may decide.
 *
 * Resolving `payment_unreadable` sets the entry aside until its text changes: it no longer keeps the transaction
 * from becoming final. Resolving `unexplained_growth` enters the growth as an external refund; nothing is left of it then.
 * @throws DomainError `discrepancy_resolved`, `same_person`, or `not_decidable` with `changed`
 */
export async function resolveDiscrepancy(
  ctx: Pick<Context, 'encryption' | 'sql' | 'log'>,
  access: Access,
  found: DiscrepancyRow,
  { reason, shownAmount }: DiscrepancyDecision,
): Promise<DiscrepancyRow> {
  return await changeDiscrepancy(ctx, access, found, OPERATION, async (tx, row) => {
    const { merchantCode, transactionId, id, kind, paymentId } = row
    if (row.resolvedAt !== null) return undefined
    const decision = { access, reason, decidedAt: new Date() }
    const entered =
      kind === 'unexplained_growth' && paymentId !== null
        ? await enterExternalRefund(tx, row, paymentId, decision)
        : undefined
    requireShownAmount(row, shownAmount, entered?.amount ?? '0')
    const own = await requireAnother(tx, access, row, `resolve discrepancy ${id}`)
    await tx`
      update discrepancies set resolved_at = now(), resolved_by = ${access.name}, resolution = ${reason},
        over_at = null
      where merchant_code = ${merchantCode} and id = ${id} and resolved_at is null`
    const isQueried = QUERIED_AGAIN.includes(kind)
    const marked = listTransactionsOf(own)
    const refundIds = own.map(({ refundId }) => refundId)
    return {
      ...{ field: 'discrepancy', before: 'open', after: 'resolved', verb: 'resolved', reason },
      also: describeSelfDecided(access, own),
      changed: [
        ...marked.filter((one) => one.transactionId !== transactionId || !isQueried),
        ...(isQueried ? [{ merchantCode, transactionId }] : []),
      ],
      buildEvents: async () => [
        ...(entered?.events ?? []),
        ...(await buildUpdatedEvents(ctx, tx, { merchantCode, refundIds })),
      ],
    }
  })
}

/** @throws DomainError with `changed` when another amount is entered than was shown */
function requireShownAmount(
  { id }: DiscrepancyRow,
  shown: string | undefined,
  amount: string,
): void {
  if (shown === undefined || compareAmounts(shown, amount) === 0) return
  const detail = `Discrepancy ${id} has changed since it was shown: ${amount} would be entered; nothing was decided`
  throw new DomainError('not_decidable', detail, { extra: { state: 'open' }, changed: true })
}

type AnnotationContext = Pick<Context, 'sql' | 'log'>

/** Every event of a discrepancy carries its notes. */
const MAX_NOTES = 100

function refuseNote(subject: string): DomainError {
  return invalidField('text', `a ${subject} has at most ${MAX_NOTES} notes`)
}

function buildNotes(tx: Tx, { name }: Access, text: string) {
  return tx`jsonb_build_array(jsonb_build_object('at',
    to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'by', ${name}::text, 'text', ${text}::text))`
}

/** Adds a note to a discrepancy, whether it is resolved or not. */
export async function addNote(
  ctx: AnnotationContext,
  access: Access,
  found: DiscrepancyRow,
  text: string,
): Promise<DiscrepancyRow> {
  const operation = 'POST /v1/discrepancies/{id}/note'
  return await changeDiscrepancy(ctx, access, found, operation, async (tx, row) => {
    if (row.notes.length >= MAX_NOTES) throw refuseNote('discrepancy')
    await tx`
      update discrepancies set notes = notes || ${buildNotes(tx, access, text)}
      where merchant_code = ${row.merchantCode} and id = ${row.id}`
    return { field: 'discrepancy_note', before: null, after: text, verb: 'noted', reason: text }
  })
}

/** Assigns an open discrepancy to a person, or to nobody. @throws DomainError `discrepancy_resolved` */
export async function assignDiscrepancy(
  ctx: AnnotationContext,
  access: Access,
  found: DiscrepancyRow,
  name: string | null,
): Promise<DiscrepancyRow> {
  const operation = 'POST /v1/discrepancies/{id}/assignee'
  return await changeDiscrepancy(ctx, access, found, operation, async (tx, row) => {
    const written = await tx`
      update discrepancies set assignee = ${name}
      where merchant_code = ${row.merchantCode} and id = ${row.id} and resolved_at is null`
    if (written.count === 0) return undefined
    const change = { field: 'discrepancy_assignee' as const, before: row.assignee, after: name }
    return { ...change, verb: 'assigned', reason: name ?? 'nobody' }
  })
}

/** Who takes care of a refund, and what was found out about it, oldest first. */
export type RefundReview = { assignee: string | null; notes: ReviewNote[] }

type RefundKey = Pick<RefundRecord['refund'], 'merchantCode' | 'refundId'>

export async function readRefundReview(
  { sql }: { sql: Tx },
  { merchantCode, refundId }: RefundKey,
): Promise<RefundReview> {
  const [row] = await sql<RefundReview[]>`
    select assignee, notes from refund_reviews
    where merchant_code = ${merchantCode} and refund_id = ${refundId}`
  return row ?? { assignee: null, notes: [] }
}

export async function noteRefund(
  ctx: AnnotationContext,
  found: RefundRecord,
  text: string,
  access: Access,
): Promise<void> {
  await annotate(ctx, found, access, 'note', async (tx, { merchantCode, refundId }) => {
    const written = await tx`
      insert into refund_reviews as v (merchant_code, refund_id, notes)
      values (${merchantCode}, ${refundId}, ${buildNotes(tx, access, text)})
      on conflict (merchant_code, refund_id) do update set notes = v.notes || excluded.notes
        where jsonb_array_length(v.notes) < ${MAX_NOTES}`
    if (written.count === 0) throw refuseNote('refund')
    return { before: null, after: text, verb: 'noted', reason: text }
  })
}

/** Assigns a refund to a person, or, without a name, takes the assignment back. */
export async function assignRefund(
  ctx: AnnotationContext,
  found: RefundRecord,
  name: string | null,
  access: Access,
): Promise<void> {
  await annotate(ctx, found, access, 'assignee', async (tx, { merchantCode, refundId }) => {
    const { assignee } = await readRefundReview({ sql: tx }, { merchantCode, refundId })
    await tx`
      insert into refund_reviews (merchant_code, refund_id, assignee)
      values (${merchantCode}, ${refundId}, ${name})
      on conflict (merchant_code, refund_id) do update set assignee = excluded.assignee`
    return { before: assignee, after: name, verb: 'assigned', reason: name ?? 'no person' }
  })
}

type Annotation = { before: string | null; after: string | null; verb: string; reason: string }

/** Writes an annotation in one unit of work with its entry in the timeline and the audit entry. */
async function annotate(
  ctx: AnnotationContext,
  { refund }: RefundRecord,
  access: Access,
  form: 'note' | 'assignee',
  write: (tx: Tx, refund: RefundKey) => Promise<Annotation>,
): Promise<void> {
  const { merchantCode, transactionId, paymentId, refundId } = refund
  const key = { merchantCode, transactionId }
  await decide(ctx, {
    ...{ ...key, actor: access, objectId: refundId },
    operation: `POST /console/refunds/{merchant}/{refundId}/${form}`,
    apply: async (tx) => {
      const { before, after, verb, reason } = await write(tx, refund)
      const cause = `refund ${verb} ${describeActor(access)}: ${reason}`
      const change = { field: `refund_${form}`, before, after, cause }
      await recordChanges(tx, [{ ...key, paymentId, refundId, ...change }])
      notifyTransactionChanged(tx, key)
      return { value: undefined, log: `refund ${verb}` }
    },
  })
}
