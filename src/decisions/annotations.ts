import { describeActor, recordWrite } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { ORDER_ID_COLUMNS } from '../db/order-facts.ts'
import { discrepancies, type ReviewNote } from '../db/schema.ts'
import type { DiscrepancyRow } from '../discrepancies/kinds.ts'
import { buildDiscrepancyUpdate } from '../discrepancies/store.ts'
import { DomainError } from '../errors.ts'
import { type NewEvent, recordChanges, recordEvents } from '../events/record-events.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns, toIso } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { RefundRecord } from '../refunds/find.ts'
import { notifyTransactionChanged } from '../transactions/due.ts'
import { lockTransaction } from './unit-of-work.ts'

const COLUMNS = listColumns(discrepancies, 'd')

/**
 * Finds a discrepancy of one of the accounts.
 * @param merchants the accounts the caller may read
 * @param id unvalidated text from the request
 * @throws DomainError `discrepancy_not_found`
 */
export async function findDiscrepancy(
  sql: Sql | Tx,
  merchants: readonly string[],
  id: string,
): Promise<DiscrepancyRow> {
  const [found] = /^\d{1,18}$/.test(id)
    ? await sql<DiscrepancyRow[]>`
        select ${sql.unsafe(COLUMNS)}, ${sql.unsafe(ORDER_ID_COLUMNS)}
        from discrepancies as d left join lateral (
          select * from transactions as t
          where ${sql.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'd'))} limit 1) as t on true
        where d.id = ${id} and d.merchant_code = any(${[...merchants]}::text[])`
    : []
  if (!found) throw new DomainError('discrepancy_not_found', `No discrepancy ${id}`)
  return found
}

/** A change of a discrepancy, for the timeline. */
export type DiscrepancyStep = {
  field: 'discrepancy' | 'discrepancy_note' | 'discrepancy_assignee'
  before: string | null
  after: string | null
  /** What was done, without the key that did it. */
  verb: string
  /** What else is to be said of whoever did it. */
  also?: string
  reason: string
  /** What else happened, in order. */
  events?: readonly NewEvent[]
}

/**
 * Changes a discrepancy, in one unit of work with its entry in the timeline, the audit entry and the event.
 * @param write changes the row, locked after its transaction; undefined if its state forbids that
 * @returns the discrepancy as it is now
 * @throws DomainError `discrepancy_resolved`, with what was decided
 */
export async function changeDiscrepancy(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  access: Access,
  { merchantCode, transactionId, id }: DiscrepancyRow,
  operation: string,
  write: (tx: Tx, row: DiscrepancyRow) => Promise<DiscrepancyStep | undefined>,
): Promise<DiscrepancyRow> {
  return await runInTransaction(sql, async (tx) => {
    await tx`
      select from transactions
      where merchant_code = ${merchantCode} and transaction_id = ${transactionId} for update`
    const before = await findDiscrepancy(tx, [merchantCode], String(id))
    const step = await write(tx, before)
    if (!step) throw new DomainError('discrepancy_resolved', describeResolution(before))
    const after = await findDiscrepancy(tx, [merchantCode], String(id))
    const { paymentId, refundId, kind } = after
    const { verb, also = '', reason, events = [], ...change } = step
    const cause = `discrepancy ${id} (${kind}) ${verb} ${describeActor(access)}${also}: ${reason}`
    await recordChanges(tx, [
      { merchantCode, transactionId, paymentId, refundId, ...change, cause },
    ])
    await recordWrite(tx, log, access, { operation, merchantCode, objectId: String(id) })
    await recordEvents(tx, [...events, buildDiscrepancyUpdate(after)])
    return after
  })
}

function describeResolution({ id, resolvedAt, resolvedBy, resolution }: DiscrepancyRow): string {
  const how =
    resolvedBy === null
      ? `The two sides of discrepancy ${id} have agreed again since ${toIso(resolvedAt)}`
      : `Discrepancy ${id} was resolved by ${resolvedBy} at ${toIso(resolvedAt)}: ${resolution}`
  return `${how}. You can still add a note with POST /v1/discrepancies/${id}/note`
}

/** Every event of a discrepancy carries its notes. */

/**
 * Adds a note to a discrepancy, whether it is resolved or not.
 * @throws DomainError `invalid_request` when it has too many
 */
export async function addNote(
  ctx: Pick<Context, 'sql' | 'log'>,
  access: Access,
  found: DiscrepancyRow,
  text: string,
): Promise<DiscrepancyRow> {
  const operation = 'POST /v1/discrepancies/{id}/note'
  return await changeDiscrepancy(
    ctx,
    access,
    found,
    operation,
    async (tx, { merchantCode, id, notes }) => {
      if (notes.length >= MAX_NOTES) {
        const message = `a discrepancy has at most ${MAX_NOTES} notes`
        throw new DomainError('invalid_request', `text: ${message}`, {
          errors: [{ path: 'text', message }],
        })
      }
      await tx`
        update discrepancies set notes = notes || jsonb_build_object('at',
          to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'by', ${access.name}::text,
          'text', ${text}::text)
        where merchant_code = ${merchantCode} and id = ${id}`
      const change = { field: 'discrepancy_note' as const, before: null, after: text }
      return { ...change, verb: 'noted', reason: text }
    },
  )
}

/**
 * Assigns an open discrepancy to a person, or to nobody.
 * @throws DomainError `discrepancy_resolved`
 */
export async function assignDiscrepancy(
  ctx: Pick<Context, 'sql' | 'log'>,
  access: Access,
  found: DiscrepancyRow,
  name: string | null,
): Promise<DiscrepancyRow> {
  const operation = 'POST /v1/discrepancies/{id}/assignee'
  return await changeDiscrepancy(
    ctx,
    access,
    found,
    operation,
    async (tx, { merchantCode, id, assignee }) => {
      const written = await tx`
        update discrepancies set assignee = ${name}
        where merchant_code = ${merchantCode} and id = ${id} and resolved_at is null`
      if (written.count === 0) return undefined
      const change = { field: 'discrepancy_assignee' as const, before: assignee, after: name }
      return { ...change, verb: 'assigned', reason: name ?? 'nobody' }
    },
  )
}

/** Who takes care of a refund, and what was found out about it, oldest first. */
export type RefundReview = { assignee: string | null; notes: ReviewNote[] }

const MAX_NOTES = 100

/** Reads who takes care of a refund and the notes on it. */
export async function readRefundReview(
  { sql }: Pick<Context, 'sql'>,
  { merchantCode, refundId }: Pick<RefundRecord['refund'], 'merchantCode' | 'refundId'>,
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
  ctx: Pick<Context, 'sql' | 'log'>,
  found: RefundRecord,
  text: string,
  access: Access,
): Promise<void> {
  await annotate(ctx, found, access, async (tx, { merchantCode, refundId }) => {
    const written = await tx`
      insert into refund_reviews as v (merchant_code, refund_id, notes)
      select ${merchantCode}, ${refundId}, jsonb_build_array(jsonb_build_object('at',
        to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'by', ${access.name}::text,
        'text', ${text}::text))
      on conflict (merchant_code, refund_id) do update set notes = v.notes || excluded.notes
        where jsonb_array_length(v.notes) < ${MAX_NOTES}`
    if (written.count === 0) {
      const message = `a refund has at most ${MAX_NOTES} notes`
      throw new DomainError('invalid_request', `text: ${message}`, {
        errors: [{ path: 'text', message }],
      })
    }
    return { operation: 'note', before: null, after: text, verb: 'noted', reason: text }
  })
}

/** Assigns a refund to a person, or, without a name, takes the assignment back. */
export async function assignRefund(
  ctx: Pick<Context, 'sql' | 'log'>,
  found: RefundRecord,
  name: string | null,
  access: Access,
): Promise<void> {
  await annotate(ctx, found, access, async (tx, { merchantCode, refundId }) => {
    const [before] = await tx<{ assignee: string | null }[]>`
      select assignee from refund_reviews
      where merchant_code = ${merchantCode} and refund_id = ${refundId}`
    await tx`
      insert into refund_reviews (merchant_code, refund_id, assignee)
      values (${merchantCode}, ${refundId}, ${name})
      on conflict (merchant_code, refund_id) do update set assignee = excluded.assignee`
    const change = { before: before?.assignee ?? null, after: name }
    return { operation: 'assignee', ...change, verb: 'assigned', reason: name ?? 'no person' }
  })
}

type Annotation = {
  operation: 'note' | 'assignee'
  before: string | null
  after: string | null
  verb: string
  reason: string
}

/** Writes an annotation in one unit of work with its entry in the timeline and the audit entry. */
async function annotate(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  { refund }: RefundRecord,
  access: Access,
  write: (tx: Tx, refund: RefundRecord['refund']) => Promise<Annotation>,
): Promise<void> {
  const { merchantCode, transactionId, paymentId, refundId } = refund
  const key = { merchantCode, transactionId }
  await runInTransaction(sql, async (tx) => {
    await lockTransaction(tx, key)
    const { operation, before, after, verb, reason } = await write(tx, refund)
    const cause = `refund ${verb} ${describeActor(access)}: ${reason}`
    const field = `refund_${operation}`
    await recordChanges(tx, [{ ...key, paymentId, refundId, field, before, after, cause }])
    const path = `POST /console/refunds/{merchant}/{refundId}/${operation}`
    await recordWrite(tx, log, access, { operation: path, merchantCode, objectId: refundId })
    notifyTransactionChanged(tx, key)
  })
}
