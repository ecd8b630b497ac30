import { describeActor } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { ReviewNote } from '../db/schema.ts'
import type { DiscrepancyRow } from '../discrepancies/kinds.ts'
import { DomainError } from '../errors.ts'
import { recordChanges } from '../events/record-events.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { RefundRecord } from '../refunds/find.ts'
import { notifyTransactionChanged } from '../transactions/due.ts'
import { changeDiscrepancy } from './discrepancies.ts'
import { decide } from './unit-of-work.ts'

type AnnotationContext = Pick<Context, 'sql' | 'log'>

/** Every event of a discrepancy carries its notes. */
const MAX_NOTES = 100

function refuseNote(subject: string): DomainError {
  const message = `a ${subject} has at most ${MAX_NOTES} notes`
  return new DomainError('invalid_request', `text: ${message}`, {
    errors: [{ path: 'text', message }],
  })
}

function buildNotes(tx: Tx, { name }: Access, text: string) {
  return tx`jsonb_build_array(jsonb_build_object('at',
    to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'by', ${name}::text, 'text', ${text}::text))`
}

/**
 * Adds a note to a discrepancy, whether it is resolved or not.
 * @throws DomainError `invalid_request` when it has too many
 */
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

/**
 * Assigns an open discrepancy to a person, or to nobody.
 * @throws DomainError `discrepancy_resolved`
 */
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

/** Reads who takes care of a refund and the notes on it. */
export async function readRefundReview(
  { sql }: { sql: Tx },
  { merchantCode, refundId }: RefundKey,
): Promise<RefundReview> {
  const [row] = await sql<RefundReview[]>`
    select assignee, notes from refund_reviews
    where merchant_code = ${merchantCode} and refund_id = ${refundId}`
  return row ?? { assignee: null, notes: [] }
}

/**
 * Adds a note to a refund, in whatever state it is.
 * @throws DomainError `invalid_request` when it has too many
 */
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
