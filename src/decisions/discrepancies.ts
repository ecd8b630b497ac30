import { describeActor } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { ORDER_ID_COLUMNS } from '../db/order-facts.ts'
import { discrepancies } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { DiscrepancyRow } from '../discrepancies/kinds.ts'
import { buildDiscrepancyUpdate } from '../discrepancies/store.ts'
import { DomainError } from '../errors.ts'
import { type NewEvent, recordChanges } from '../events/record-events.ts'
import { compareAmounts } from '../money.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns, toIso } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { buildUpdatedEvents } from '../refunds/events.ts'
import { enterExternalRefund } from './external.ts'
import { describeSelfDecided, listTransactionsOf, requireAnother } from './second-person.ts'
import { decide } from './unit-of-work.ts'

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
