import { Hono } from 'hono'
import { DomainError } from '../errors.ts'
import { assetRoutes } from './assets.ts'
import type { ConsoleContext } from './context.ts'
import type { ConsoleEnv } from './env.ts'
import { protectForms } from './forms/protect-forms.ts'
import { respondError } from './respond-error.tsx'
import { requireSession } from './session.ts'

/** What a browser may do with the pages: load their own files, send their own forms, and nothing inline. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Creates the console: the pages for the people who handle money. */
export function createConsole(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.onError((error, c) => respondError(ctx, error, c))
  app.route('/', assetRoutes())
  app.use('/console/*', async (c, next) => {
    await next()
    c.header('content-security-policy', PAGE_POLICY)
  })
  app.get('/console/sign-in', (c) => c.text('sign in'))
  app.use('/console/*', requireSession(ctx), protectForms())
  // Every part adds its routes here.
  app.all('/console/*', (c) => {
    throw new DomainError('not_found', `There is no page ${c.req.path}`)
  })
  return app
}
