import type { Context } from '../context.ts'
import { pickOrder } from '../db/order-facts.ts'
import { formatTransactionKey, type TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { buildDiscrepancyEvents } from '../discrepancies/store.ts'
import { prepareRecording } from '../events/record-events.ts'
import { buildPaymentEvents } from '../payments/apply-payments.ts'
import type { PaymentChange } from '../payments/odd-readings.ts'
import { type LastStatement, pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { looksDifferent } from '../refunds/draft.ts'
import {
  buildExternalEvents,
  buildRefundEvent,
  listExternalIds,
  readExternalRefunds,
  readRefunds,
} from '../refunds/events.ts'
import type { ExternalRecord } from '../refunds/external-view.ts'
import type { RefundRecord } from '../refunds/find.ts'
import type { RefundDraft } from '../refunds/lifecycle.ts'
import type { ExternalChange } from '../refunds/types.ts'
import { readTransactions } from '../transactions/find-transactions.ts'
import type { TransactionWithPayments } from '../transactions/types.ts'
import { buildTransactionEvent } from '../transactions/view.ts'

/** The changes a commit makes to a transaction, for the change feed. */
export type CommittedChanges = {
  claim: TransactionKey
  /** Changes to its payments by the gateway's answer. */
  changes: readonly PaymentChange[]
  /** Its state or its sums change, or a payment moved away from it. */
  isRevised: boolean
  /** It is paid for the first time. */
  turnsPaid: boolean
  turnsFinal: boolean
  drafts: readonly RefundDraft[]
  external: readonly ExternalChange[]
  /** Payments that moved here from another transaction: their refunds, own and external, show this one from now on. */
  moved: readonly string[]
}

/** The changed objects, as the commit leaves them. */
export type CommittedObjects = {
  transactions: Map<string, TransactionWithPayments>
  refunds: RefundRecord[]
  external: ExternalRecord[]
}

/** Reads the objects that a commit changes, after all statements that change them. Runs no query without changes. */
export async function readCommittedObjects(
  tx: Tx,
  committed: readonly CommittedChanges[],
): Promise<CommittedObjects> {
  const changed = committed.filter((one) => listTransactionEvents(one).length > 0)
  const [transactions, ...refunds] = await pipeline(
    readTransactions(
      tx,
      changed.map(({ claim }) => claim),
    ),
    ...committed.map(({ claim, drafts, moved }) =>
      readRefunds(
        tx,
        claim.merchantCode,
        drafts
          .filter((one) => looksDifferent(one) || moved.includes(one.now.paymentId))
          .map(({ now }) => now.refundId),
      ),
    ),
  )
  const external: ExternalRecord[] = []
  for (const { claim, external: changes, moved } of committed) {
    const { merchantCode } = claim
    const ids = changes.map(({ externalId }) => externalId)
    const shown = new Set([...ids, ...(await listExternalIds(tx, merchantCode, moved))])
    external.push(...(await readExternalRefunds(tx, merchantCode, [...shown])))
  }
  return { transactions, refunds: refunds.flat(), external }
}

/**
 * Builds the statement that records the events of a commit, its last one.
 * @param objects from `readCommittedObjects`
 * @param abandoned transactions abandoned in this commit; they are rare, so they are read only here
 */
export async function prepareCommittedEvents(
  { encryption }: Pick<Context, 'encryption'>,
  tx: Tx,
  committed: readonly CommittedChanges[],
  { transactions, refunds, external }: CommittedObjects,
  {
    found,
    abandoned,
  }: { found: readonly RecordedDiscrepancy[]; abandoned: readonly TransactionKey[] },
): Promise<LastStatement | undefined> {
  const find = (claim: TransactionKey) => transactions.get(formatTransactionKey(claim))
  const payments = committed.flatMap(({ claim, changes }) => {
    const known = find(claim)
    if (!known) return []
    const order = pickOrder(known.transaction)
    return buildPaymentEvents(
      changes,
      known.payments.map((payment) => ({ ...payment, order })),
    )
  })
  const ofTransactions = committed.flatMap((one) => {
    const known = find(one.claim)
    return known ? listTransactionEvents(one).map((type) => buildTransactionEvent(type, known)) : []
  })
  const abandonedTransactions = await readTransactions(tx, abandoned)
  return prepareRecording(tx, [
    ...payments,
    ...refunds.map((one) => buildRefundEvent(encryption, one.refund, 'refund.updated', one)),
    ...buildExternalEvents(
      external,
      committed.flatMap((one) => one.external),
    ),
    ...buildDiscrepancyEvents(found),
    ...ofTransactions,
    ...[...abandonedTransactions.values()].map((one) =>
      buildTransactionEvent('sync.abandoned', one),
    ),
  ])
}

/** The events of the transaction itself. That it was updated is an event of its own only if no other one shows it. */
function listTransactionEvents({ changes, isRevised, turnsPaid, turnsFinal }: CommittedChanges) {
  const isOnlyUpdated = (isRevised || changes.length > 0) && !turnsPaid && !turnsFinal
  return [
    ...(turnsPaid ? (['transaction.paid'] as const) : []),
    ...(isOnlyUpdated ? (['transaction.updated'] as const) : []),
    ...(turnsFinal ? (['transaction.final'] as const) : []),
  ]
}
