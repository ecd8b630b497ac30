import { describeActor, recordWrite } from '../../access/audit.ts'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import type { ReviewNote } from '../../db/schema.ts'
import { DomainError } from '../../errors.ts'
import { recordChanges } from '../../events/record-events.ts'
import { runInTransaction } from '../../platform/postgres/transaction.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { notifyTransactionChanged } from '../../transactions/due.ts'
import type { RefundRecord } from '../find-refunds.ts'
import { lockTransaction } from '../lock-transaction.ts'

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
