import { Hono } from 'hono'
import { accepts } from 'hono/accepts'
import { createMiddleware } from 'hono/factory'
import { methodNotAllowed } from 'hono/method-not-allowed'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { auditRefusals } from '../access/audit.ts'
import { DomainError, REFUSALS } from '../errors.ts'
import { explainError, type HttpEnv } from '../http/problems.ts'
import { accountPage, signInRoutes, signOutRoutes } from './account.tsx'
import { discrepancyPage } from './discrepancy.tsx'
import type { ConsoleContext, ConsoleEnv, ConsoleRequest } from './env.ts'
import { healthPage } from './health.tsx'
import { pageWith } from './kept.ts'
import { assetRoutes, type PageOptions, renderConsolePage } from './layout.tsx'
import { LISTS } from './lists.tsx'
import type { Mount } from './page.ts'
import { peoplePage, personPage } from './people.tsx'
import { reasonsPage } from './reasons.tsx'
import { refundPage } from './refund.tsx'
import { refundFormRoutes } from './refund-form.tsx'
import { searchRoutes } from './search.tsx'
import {
  ForeignFormError,
  isUnsafe,
  namePage,
  protectForms,
  readFields,
  readOwnForms,
  readPath,
  requireSession,
  SIGN_IN,
} from './session.ts'
import { createTaskCount, taskRoutes } from './tasks.tsx'
import { findText } from './texts/text.ts'
import { storyRoutes } from './transaction.tsx'
import { chooseLanguage, showTo, t, useView } from './view.ts'

const leadBrowsers = createMiddleware<HttpEnv>(async (c, next) => {
  const supports = ['application/json', 'text/html']
  const type = accepts(c, { header: 'Accept', supports, default: 'application/json' })
  if (c.req.method !== 'GET' || type !== 'text/html') return await next()
  return c.redirect('/console', 302)
})

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

export function mountConsole(app: Hono<HttpEnv>, ctx: ConsoleContext) {
  if (ctx.config.CONSOLE === 'off') return
  app.use('/', leadBrowsers)
  app.route('/', createConsole(ctx))
}

const PAGES: readonly Mount[] = [
  signOutRoutes,
  searchRoutes,
  storyRoutes,
  taskRoutes,
  ...LISTS,
  healthPage,
  accountPage,
  peoplePage,
  personPage,
  reasonsPage,
  refundPage,
  discrepancyPage,
  ...refundFormRoutes,
]

function createConsole(ctx: ConsoleContext): Hono<ConsoleEnv> {
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
        return respondRefusal(c, 405)
      },
    }),
  )
  app.use('/console/*', readOwnForms(ctx))
  signInRoutes(app, ctx)
  app.use(
    '/console/*',
    requireSession(ctx),
    explainUnknownPages,
    auditRefusals(ctx),
    refuseNul,
    protectForms(ctx),
    createTaskCount(ctx),
  )
  for (const mount of PAGES) mount(app, ctx)
  return app
}

/** No id has a NUL, and Postgres accepts none in a text. */
const refuseNul = createMiddleware<ConsoleEnv>(async (c, next) => {
  if (readPath(c).includes('%00')) {
    throw new DomainError('not_found', 'No id has a NUL character')
  }
  await next()
})

const explainUnknownPages = createMiddleware<ConsoleEnv>(async (c, next) => {
  await next()
  const isProblem = c.res.headers.get('content-type') === 'application/problem+json'
  if (c.res.status === 404 && isProblem) c.res = await respondRefusal(c, 404)
})

const RETRY_S = 5

function respondError(ctx: ConsoleContext, error: Error, c: ConsoleRequest) {
  if (error instanceof ForeignFormError) return respondRefusal(c, 403, { name: 'foreignForm' })
  // The person's access has ended since the request began.
  if (error instanceof DomainError && error.code === 'unauthenticated') {
    return c.redirect(SIGN_IN, 303)
  }
  const requestId = c.get('requestId')
  const failed = { requestId, method: c.req.method, path: hideToken(c.req.path) }
  const { code, message: detail, retryAfterS } = explainError(ctx.log, error, failed)
  c.set('refusal', code)
  const { status } = REFUSALS[code]
  const waitS = retryAfterS ?? (status === 503 ? RETRY_S : undefined)
  if (waitS !== undefined) c.header('retry-after', String(waitS))
  if (status === 503 && isUnsafe(c)) return respondInterrupted(ctx, c)
  const refresh = status === 503 ? { refreshS: RETRY_S } : {}
  return respondRefusal(c, status, { ...refresh, detail, requestId })
}

/** Leads back to a form, filled in again, whose outcome is unknown because the database did not answer. */
function respondInterrupted(ctx: ConsoleContext, c: ConsoleRequest) {
  const { person } = useView()
  const form = { action: readPath(c), fields: readFields(c), returned: 'unclear' as const }
  const refreshTo = person ? pageWith(ctx, person.id, namePage(c), form) : namePage(c)
  return respondRefusal(c, 503, { name: 'interrupted', refreshS: RETRY_S, refreshTo })
}

/** Keeps the token of a sign-in link out of the log. */
function hideToken(path: string): string {
  return path.replace(/^(\/console\/sign-in\/).+/, '$1{token}')
}

type Shown = Pick<PageOptions, 'refreshS' | 'refreshTo'> & {
  name?: 'foreignForm' | 'interrupted'
  detail?: string
  requestId?: string
}

function respondRefusal(
  c: ConsoleRequest,
  status: ContentfulStatusCode,
  { name, detail = '', requestId = '', ...refresh }: Shown = {},
) {
  const { language } = useView()
  const title = findText(language, `errors.${name ?? status}.title`)
  const known = title === undefined ? 'refused' : (name ?? status)
  return renderConsolePage(
    c,
    { title: title ?? t('errors.refused.title'), status, ...refresh },
    <>
      <p>{findText(language, `errors.${known}.body`, { requestId, detail })}</p>
      <p>
        <a href="/console">{t('errors.back')}</a>
      </p>
    </>,
  )
}
