import { Gauge, Histogram, type Registry } from 'prom-client'
import { LATENCIES_S } from './buckets.ts'

/** Calls to the gateway, and what limits them. */
export function createGatewayMetrics(registry: Registry) {
  const registers = [registry]
  return {
    gatewayCall: new Histogram({
      name: 'gateway_call_seconds',
      help: 'Calls to the gateway, by operation and outcome; the gateway may have acted on unknown ones',
      labelNames: ['command', 'outcome'],
      buckets: LATENCIES_S,
      registers,
    }),
    gatewayConcurrency: new Gauge({
      name: 'gateway_concurrency_limit',
      help: 'Queries that may be in flight at once; failed calls lower it, answered calls raise it',
      registers,
    }),
    gatewayBreaker: new Gauge({
      name: 'gateway_breaker_state',
      help: 'Circuit breaker of an account, by operation: 0 closed, 1 half-open, 2 open (calls paused)',
      labelNames: ['merchant', 'operation'],
      registers,
    }),
  }
}
