import { createMiddleware } from 'hono/factory'
import type { withScope } from '../../access/authenticate.ts'
import type { HttpEnv } from '../../http/problems.ts'

/** Marks a request with `dryRun=true`, which writes nothing, so that its refusal is not recorded as that of a write. */
const markDryRun = createMiddleware<HttpEnv>(async (c, next) => {
  if (c.req.query('dryRun') === 'true') c.set('isDryRun', true)
  await next()
})

/**
 * Makes a route with a dry run require a scope. Whoever lacks it is refused before the request is marked: an attempt
 * without the scope is recorded, dry run or not. Other routes know no dry run, whatever their query holds.
 */
export function withDryRun({ middleware, security }: ReturnType<typeof withScope>) {
  return { middleware: [middleware, markDryRun], security }
}
