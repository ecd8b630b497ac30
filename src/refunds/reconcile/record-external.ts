import type { TransactionKey } from '../../db/transaction-key.ts'
import { compareAmounts } from '../../money.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { deriveExternalState } from '../external-view.ts'
import type { ExternalChange } from '../types.ts'
import type { RefundNotification } from './read-notifications.ts'

type Before = {
  externalId: string
  /** Null when there was no row. */
  matched: boolean | null
  outcome: 'part_of_first_sight' | 'released' | 'never_happened' | 'own' | null
}

/**
 * Records a verified success as an external refund, which is reserved until growth shows it. A failure that is
 * notified after it releases it, and another success after that, or after a person decided that it never happened,
 * reserves it again.
 * @returns the changed state, if any
 */
export async function recordExternal(
  tx: Tx,
  key: TransactionKey,
  one: RefundNotification,
  result: 'success' | 'failure' | undefined,
): Promise<ExternalChange[]> {
  const { paymentId, amount } = one
  // Of two readings nobody can say which one is right: both are reserved, until growth shows one.
  if (one.hint && !one.published) return []
  if (!one.verified || result === undefined || paymentId === null || amount === null) return []
  if (compareAmounts(amount, '0') === 0) return []
  if (result === 'failure') return one.hint ? [] : await release(tx, key, one)
  return await reserve(tx, key, one)
}

async function release(
  tx: Tx,
  { merchantCode }: TransactionKey,
  one: RefundNotification,
): Promise<ExternalChange[]> {
  const { requestId, paymentId, amount, code } = one
  const rows = await tx<Before[]>`
    with old as (
      select id, matched, outcome from foreign_refunds
      where merchant_code = ${merchantCode} and request_id = ${requestId} and payment_id = ${paymentId}
        and amount = ${amount} and (outcome is null or outcome = 'part_of_first_sight') for update
    )
    update foreign_refunds f set outcome = 'released', matched = false
    from old where f.merchant_code = ${merchantCode} and f.id = old.id
    returning f.id as "externalId", old.matched, old.outcome`
  return rows.map((before) =>
    describe(one, before, 'released', `the gateway notified the failure (code ${code}) of`),
  )
}

async function reserve(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  one: RefundNotification,
): Promise<ExternalChange[]> {
  const { id, requestId, paymentId, amount, receivedAt } = one
  const rows = await tx<Before[]>`
    with old as (
      select matched, outcome from foreign_refunds
      where merchant_code = ${merchantCode} and request_id = ${requestId} and payment_id = ${paymentId}
        and amount = ${amount}
    ), stored as (
      insert into foreign_refunds as f
        (merchant_code, request_id, payment_id, amount, ipn_event_id, notified_at)
      select merchant_code, ${requestId}, payment_id, ${amount}, ${id}, ${receivedAt} from payments
      where merchant_code = ${merchantCode} and payment_id = ${paymentId}
        and transaction_id = ${transactionId}
      on conflict (merchant_code, request_id, payment_id, amount) do update
        set outcome = null, matched = false
      where f.outcome in ('released', 'never_happened')
      returning id
    )
    select stored.id as "externalId", old.matched, old.outcome
    from stored left join old on true`
  return rows.map((before) => describe(one, before, 'reserved', 'the gateway notified'))
}

function describe(
  { id, requestId, paymentId, amount }: RefundNotification,
  { externalId, matched, outcome }: Before,
  after: ExternalChange['after'],
  verb: string,
): ExternalChange {
  const reason = `${verb} a refund of ${amount} made elsewhere (request ${requestId})`
  const before = matched === null ? null : deriveExternalState({ matched, outcome })
  return {
    externalId,
    paymentId: paymentId ?? '',
    before,
    after,
    cause: { reason, ipnEventId: id },
  }
}
