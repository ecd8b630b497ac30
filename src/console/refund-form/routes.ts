import { Hono } from 'hono'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleEnv } from '../env.ts'
import { paymentFlow } from './payment-flow.tsx'
import { reasonRoutes } from './reason-routes.ts'
import { refundFormRoutes } from './serve-refund-form.ts'
import { surplusFlow } from './surplus-flow.tsx'

/** The forms that refund, and the reasons that they offer. */
export function refundRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.route('/', refundFormRoutes(ctx, paymentFlow(ctx)))
  app.route('/', refundFormRoutes(ctx, surplusFlow(ctx)))
  app.route('/', reasonRoutes(ctx))
  return app
}
