import type { TransactionKey } from '../../db/transaction-key.ts'
import type { NewEvent } from '../../events/record-events.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { buildExternalEvents, readExternalRefunds } from '../build-external-events.ts'
import type { ExternalState } from '../external-view.ts'
import { recordExternalChanges } from '../record-external-changes.ts'
import type { ExternalChange } from '../types.ts'

/** An external refund that turned out to be a refund of ours whose row was lost, and its state until then. */
export type TakenExternal = { externalId: string; before: ExternalState }

/**
 * Records that a refund takes the place of an external refund.
 * @returns the event to record as the last statement of the unit of work; empty when there is none
 */
export async function recordTaken(
  tx: Tx,
  key: TransactionKey & { paymentId: string },
  refundId: string,
  taken: TakenExternal | null,
): Promise<NewEvent[]> {
  if (!taken) return []
  const { merchantCode, paymentId } = key
  const reason = `it is refund ${refundId}, whose row was lost and is stored again`
  const changes: ExternalChange[] = [{ ...taken, paymentId, after: 'own', cause: { reason } }]
  await recordExternalChanges(tx, key, changes)
  const found = await readExternalRefunds(tx, merchantCode, [taken.externalId])
  return buildExternalEvents(found, changes)
}
