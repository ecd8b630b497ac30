import { Counter, Histogram, type Registry } from 'prom-client'

/** Fewer than for other latencies: each route has a series per bucket. */
const REQUESTS_S = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10]

export function createHttpMetrics(registry: Registry) {
  return {
    httpRequest: new Histogram({
      name: 'http_request_seconds',
      help: 'Time from a request to its response headers, by route; requests with ?wait= have a route of their own',
      labelNames: ['route', 'method', 'status'],
      buckets: REQUESTS_S,
      registers: [registry],
    }),
    connectionsRefused: new Counter({
      name: 'http_connections_refused_total',
      help: 'Connections closed unread: their network has its share (network), or the process has as many as it takes (total)',
      labelNames: ['reason'],
      registers: [registry],
    }),
  }
}
