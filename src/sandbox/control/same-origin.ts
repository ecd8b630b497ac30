import { createMiddleware } from 'hono/factory'

/**
 * Refuses what a page of another site makes a browser send here: a form needs no permission to be
 * posted across sites. Programs send neither header and pass.
 */
export const requireSameOrigin = createMiddleware(async (c, next) => {
  const origin = c.req.header('origin')
  const site = c.req.header('sec-fetch-site')
  const isOwn =
    (origin === undefined || readHost(origin) === c.req.header('host')) && site !== 'cross-site'
  if (isOwn || c.req.method === 'GET' || c.req.method === 'HEAD') return next()
  return c.text('This request comes from a page of another site, and is refused.', 403)
})

function readHost(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}
