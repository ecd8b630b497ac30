import type { Context } from '../context.ts'
import { formatOrigin } from '../platform/outbound/addresses.ts'
import type { WebhookDelivery } from './claim-deliveries.ts'
import type { DeliveryResult } from './record-result.ts'
import { DISABLE_AFTER_MS } from './retry-schedule.ts'
import type { SendResult } from './sender.ts'

/** Counts and logs the result of an attempt, as an error if an operator has to act. */
export function logResult(
  { log, metrics }: Pick<Context, 'log' | 'metrics'>,
  { endpointId, eventId, merchantCode, transactionId, url, attempts }: WebhookDelivery,
  result: DeliveryResult,
  sent: SendResult | null,
): void {
  const { outcome } = result
  const endpoint = { merchantCode, endpointId, to: formatOrigin(url), error: sent?.error }
  const event = { eventId, transactionId }
  metrics.webhookDeliveries.inc({ outcome })
  log.debug({ ...endpoint, ...event, attempts, outcome }, 'webhook sent')
  if (result.outcome === 'disabled') {
    const { reason, failingSince } = result
    const cause = reason === 'gone' ? 'it answered 410' : 'no delivery succeeded for five days'
    log.error(
      { ...endpoint, reason, failingSince },
      `webhook endpoint disabled: ${cause}; once it works again, POST /v1/webhook-endpoints/${endpointId}/enable continues where it stopped`,
    )
  } else if (result.outcome === 'failed' && result.failingForMs > DISABLE_AFTER_MS) {
    log.error(
      { ...endpoint, ...event },
      'a webhook endpoint has refused this event for five days, but accepts others; later events of its transaction wait',
    )
  } else if (result.outcome === 'failed' && sent?.status === null) {
    // Merchants see only that there was no answer.
    log.info({ ...endpoint, ...event }, 'a webhook got no answer')
  } else if (result.outcome === 'withheld') {
    log.warn(
      { ...endpoint, ...event },
      'a webhook was not sent: the key of its endpoint may no longer read the event',
    )
  } else if (result.outcome === 'removed') {
    log.error(
      { ...endpoint, ...event },
      'an event was deleted before its webhook was delivered; RETENTION_DAYS is too short for this endpoint',
    )
  }
}
