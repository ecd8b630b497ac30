import type { Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { createBaseApp } from '../platform/http/base-app.ts'
import type { ConnectionPolicy } from '../platform/http/connection-limit.ts'
import { answerUnreadable } from '../platform/http/problems.ts'
import { setSecurityHeaders } from '../platform/http/security-headers.ts'
import { openServer, type ServerLimits } from '../platform/http/server.ts'
import type { HealthContext } from './context.ts'
import { healthRoutes } from './routes.ts'

/** Enough for every orchestrator and scraper; the rest of the process's open files are for the public port. */
const CONNECTIONS = { connections: 200, connectionsPerNetwork: 100 }

/** Creates the server of `METRICS_PORT`: health and metrics, and nothing else. */
export function openMetricsServer(
  ctx: HealthContext,
  limits: ServerLimits,
  policy: ConnectionPolicy,
): Server {
  const app = createBaseApp(ctx, '; METRICS_PORT serves only /healthz, /readyz and /metrics')
  app.route('/', healthRoutes(ctx, true))
  const serve = getRequestListener(app.fetch, {
    errorHandler: (error) => answerUnreadable(ctx.log, error),
  })
  return openServer(
    (request, response) => {
      setSecurityHeaders(response)
      void serve(request, response)
    },
    { ...limits, ...CONNECTIONS },
    policy,
  )
}
