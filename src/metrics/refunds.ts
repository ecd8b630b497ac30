import { Gauge, type Registry } from 'prom-client'

export function createRefundMetrics(registry: Registry) {
  const registers = [registry]
  return {
    refunds: new Gauge({
      name: 'refunds',
      help: 'Stored refunds by status, of all processes; needs_review needs an operator',
      labelNames: ['status'],
      registers,
    }),
    missingAccountWork: new Gauge({
      name: 'missing_account_work',
      help: 'Refunds that have not ended, and transactions with a query due, of accounts that are no longer configured',
      labelNames: ['merchant', 'work'],
      registers,
    }),
    refundAge: new Gauge({
      name: 'refund_age_seconds',
      help: 'Age of the oldest refund of each status that is not final; 0 if there is none',
      labelNames: ['status'],
      registers,
    }),
  }
}
