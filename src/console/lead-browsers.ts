import { accepts } from 'hono/accepts'
import { createMiddleware } from 'hono/factory'
import type { HttpEnv } from '../http/problems.ts'

/** Redirects whoever prefers a page to JSON. */
export function leadBrowsersTo(path: string) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    const supports = ['application/json', 'text/html']
    const type = accepts(c, { header: 'Accept', supports, default: 'application/json' })
    if (c.req.method !== 'GET' || type !== 'text/html') return await next()
    return c.redirect(path, 302)
  })
}
