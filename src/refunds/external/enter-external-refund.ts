import { randomUUID } from 'node:crypto'
import { describeActor } from '../../access/audit.ts'
import type { Access } from '../../access/types.ts'
import { externalRefunds, type StoredResolution } from '../../db/schema.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import type { NewEvent } from '../../events/record-events.ts'
import { compareAmounts } from '../../money.ts'
import { build } from '../../platform/postgres/drizzle.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { buildExternalEvents, readExternalRefunds, recordExternalChanges } from '../events.ts'
import { lockTransaction, recheckTransaction } from '../lock-transaction.ts'
import { measureUnexplained } from '../own-growth.ts'
import { lockRefunds } from '../reconcile/lock-refunds.ts'
import { DECIDED } from '../resolution-schema.ts'
import type { ExternalChange } from '../types.ts'

/** Who enters an external refund, and why. */
export type EnteredBy = {
  access: Pick<Access, 'name' | 'isPerson'>
  reason: string
  decidedAt: Date
}

/**
 * Enters the growth of a payment that nothing explains as a refund made elsewhere, on the word of the person who
 * resolves the discrepancy `unexplained_growth`. It is matched at once, so what is left to refund stays the same. Growth
 * from which the success of a refund of ours was inferred is not entered: that refund stays reserved.
 * Locks the transaction, its payments and its refunds, in this order: call it before any statement that locks
 * another row of them or a discrepancy.
 * @returns the amount (decimal string) and the events to record as the last statement of the unit of work; undefined
 *   when no growth is left unexplained, and nothing was written
 */
export async function enterExternalRefund(
  tx: Tx,
  key: TransactionKey,
  paymentId: string,
  { access, reason, decidedAt }: EnteredBy,
): Promise<{ amount: string; events: NewEvent[] } | undefined> {
  const { merchantCode, transactionId } = key
  await lockTransaction(tx, key)
  const { payments, drafts } = await lockRefunds(tx, { merchantCode, transactionId }, null)
  const payment = payments.find((one) => one.paymentId === paymentId)
  const amount = payment ? measureUnexplained(payment, drafts) : '0'
  if (compareAmounts(amount, '0') <= 0) return undefined
  const resolution: StoredResolution = {
    outcome: 'matched',
    reason,
    by: access.name,
    againstEvidence: null,
    decidedAt: decidedAt.toISOString(),
  }
  const requestId = `entered-${randomUUID()}`
  const row = { merchantCode, requestId, paymentId, amount, matched: true, resolution }
  const [stored] = await build(tx)
    .insert(externalRefunds)
    .values({ ...row, source: 'person' })
    .returning({ externalId: externalRefunds.id })
  if (!stored) throw new Error('the external refund was not stored')
  const cause = {
    reason: `${DECIDED} ${describeActor(access)}: ${reason}; an increase of ${amount} that nothing explained is a refund made elsewhere`,
  }
  const changes: ExternalChange[] = [
    { ...stored, paymentId, before: null, after: 'matched', cause },
  ]
  await recordExternalChanges(tx, key, changes)
  await recheckTransaction(tx, key)
  const found = await readExternalRefunds(tx, merchantCode, [stored.externalId])
  return { amount, events: buildExternalEvents(found, changes) }
}
