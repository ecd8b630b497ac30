import { Hono } from 'hono'
import { signIn } from '../access/sessions.ts'
import { DomainError } from '../errors.ts'
import { createAddressFinder } from '../http/client-address.ts'
import { createRateLimiter, toSeconds } from '../platform/concurrency/rate-limiter.ts'
import { Card } from '../platform/html/components.tsx'
import { endOwn } from './account.tsx'
import type { ConsoleContext } from './context.ts'
import { readCookie, removeCookie, writeCookie } from './cookies.ts'
import type { ConsoleEnv, ConsoleRequest } from './env.ts'
import { renderConsolePage } from './layout.tsx'
import { redirectWith } from './redirect.ts'
import { recallPage } from './session.ts'
import { listTexts, t, usePerson } from './view.ts'

const PATH = '/console/sign-in'

/** Serves the way in. It needs no session; the token in the path stands for one that is not there yet. */
export function signInRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const findAddress = createAddressFinder(ctx.config.TRUSTED_PROXIES)
  const shared = { sql: ctx.sql, log: ctx.log, rates: createRateLimiter() }
  const app = new Hono<ConsoleEnv>()

  app.get(PATH, (c) =>
    renderConsolePage(
      c,
      { title: t('signIn.invitation') },
      <Invitation isReturning={readCookie(ctx, c, 'page') !== undefined} />,
    ),
  )
  // Whether the token is valid is not looked up: mail scanners and previews open links, too.
  app.get(`${PATH}/:token`, (c) => renderButton(c, c.req.param('token')))
  app.post(`${PATH}/:token`, async (c) => {
    const address = findAddress(c.env.incoming)
    const result = await signIn(shared, {
      ...{ token: c.req.param('token'), address, requestId: c.get('requestId') },
      userAgent: c.req.header('user-agent') ?? '',
      replaces: readCookie(ctx, c, 'session'),
    })
    if (result.kind === 'limited') {
      const retryAfterS = toSeconds(result.waitMs)
      throw new DomainError('rate_limited', t('signIn.limited'), { retryAfterS })
    }
    if (result.kind === 'refused') {
      ctx.log.info({ address, requestId: c.get('requestId') }, 'a sign-in link was refused')
      return renderConsolePage(
        c,
        { title: t('signIn.refused'), status: 410 },
        <>
          <p>{t('signIn.why')}</p>
          <Invitation isReturning={false} />
        </>,
      )
    }
    writeCookie(ctx, c, 'session', result.token)
    return c.redirect(recallPage(ctx, c, result.personId), 303)
  })
  return app
}

/** Serves the way out, behind the session. */
export function signOutRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  return new Hono<ConsoleEnv>().post('/console/sign-out', async (c) => {
    await endOwn(ctx, c, usePerson().sessionId)
    removeCookie(ctx, c, 'session')
    removeCookie(ctx, c, 'page')
    return redirectWith(c, PATH, 'signedOut')
  })
}

function Invitation({ isReturning }: { isReturning: boolean }) {
  return (
    <Card title={t('signIn.how')}>
      <ol>
        {listTexts('signIn.steps').map(([, step]) => (
          <li>{step}</li>
        ))}
      </ol>
      {isReturning ? <p>{t('signIn.returning')}</p> : null}
    </Card>
  )
}

function renderButton(c: ConsoleRequest, token: string) {
  return renderConsolePage(
    c,
    { title: t('signIn.open') },
    <Card title={t('signIn.explain')}>
      <form method="post" action={`${PATH}/${encodeURIComponent(token)}`}>
        <button type="submit">{t('signIn.invitation')}</button>
      </form>
    </Card>,
  )
}
