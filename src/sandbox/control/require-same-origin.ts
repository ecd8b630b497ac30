import { createMiddleware } from 'hono/factory'

/**
 * Rejects unsafe requests that a page of another site sends through a browser: browsers post forms
 * across sites without asking for permission. Programs send neither header and pass.
 */
export const requireSameOrigin = createMiddleware(async (c, next) => {
  const origin = c.req.header('origin')
  const site = c.req.header('sec-fetch-site')
  const isOwn =
    (origin === undefined || readHost(origin) === c.req.header('host')) && site !== 'cross-site'
  if (isOwn || c.req.method === 'GET' || c.req.method === 'HEAD') return next()
  return c.text('Requests from pages of other sites are not allowed.', 403)
})

function readHost(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}
