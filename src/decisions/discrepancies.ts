import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import type { DiscrepancyRow } from '../discrepancies/kinds.ts'
import { compareAmounts } from '../money.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { makeDue } from '../transactions/due.ts'
import { changeDiscrepancy } from './annotations.ts'
import { enterExternalRefund } from './external.ts'
import {
  buildSelfDecidedEvents,
  describeSelfDecided,
  listTransactionsOf,
  type OwnRefund,
  requireAnother,
} from './second-person.ts'
import { ChangedSinceShownError, recheckTransaction } from './unit-of-work.ts'

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
 * @throws DomainError `discrepancy_resolved`, `same_person`, or `not_decidable` as `ChangedSinceShownError`
 */
export async function resolveDiscrepancy(
  ctx: Pick<Context, 'encryption' | 'sql' | 'log'>,
  access: Access,
  found: DiscrepancyRow,
  { reason, shownAmount }: DiscrepancyDecision,
): Promise<DiscrepancyRow> {
  const resolved = await changeDiscrepancy(ctx, access, found, OPERATION, async (tx, row) => {
    const { merchantCode, id, kind, paymentId } = row
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
    await recheck(tx, row, own)
    const also = describeSelfDecided(access, own)
    const events = [...(entered?.events ?? []), ...(await buildSelfDecidedEvents(ctx, tx, own))]
    return {
      field: 'discrepancy',
      before: 'open',
      after: 'resolved',
      verb: 'resolved',
      also,
      reason,
      events,
    }
  })
  const { merchantCode, id, kind } = found
  const { name: key, requestId } = access
  ctx.log.info({ merchantCode, id, kind, key, requestId }, 'discrepancy resolved')
  return resolved
}

/** Makes the transaction due where the resolution changes what the next answer makes of it, or marks refunds. */
async function recheck(
  tx: Tx,
  { merchantCode, transactionId, kind }: DiscrepancyRow,
  own: readonly OwnRefund[],
): Promise<void> {
  for (const marked of listTransactionsOf(own)) await recheckTransaction(tx, marked)
  if (!QUERIED_AGAIN.includes(kind)) return
  await tx`
    update transactions t set ${makeDue(tx)}
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
  notifyAfterCommit(tx, SYNC_DUE)
}

/** @throws ChangedSinceShownError when another amount is entered than was shown */
function requireShownAmount(
  { id }: DiscrepancyRow,
  shown: string | undefined,
  amount: string,
): void {
  if (shown === undefined || compareAmounts(shown, amount) === 0) return
  const detail = `Discrepancy ${id} has changed since it was shown: ${amount} would be entered; nothing was decided`
  throw new ChangedSinceShownError('not_decidable', detail, { extra: { state: 'open' } })
}
