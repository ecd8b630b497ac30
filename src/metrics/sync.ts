import { Counter, Gauge, type Registry } from 'prom-client'

/** Queries of transactions that are due, and the disagreements they reveal. */
export function createSyncMetrics(registry: Registry) {
  const registers = [registry]
  return {
    syncDue: new Gauge({
      name: 'sync_due',
      help: 'Transactions due for a query, of all processes; NaN while the database is unreachable',
      registers,
    }),
    syncLag: new Gauge({
      name: 'sync_lag_seconds',
      help: 'How long the oldest due transaction has waited, of all processes; NaN while the database is unreachable',
      registers,
    }),
    syncQueries: new Counter({
      name: 'sync_queries_total',
      help: 'Queries by result; abandoned transactions need an operator, failed answers could not be stored',
      labelNames: ['result'],
      registers,
    }),
    discrepancies: new Counter({
      name: 'discrepancies_total',
      help: 'Discrepancies seen for the first time, by kind',
      labelNames: ['kind'],
      registers,
    }),
  }
}
