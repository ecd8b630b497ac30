import { formatTransactionKey, type TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { buildDiscrepancyEvents } from '../discrepancies/store.ts'
import type { ChangeRow, NewEvent } from '../events/record-events.ts'
import { prepareRecording, recordChanges } from '../events/record-events.ts'
import { compareAmounts } from '../money.ts'
import { buildPaymentEvents } from '../payments/apply-payments.ts'
import type { PaymentChange } from '../payments/compare-payments.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { buildExternalEvents, buildRefundEvent, readRefunds } from '../refunds/events.ts'
import { listExternalIds, readExternalRefunds } from '../refunds/external-view.ts'
import { isFreed, isOver } from '../refunds/lifecycle.ts'
import { looksDifferent } from '../refunds/save.ts'
import { notifyTransactionChanged } from '../transactions/due.ts'
import { readTransactions } from '../transactions/find-transactions.ts'
import { isPaid, summarisePayments } from '../transactions/summarise-payments.ts'
import { buildTransactionEvent } from '../transactions/view.ts'
import type { CommitItem, SummarisedItem, SyncContext } from './types.ts'
import { writeTransactions } from './write-transactions.ts'

/**
 * Finishes a commit: writes the summaries, ends the claims, and prepares its last statement, which records the events.
 * @param found discrepancies recorded for the first time; their statements may still be running
 * @param changes changes that are not recorded yet
 * @returns how each claim ends, in the order of the items; undefined for a claim that continues
 */
export async function finishCommit(
  ctx: Pick<SyncContext, 'config' | 'encryption'>,
  tx: Tx,
  given: readonly CommitItem[],
  found: PromiseLike<readonly RecordedDiscrepancy[]>,
  changes: readonly ChangeRow[] = [],
) {
  const items = given.map((item): SummarisedItem => ({ ...item, summary: summarise(item) }))
  // Readers see an attempt that is sent next, although the transaction's own row does not change.
  for (const { key, summary, ended } of items) {
    if (!summary && !ended) notifyTransactionChanged(tx, key)
  }
  const [, ends, objects, recorded] = await pipeline(
    recordChanges(tx, [...changes, ...items.flatMap(listStateChange)]),
    writeTransactions(tx, ctx.config, items),
    readChanged(tx, items),
    found,
  )
  // Rare enough for another round trip.
  const abandoned = items.flatMap(({ key }, at) => (ends[at]?.next === 'abandon' ? [key] : []))
  const read = await readTransactions(tx, abandoned)
  const last = prepareRecording(tx, [
    ...buildEvents(ctx, items, objects, recorded),
    ...[...read.values()].map((one) => buildTransactionEvent('sync.abandoned', one)),
  ])
  return { ends, found: recorded, last }
}

/** Runs after all writes. Refunds of payments that moved here are included, because their transaction changed. */
async function readChanged(tx: Tx, items: readonly SummarisedItem[]) {
  const changed = items.flatMap((one) => (listTransactionEvents(one).length > 0 ? [one.key] : []))
  const [transactions, ...refunds] = await pipeline(
    readTransactions(tx, changed),
    ...items.map(({ key, refunds, moved = [] }) => {
      const shown = refunds?.drafts.filter(
        (one) => looksDifferent(one) || moved.includes(one.now.paymentId),
      )
      return readRefunds(tx, key.merchantCode, shown?.map(({ now }) => now.refundId) ?? [])
    }),
  )
  const external: Awaited<ReturnType<typeof readExternalRefunds>> = []
  for (const { key, refunds, moved = [] } of items) {
    const ids = refunds?.externalChanges.map(({ externalId }) => externalId) ?? []
    const shown = new Set([...ids, ...(await listExternalIds(tx, key.merchantCode, moved))])
    external.push(...(await readExternalRefunds(tx, key.merchantCode, [...shown])))
  }
  return { transactions, refunds: refunds.flat(), external }
}

function buildEvents(
  { encryption }: Pick<SyncContext, 'encryption'>,
  items: readonly SummarisedItem[],
  { transactions, refunds, external }: Awaited<ReturnType<typeof readChanged>>,
  found: readonly RecordedDiscrepancy[],
): NewEvent[] {
  const externalChanges = items.flatMap((one) => one.refunds?.externalChanges ?? [])
  const find = (key: TransactionKey) => transactions.get(formatTransactionKey(key))
  return [
    ...items.flatMap((item) => {
      const known = find(item.key)
      return known ? buildPaymentEvents(listChanges(item), known.transaction, known.payments) : []
    }),
    ...refunds.map((one) => buildRefundEvent(encryption, one.refund, 'refund.updated', one)),
    ...buildExternalEvents(external, externalChanges),
    ...buildDiscrepancyEvents(found),
    ...items.flatMap((item) => {
      const known = find(item.key)
      if (!known) return []
      return listTransactionEvents(item).map((type) => buildTransactionEvent(type, known))
    }),
  ]
}

/** `transaction.updated` is an event only if no other one shows the same change. */
function listTransactionEvents(item: SummarisedItem) {
  const { isRevised = false, turnsPaid = false, turnsFinal = false } = item.summary ?? {}
  const isUpdated = isRevised || listChanges(item).length > 0
  return [
    ...(turnsPaid ? (['transaction.paid'] as const) : []),
    ...(isUpdated && !turnsPaid && !turnsFinal ? (['transaction.updated'] as const) : []),
    ...(turnsFinal ? (['transaction.final'] as const) : []),
  ]
}

/** Final only if its refunds are final as well. Undefined if nothing was applied and nothing differs. */
function summarise(item: CommitItem): SummarisedItem['summary'] {
  const { row, payments, applied, refunds, movedAway } = item
  const summary = summarisePayments(payments)
  const unapplied = applied?.unapplied ?? row.unappliedEntries
  const refundsOpen =
    movedAway?.refundsOpen ?? refunds?.drafts.some((draft) => !isOver(draft)) ?? false
  const final = summary.final && !refundsOpen && !unapplied
  const paid = isPaid(summary.state)
  const differs =
    row.state !== summary.state ||
    row.duplicatePayment !== summary.duplicatePayment ||
    compareAmounts(row.paidAmount, summary.paidAmount) !== 0 ||
    compareAmounts(row.refundedAmount, summary.refundedAmount) !== 0
  const hasChanges = (applied?.changes.length ?? 0) > 0
  const isChanged = movedAway || refunds?.changed || hasChanges || row.isNamed || differs
  if (!isChanged && !applied) return undefined
  return {
    unapplied,
    paid,
    changed: Boolean(isChanged) || unapplied !== row.unappliedEntries || final !== row.final,
    isRevised: differs || movedAway !== undefined || row.isNamed === true,
    turnsPaid: paid && !row.wasPaid,
    turnsFinal: final && !row.final,
    ...summary,
    final,
  }
}

/** Includes payments that can be refunded again because a refund came back, although none of their fields changed. */
function listChanges({ applied, refunds }: CommitItem): PaymentChange[] {
  const freed = refunds?.drafts.filter(({ before, now }) => isFreed(now) && !isFreed(before)) ?? []
  const free = { field: 'freed', before: '', after: '' }
  return [
    ...(applied?.changes ?? []),
    ...freed.map(({ now }) => ({ ...free, paymentId: now.paymentId })),
  ]
}

function listStateChange({ key, row, snapshot, summary }: SummarisedItem): ChangeRow[] {
  if (!summary || summary.state === row.state) return []
  const change = { field: 'state', before: row.state, after: summary.state, cause: 'query' }
  const { merchantCode, transactionId } = key
  return [{ merchantCode, transactionId, ...change, callId: snapshot?.callId }]
}
