import type { OpenAPIHono } from '@hono/zod-openapi'
import type { HttpEnv } from '../http/problems.ts'
import { endpointChangeRoutes } from './change-routes.ts'
import type { WebhooksContext } from './context.ts'
import { deliveryRoutes } from './delivery-routes.ts'
import { webhookRoutes } from './routes.ts'

/** Mounts all routes on webhook endpoints. */
export function mountWebhooks(app: OpenAPIHono<HttpEnv>, ctx: WebhooksContext): void {
  app.route('/', webhookRoutes(ctx))
  app.route('/', endpointChangeRoutes(ctx))
  app.route('/', deliveryRoutes(ctx))
}
