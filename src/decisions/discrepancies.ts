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

type Step = {
  field: string
  before: string | null
  after: string | null
  /** What was done, without the person. */
  verb: string
  /** What else the cause says about the person. */
  also?: string
  reason: string
  /** The transactions of which it changes what is known. */
  changed?: readonly TransactionKey[]
  /** Builds the events of what else happened. */
  buildEvents?: () => Promise<NewEvent[]>
}

/** What a person can do with a discrepancy: the end of the route's path, in the audit log as well. */
export type DiscrepancyForm = 'resolution' | 'note' | 'assignee'

/**
 * Changes a discrepancy, with its timeline entry, audit entry and event.
 * @param write changes the row, locked after its transaction; undefined if the row's state forbids that
 * @throws DomainError `discrepancy_resolved`, with what was decided
 */
async function changeDiscrepancy(
  ctx: Pick<Context, 'db' | 'log'>,
  access: Access,
  { merchantCode, transactionId, id }: DiscrepancyRow,
  form: DiscrepancyForm,
  write: (tx: Tx, row: DiscrepancyRow) => Promise<Step | undefined>,
): Promise<DiscrepancyRow> {
  const operation = `POST /v1/discrepancies/{id}/${form}`
  return await decide(ctx, {
    ...{ merchantCode, transactionId, actor: access, operation, objectId: String(id) },
    locksOrder: form === 'resolution',
    apply: async (tx) => {
      const before = await findDiscrepancy(tx, [merchantCode], String(id))
      const step = await write(tx, before)
      if (!step) throw new DomainError('discrepancy_resolved', describeResolved(before))
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

function describeResolved({ id, resolvedAt, resolvedBy, resolution }: DiscrepancyRow): string {
  const how =
    resolvedBy === null
      ? `The two sides of discrepancy ${id} have agreed again since ${toIso(resolvedAt)}`
      : `Discrepancy ${id} was resolved by ${resolvedBy} at ${toIso(resolvedAt)}: ${resolution}`
  return `${how}. You can still add a note with POST /v1/discrepancies/${id}/note`
}

/** Kinds whose resolution changes what the next answer makes of the transaction. */
const QUERIED_AGAIN: readonly string[] = ['payment_unreadable', 'unexplained_growth']

/**
 * Resolves a discrepancy on a person's word, which stands while both sides stay the same. Whoever asked for a refund
 * of its payment that has not ended may not resolve it while another person may. An entry behind `payment_unreadable`
 * is set aside until its text changes; `unexplained_growth` is entered as an external refund.
 * @param shownAmount of `unexplained_growth`: the amount that the person was shown as the one to be entered
 * @throws DomainError `discrepancy_resolved`, `same_person`, or `not_decidable` with `changed` if another is entered
 */
export async function resolveDiscrepancy(
  ctx: Pick<Context, 'config' | 'encryption' | 'db' | 'log' | 'now'>,
  access: Access,
  found: DiscrepancyRow,
  { reason, shownAmount }: { reason: string; shownAmount?: string | undefined },
): Promise<DiscrepancyRow> {
  return await changeDiscrepancy(ctx, access, found, 'resolution', async (tx, row) => {
    const { merchantCode, id, kind, paymentId } = row
    if (row.resolvedAt !== null) return undefined
    const entered =
      kind === 'unexplained_growth' && paymentId !== null
        ? await enterExternalRefund(ctx, tx, { ...row, paymentId }, access, reason)
        : undefined
    const amount = entered?.amount ?? '0'
    if (shownAmount !== undefined && compareAmounts(shownAmount, amount) !== 0) {
      const detail = `Discrepancy ${id} has changed since it was shown: ${amount} would be entered; nothing was decided`
      throw new DomainError('not_decidable', detail, { extra: { state: 'open' }, changed: true })
    }
    const own = await requireAnother(tx, access, row, `resolve discrepancy ${id}`)
    await tx`
      update discrepancies set resolved_at = now(), resolved_by = ${access.name}, resolution = ${reason},
        over_at = null
      where merchant_code = ${merchantCode} and id = ${id} and resolved_at is null`
    const asked = own.map(({ refundId }) => refundId)
    const refundIds = [...new Set([...asked, ...(entered?.doubted ?? [])])]
    return {
      ...{ field: 'discrepancy', before: 'open', after: 'resolved', verb: 'resolved', reason },
      also: describeSelfDecided(access, own),
      changed: listTransactionsOf(QUERIED_AGAIN.includes(kind) ? [...own, row] : own),
      buildEvents: async () => [
        ...(entered?.events ?? []),
        ...(await buildUpdatedEvents(ctx, tx, { merchantCode, refundIds })),
      ],
    }
  })
}

export type Annotation = { note: string } | { assignee: string | null }

type AnnotationContext = Pick<Context, 'db' | 'log'>

/** Bounds the events, each of which carries all notes. */
const MAX_NOTES = 100

function refuseNote(subject: string): DomainError {
  return invalidField('text', `a ${subject} has at most ${MAX_NOTES} notes`)
}

function buildNotes(tx: Tx, { name }: Access, text: string) {
  return tx`jsonb_build_array(jsonb_build_object('at',
    to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'by', ${name}::text, 'text', ${text}::text))`
}

/** Adds a note, or assigns an open discrepancy. @throws DomainError `discrepancy_resolved` */
export async function annotateDiscrepancy(
  ctx: AnnotationContext,
  access: Access,
  found: DiscrepancyRow,
  given: Annotation,
): Promise<DiscrepancyRow> {
  const form = 'note' in given ? 'note' : 'assignee'
  return await changeDiscrepancy(ctx, access, found, form, async (tx, row) => {
    const { merchantCode, id, resolvedAt, assignee: before, notes } = row
    const field = `discrepancy_${form}`
    if ('note' in given) {
      const { note } = given
      if (notes.length >= MAX_NOTES) throw refuseNote('discrepancy')
      await tx`
        update discrepancies set notes = notes || ${buildNotes(tx, access, note)}
        where merchant_code = ${merchantCode} and id = ${id}`
      return { field, before: null, after: note, verb: 'noted', reason: note }
    }
    const { assignee: after } = given
    if (resolvedAt !== null) return undefined
    await tx`
      update discrepancies set assignee = ${after}
      where merchant_code = ${merchantCode} and id = ${id} and resolved_at is null`
    return { field, before, after, verb: 'assigned', reason: after ?? 'nobody' }
  })
}

type RefundReview = { assignee: string | null; notes: ReviewNote[] }

export async function readRefundReview(
  sql: Tx,
  { merchantCode, refundId }: Pick<RefundRecord['refund'], 'merchantCode' | 'refundId'>,
): Promise<RefundReview> {
  const [row] = await sql<RefundReview[]>`
    select assignee, notes from refund_reviews
    where merchant_code = ${merchantCode} and refund_id = ${refundId}`
  return row ?? { assignee: null, notes: [] }
}

export async function annotateRefund(
  ctx: AnnotationContext,
  access: Access,
  { refund }: RefundRecord,
  given: Annotation,
): Promise<void> {
  const { merchantCode, transactionId, paymentId, refundId } = refund
  const key = { merchantCode, transactionId }
  const form = 'note' in given ? 'note' : 'assignee'
  await decide(ctx, {
    ...{ ...key, actor: access, objectId: refundId },
    operation: `POST /console/refunds/{merchant}/{refundId}/${form}`,
    apply: async (tx) => {
      const review = await readRefundReview(tx, refund)
      const notes = 'note' in given ? buildNotes(tx, access, given.note) : tx`'[]'::jsonb`
      const assignee = 'assignee' in given ? given.assignee : review.assignee
      const written = await tx`
        insert into refund_reviews as v (merchant_code, refund_id, notes, assignee)
        values (${merchantCode}, ${refundId}, ${notes}, ${assignee})
        on conflict (merchant_code, refund_id) do update
          set notes = v.notes || excluded.notes, assignee = ${tx('note' in given ? 'v' : 'excluded')}.assignee
          where jsonb_array_length(v.notes || excluded.notes) <= ${MAX_NOTES}`
      if (written.count === 0) throw refuseNote('refund')
      const [before, after] =
        'note' in given ? [null, given.note] : [review.assignee, given.assignee]
      const verb = 'note' in given ? 'noted' : 'assigned'
      const cause = `refund ${verb} ${describeActor(access)}: ${after ?? 'no person'}`
      const change = { field: `refund_${form}`, before, after, cause }
      await recordChanges(tx, [{ ...key, paymentId, refundId, ...change }])
      notifyTransactionChanged(tx, key)
      return { value: undefined, log: `refund ${verb}` }
    },
  })
}
