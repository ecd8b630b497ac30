import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { LATENCIES_S } from './buckets.ts'

/** Notifications: received, acknowledged, missing and delayed. */
export function createIpnMetrics(registry: Registry) {
  const registers = [registry]
  return {
    ipnReceived: new Counter({
      name: 'ipn_received_total',
      help: 'Notifications received, by verdict; only stored ones were acknowledged',
      labelNames: ['verdict'],
      registers,
    }),
    ipnAck: new Histogram({
      name: 'ipn_ack_seconds',
      help: 'Time from receiving a notification to its response, whatever that is',
      buckets: LATENCIES_S,
      registers,
    }),
    ipnWaiting: new Gauge({
      name: 'ipn_waiting',
      help: 'Notifications that are waiting for a commit',
      registers,
    }),
    ipnMissing: new Counter({
      name: 'ipn_missing_total',
      help: 'Transactions that became final after a sync request and without any notification',
      registers,
    }),
    ipnDelay: new Histogram({
      name: 'ipn_delay_seconds',
      help: 'Time from the first payment seen to the first notification; 0 if the notification came first',
      buckets: [0, 1, 10, 60, 600, 3_600, 21_600, 86_400],
      registers,
    }),
  }
}
