import { Gauge, type Registry } from 'prom-client'

/** Whether the database is reachable and the background loops run. */
export function createRuntimeMetrics(registry: Registry) {
  const registers = [registry]
  return {
    databaseUp: new Gauge({
      name: 'database_up',
      help: 'Whether the database answered the queries of this scrape: 1 yes, 0 no',
      registers,
    }),
    loopRound: new Gauge({
      name: 'loop_last_round_timestamp_seconds',
      help: 'When a background loop last finished a round without an error, or started',
      labelNames: ['loop'],
      registers,
    }),
  }
}
