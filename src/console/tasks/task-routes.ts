import { Hono } from 'hono'
import { isUuid } from '../../http/fields.ts'
import { enableEndpoint } from '../../webhooks/change-endpoint.ts'
import { endpointNotFound, listVisibleOwners } from '../../webhooks/find-endpoints.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleEnv } from '../env.ts'
import { TASKS_PATH } from '../paths.ts'
import { requireScope } from '../permissions.ts'
import { redirectWith } from '../redirect.ts'
import { discrepancyPageRoutes } from './discrepancy/discrepancy-routes.ts'
import { showTasks } from './list/show-tasks.tsx'
import { refundPageRoutes } from './refund/refund-routes.ts'

/** Serves what waits for a person, and the pages where people decide. */
export function taskRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.get(TASKS_PATH, (c) => showTasks(ctx, c))
  app.route('/', refundPageRoutes(ctx))
  app.route('/', discrepancyPageRoutes(ctx))
  app.post('/console/webhooks/:endpointId/enable', async (c) => {
    requireScope(c, 'webhooks:write')
    const access = c.get('access')
    const { endpointId } = c.req.param()
    if (!isUuid(endpointId)) throw endpointNotFound(endpointId)
    const owners = listVisibleOwners(access, undefined)
    await enableEndpoint(ctx, { access, owners, id: endpointId.toLowerCase() })
    return redirectWith(c, `${TASKS_PATH}#endpoints`, 'endpointEnabled')
  })
  return app
}
