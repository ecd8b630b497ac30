import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { PACKAGE } from './version.ts'

/** Every outcome of a notification request; only `stored` is acknowledged. */
export const VERDICTS = [
  'stored',
  'malformed',
  'bad_signature',
  'recut',
  'unknown_merchant',
  'method',
  'address',
  'content_type',
  'too_large',
  'too_slow',
  'throttled',
  'overloaded',
  'store_failed',
] as const

export const CALL_OUTCOMES = ['answered', 'rejected', 'unavailable', 'unknown'] as const

/** Every way a query can end. `handed_back`: its claim was released before it; `failed`: the sync threw an error. */
export const SYNC_RESULTS = [
  'final',
  'again',
  'at_once',
  'abandoned',
  'lost',
  'handed_back',
  'failed',
] as const

const DELIVERY_OUTCOMES = [
  'delivered',
  'failed',
  'disabled',
  'removed',
  'withheld',
  'lost',
] as const

/** Upper bounds of latencies (s). */
const LATENCIES_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Fewer than for other latencies: each route has a series per bucket. */
const REQUESTS_S = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10]

type Series<Label extends string> = Partial<Record<Label, string | number>>

function counter<Label extends string = never>(
  name: string,
  help: string,
  labelNames: Label[] = [],
  known: readonly Series<Label>[] = [],
) {
  return (registry: Registry) => {
    const metric = new Counter({ name, help, labelNames, registers: [registry] })
    for (const series of known) metric.inc(series, 0)
    return metric
  }
}

function gauge<Label extends string = never>(name: string, help: string, labelNames: Label[] = []) {
  return (registry: Registry) => new Gauge({ name, help, labelNames, registers: [registry] })
}

function histogram<Label extends string = never>(
  name: string,
  help: string,
  buckets: number[],
  labelNames: Label[] = [],
  known: readonly Series<Label>[] = [],
) {
  return (registry: Registry) => {
    const metric = new Histogram({ name, help, buckets, labelNames, registers: [registry] })
    for (const series of known) metric.zero(series)
    return metric
  }
}

/**
 * Every metric of the service. Durations are in seconds. Known series, the last argument, begin at 0, so that an
 * alert on an increase sees the first occurrence.
 */
const METRICS = {
  databaseUp: gauge(
    'database_up',
    'Whether the database answered the queries of this scrape: 1 yes, 0 no',
  ),
  loopRound: gauge(
    'loop_last_round_timestamp_seconds',
    'When a background loop last finished a round without an error, or started',
    ['loop'],
  ),
  httpRequest: histogram(
    'http_request_seconds',
    'Time from a request to its response headers, by route; requests with ?wait= have a route of their own, notifications `ipn_ack_seconds`',
    REQUESTS_S,
    ['route', 'method', 'status'],
  ),
  connectionsRefused: counter(
    'http_connections_refused_total',
    'Connections closed unread: their network has its share (network), or the process has as many as it takes (total)',
    ['reason'],
    [{ reason: 'network' }, { reason: 'total' }],
  ),
  apiKeysExpiring: gauge(
    'api_keys_expiring',
    'API keys that end within seven days and that no other key replaces',
  ),
  ipnReceived: counter(
    'ipn_received_total',
    'Notifications received, by verdict; only stored ones were acknowledged',
    ['verdict'],
    VERDICTS.map((verdict) => ({ verdict })),
  ),
  ipnAck: histogram(
    'ipn_ack_seconds',
    'Time from receiving a notification to its response, whatever that is',
    LATENCIES_S,
  ),
  ipnWaiting: gauge('ipn_waiting', 'Notifications that are waiting for a commit'),
  ipnMissing: counter(
    'ipn_missing_total',
    'Transactions that became final after a sync request and without any notification',
  ),
  syncDue: gauge(
    'sync_due',
    'Transactions of configured accounts that are due, of all processes; NaN while the database is unreachable',
  ),
  syncLag: gauge(
    'sync_lag_seconds',
    'How long the oldest of them has waited, of all processes; NaN while the database is unreachable',
  ),
  syncQueries: counter(
    'sync_queries_total',
    'Queries by result; abandoned transactions need an operator, failed answers could not be stored',
    ['result'],
    SYNC_RESULTS.map((result) => ({ result })),
  ),
  discrepancies: counter('discrepancies_total', 'Discrepancies seen for the first time, by kind', [
    'kind',
  ]),
  gatewayCall: histogram(
    'gateway_call_seconds',
    'Calls to the gateway, by command (QUERY_PT, REFUND, cards or token) and outcome; it may have acted on unknown ones',
    LATENCIES_S,
    ['command', 'outcome'],
    ['QUERY_PT', 'REFUND'].flatMap((command) =>
      CALL_OUTCOMES.map((outcome) => ({ command, outcome })),
    ),
  ),
  gatewayBreaker: gauge(
    'gateway_breaker_state',
    'Circuit breaker of an account, by operation: 0 closed, 1 half-open, 2 open (calls paused)',
    ['merchant', 'operation'],
  ),
  refunds: gauge(
    'refunds',
    'Stored refunds by status, of all processes; needs_review needs an operator',
    ['status'],
  ),
  missingAccountWork: gauge(
    'missing_account_work',
    'Refunds that have not ended, and transactions with a query due, of accounts that are no longer configured',
    ['merchant', 'work'],
  ),
  refundAge: gauge(
    'refund_age_seconds',
    'Age of the oldest refund of each status that is not final; 0 if there is none',
    ['status'],
  ),
  waitingReaders: gauge(
    'waiting_readers',
    'Open requests with ?wait= and open streams that are waiting for a change',
  ),
  eventStreams: gauge('event_streams', 'Open streams of the change feed'),
  eventsUnpublished: gauge(
    'events_unpublished',
    'Events without a position in the feed, up to 10,000',
  ),
  webhookDeliveries: counter(
    'webhook_deliveries_total',
    'Webhook delivery attempts by outcome; failed ones are retried',
    ['outcome'],
    DELIVERY_OUTCOMES.map((outcome) => ({ outcome })),
  ),
  webhookCall: histogram('webhook_call_seconds', 'Duration of calls to webhook endpoints', [
    ...LATENCIES_S,
    15,
  ]),
  webhookPending: gauge(
    'webhook_pending',
    'Events waiting for delivery to an enabled webhook endpoint',
  ),
  webhookEndpointsDisabled: gauge(
    'webhook_endpoints_disabled',
    'Webhook endpoints that were disabled, by reason; each needs an operator',
    ['reason'],
  ),
  auditCheckpointAge: gauge(
    'audit_checkpoint_age_seconds',
    'How long the oldest audit entry that is in no checkpoint has waited: ten to eleven minutes at most while a worker runs; NaN while the database is unreachable',
  ),
}

type Row = (registry: Registry) => Counter | Gauge | Histogram
type Made<Table extends Record<string, Row>> = { [Name in keyof Table]: ReturnType<Table[Name]> }

export type Metrics = { registry: Registry } & Made<typeof METRICS>

export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of MISNAMED) registry.removeSingleMetric(name)
  const help = 'Always 1; the label is the running version'
  const info = gauge('ipn_processor_build_info', help, ['version'])(registry)
  info.set({ version: PACKAGE.version }, 1)
  return { registry, ...make(METRICS, registry) }
}

function make<Table extends Record<string, Row>>(table: Table, registry: Registry): Made<Table>
function make(table: Record<string, Row>, registry: Registry): Record<string, ReturnType<Row>> {
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, row(registry)]))
}

/** Default gauges with the names of counters; `nodejs_active_*` have the same values by type. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]
