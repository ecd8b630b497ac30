import { Hono } from 'hono'
import { accepts } from 'hono/accepts'
import { createMiddleware } from 'hono/factory'
import { methodNotAllowed } from 'hono/method-not-allowed'
import { auditRefusals } from '../access/audit.ts'
import { DomainError } from '../errors.ts'
import type { BodyBudget } from '../http/body.ts'
import type { HttpEnv } from '../http/problems.ts'
import { accountPage } from './account.tsx'
import { assetRoutes } from './assets.ts'
import type { ConsoleContext } from './context.ts'
import { discrepancyPage } from './discrepancy.tsx'
import type { ConsoleEnv } from './env.ts'
import { protectForms, readOwnForms } from './form-guard.ts'
import { LISTS } from './lists.tsx'
import { peoplePage, personPage } from './people.tsx'
import { reasonsPage } from './reasons.tsx'
import { refundPage } from './refund.tsx'
import { refundFormRoutes } from './refund-form.tsx'
import { describeError, respondError, respondRefusal } from './respond-error.tsx'
import { searchRoutes } from './search.tsx'
import { requireSession } from './session.ts'
import { signInRoutes, signOutRoutes } from './sign-in.tsx'
import { createTaskCount, taskRoutes } from './tasks.tsx'
import { storyRoutes } from './transaction.tsx'
import { chooseLanguage, showTo } from './view.ts'

/** Redirects whoever prefers a page to JSON. */
export function leadBrowsersTo(path: string) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    const supports = ['application/json', 'text/html']
    const type = accepts(c, { header: 'Accept', supports, default: 'application/json' })
    if (c.req.method !== 'GET' || type !== 'text/html') return await next()
    return c.redirect(path, 302)
  })
}

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

/**
 * Mounts the console, unless it is switched off: the pages for the people who handle money.
 * @param bodyBudget shared with every other reader of bodies
 */
export function mountConsole(app: Hono<HttpEnv>, ctx: ConsoleContext, bodyBudget: BodyBudget) {
  if (ctx.config.CONSOLE === 'off') return
  app.use('/', leadBrowsersTo('/console'))
  app.route('/', createConsole(ctx, bodyBudget))
}

const PAGES = [accountPage, peoplePage, personPage, reasonsPage, refundPage, discrepancyPage]

function createConsole(ctx: ConsoleContext, bodyBudget: BodyBudget): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.onError((error, c) => respondError(ctx, error, c))
  app.route('/', assetRoutes())
  app.use('/console/*', async (c, next) => {
    await showTo({ language: chooseLanguage(c), zone: ctx.config.CAPS_TIME_ZONE }, next)
    c.header('content-security-policy', PAGE_POLICY)
  })
  app.use(
    '/console/*',
    methodNotAllowed({
      app,
      onMethodNotAllowed: (c, methods) => {
        c.header('allow', methods.join(', '))
        return respondRefusal(c, 405, describeError('wrongMethod'))
      },
    }),
  )
  app.use('/console/*', readOwnForms(ctx, bodyBudget))
  app.route('/', signInRoutes(ctx))
  app.use(
    '/console/*',
    requireSession(ctx),
    explainUnknownPages(),
    auditRefusals(ctx),
    refuseNul,
    protectForms(ctx),
    createTaskCount(ctx),
  )
  app.route('/', signOutRoutes(ctx))
  app.route('/', searchRoutes(ctx))
  storyRoutes(app, ctx)
  taskRoutes(app, ctx)
  for (const mount of [...LISTS, ...PAGES, ...refundFormRoutes]) mount(app, ctx)
  return app
}

/** No id has a NUL, and Postgres takes none in a text. */
const refuseNul = createMiddleware<ConsoleEnv>(async (c, next) => {
  if (new URL(c.req.url).pathname.includes('%00')) {
    throw new DomainError('not_found', 'No id has a NUL character')
  }
  await next()
})

/** Answers with a page where no route does. */
function explainUnknownPages() {
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    await next()
    const isProblem = c.res.headers.get('content-type') === 'application/problem+json'
    if (c.res.status === 404 && isProblem) {
      c.res = await respondRefusal(c, 404, describeError('notFound'))
    }
  })
}
