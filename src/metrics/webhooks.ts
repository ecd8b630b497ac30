import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { LATENCIES_S } from './buckets.ts'

/** Webhook deliveries and their endpoints. */
export function createWebhookMetrics(registry: Registry) {
  const registers = [registry]
  return {
    webhookDeliveries: new Counter({
      name: 'webhook_deliveries_total',
      help: 'Webhook delivery attempts by outcome; failed ones are retried',
      labelNames: ['outcome'],
      registers,
    }),
    webhookCall: new Histogram({
      name: 'webhook_call_seconds',
      help: 'Duration of calls to webhook endpoints',
      buckets: [...LATENCIES_S, 15],
      registers,
    }),
    webhookPending: new Gauge({
      name: 'webhook_pending',
      help: 'Events waiting for delivery to an enabled webhook endpoint',
      registers,
    }),
    webhookEndpointsDisabled: new Gauge({
      name: 'webhook_endpoints_disabled',
      help: 'Webhook endpoints that were disabled, by reason; each needs an operator',
      labelNames: ['reason'],
      registers,
    }),
  }
}
