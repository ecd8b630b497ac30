import type { Tx } from '../platform/postgres/types.ts'
import type { WebhookDelivery } from './claim-deliveries.ts'
import type { SendResult } from './sender.ts'

/** An attempt that was made: when (database time), with which type of event, and what came back. */
export type MadeAttempt = SendResult & { at: Date; type: string }

/** The delivery that an attempt belongs to; `attempts` counts those before it. */
export type AttemptedDelivery = Pick<
  WebhookDelivery,
  'endpointId' | 'eventId' | 'owner' | 'transactionId' | 'attempts'
>

/**
 * The statement that adds an attempt to the log, for a common table expression.
 * @param ended the name of an expression with a row if the claim was still held; otherwise nothing is added
 */
export function insertAttempt(
  sql: Tx,
  { endpointId, eventId, owner, transactionId, attempts }: AttemptedDelivery,
  { at, type, durationMs, status, error, answer }: MadeAttempt,
  ended: string,
) {
  return sql`
    insert into webhook_attempts (merchant_code, endpoint_id, event_id, type, transaction_id, attempt, sent_at,
      duration_ms, http_status, error, answer)
    select ${owner}, ${endpointId}, ${eventId}, ${type}, ${transactionId}, ${attempts + 1}, ${at.toISOString()},
      ${durationMs}, ${status}, ${error}, ${answer} from ${sql(ended)}`
}
