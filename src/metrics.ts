import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { PACKAGE } from './version.ts'

export type Metrics = ReturnType<typeof createMetrics>

const LATENCIES_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Fewer: there is a series of each for every route. */
const REQUESTS_S = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10]

/** Gauges that are named like counters: what they hold is in `nodejs_active_*` by type. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/**
 * What the service measures about itself, in a registry of its own. Durations are seconds. Whoever knows
 * the values of a label sets each to 0 at the start: what never happened is 0, and an alert on its
 * growth sees the first time.
 */
export function createMetrics() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  for (const name of MISNAMED) registry.removeSingleMetric(name)
  new Gauge({
    name: 'ipn_processor_build_info',
    help: 'Always 1; which version runs stands in the label',
    labelNames: ['version'],
    registers,
  }).set({ version: PACKAGE.version }, 1)
  return {
    registry,
    databaseUp: new Gauge({
      name: 'database_up',
      help: 'Whether the database answered the questions of this scrape: 1 yes, 0 no',
      registers,
    }),
    httpRequest: new Histogram({
      name: 'http_request_seconds',
      help: 'From a request to the head of its answer, by route; one that asked to wait stands under a route of its own',
      labelNames: ['route', 'method', 'status'],
      buckets: REQUESTS_S,
      registers,
    }),
    loopRound: new Gauge({
      name: 'loop_last_round_timestamp_seconds',
      help: 'When a background loop last ended a round without trouble, or began to run',
      labelNames: ['loop'],
      registers,
    }),
    ipnReceived: new Counter({
      name: 'ipn_received_total',
      help: 'Notifications received, by what was decided about them; only stored ones were acknowledged',
      labelNames: ['verdict'],
      registers,
    }),
    ipnAck: new Histogram({
      name: 'ipn_ack_seconds',
      help: 'From a notification received to its answer, whatever that is',
      buckets: LATENCIES_S,
      registers,
    }),
    ipnWaiting: new Gauge({
      name: 'ipn_waiting',
      help: 'Notifications that wait for a commit now',
      registers,
    }),
    syncDue: new Gauge({
      name: 'sync_due',
      help: 'Transactions whose query is due now, of all processes together; NaN while the database is away',
      registers,
    }),
    syncLag: new Gauge({
      name: 'sync_lag_seconds',
      help: 'How long the oldest due transaction has been waiting, of all processes together; NaN while the database is away',
      registers,
    }),
    syncQueries: new Counter({
      name: 'sync_queries_total',
      help: 'Queries by what they led to; abandoned ones wait for a person, failed ones could not be written down',
      labelNames: ['result'],
      registers,
    }),
    waitingReaders: new Gauge({
      name: 'waiting_readers',
      help: 'Requests with ?wait= and streams that are held open and wait now',
      registers,
    }),
    eventStreams: new Gauge({
      name: 'event_streams',
      help: 'Streams of the change feed that are open now',
      registers,
    }),
    eventsUnpublished: new Gauge({
      name: 'events_unpublished',
      help: 'Events that have no place in the feed yet, up to 10,000',
      registers,
    }),
    refunds: new Gauge({
      name: 'refunds',
      help: 'Refunds kept, by status, of all processes together; needs_review waits for a person',
      labelNames: ['status'],
      registers,
    }),
    refundAge: new Gauge({
      name: 'refund_age_seconds',
      help: 'Since the oldest refund of a status was asked for, of those that are not over; 0 without any',
      labelNames: ['status'],
      registers,
    }),
    gatewayConcurrency: new Gauge({
      name: 'gateway_concurrency_limit',
      help: 'Queries that may be in flight at once, by what the gateway has borne lately',
      registers,
    }),
    gatewayBreaker: new Gauge({
      name: 'gateway_breaker_state',
      help: 'Whether calls of an account pause, by operation: 0 no, 1 the next one finds out, 2 yes',
      labelNames: ['merchant', 'operation'],
      registers,
    }),
    ipnMissing: new Counter({
      name: 'ipn_missing_total',
      help: 'Transactions that came to their end, known by a request to sync and never notified',
      registers,
    }),
    ipnDelay: new Histogram({
      name: 'ipn_delay_seconds',
      help: 'From the first payment seen to the first notification; 0 where that came first',
      buckets: [0, 1, 10, 60, 600, 3_600, 21_600, 86_400],
      registers,
    }),
    discrepancies: new Counter({
      name: 'discrepancies_total',
      help: 'Disagreements seen for the first time, by kind',
      labelNames: ['kind'],
      registers,
    }),
    webhookDeliveries: new Counter({
      name: 'webhook_deliveries_total',
      help: 'Ends of calls to receivers of webhooks; a failed one is made again',
      labelNames: ['outcome'],
      registers,
    }),
    webhookCall: new Histogram({
      name: 'webhook_call_seconds',
      help: 'Calls to receivers of webhooks',
      buckets: [...LATENCIES_S, 15],
      registers,
    }),
    webhookPending: new Gauge({
      name: 'webhook_pending',
      help: 'Events that wait for a receiver of webhooks that is not disabled',
      registers,
    }),
    webhookEndpointsDisabled: new Gauge({
      name: 'webhook_endpoints_disabled',
      help: 'Receivers of webhooks that were given up, by reason; each waits for a person',
      labelNames: ['reason'],
      registers,
    }),
    gatewayCall: new Histogram({
      name: 'gateway_call_seconds',
      help: 'Calls to the gateway, by operation and outcome; unknown ones may have been acted on',
      labelNames: ['command', 'outcome'],
      buckets: LATENCIES_S,
      registers,
    }),
  }
}
