import { DomainError, REFUSALS } from '../errors.ts'
import { explainError } from '../http/problems.ts'
import type { ConsoleContext } from './context.ts'
import type { ConsoleRequest } from './env.ts'
import { keepDraft } from './forms/draft.ts'
import { ForeignFormError, isUnsafe, PAGE_FIELD } from './forms/protect-forms.ts'
import { renderConsolePage } from './layout.tsx'
import { SignInAgainError } from './permissions.ts'
import { TEXTS } from './texts/en.ts'

/** How soon a page that found no database tries again (s). */
const RETRY_S = 5

/** Answers an error with a page that explains what happened and what to do next. */
export function respondError(ctx: ConsoleContext, error: Error, c: ConsoleRequest) {
  if (error instanceof SignInAgainError) return respondSignInAgain(ctx, c)
  if (error instanceof ForeignFormError) return respondRefusal(c, 403, TEXTS.errors.foreignForm)
  // The person's access has ended since the request began.
  if (error instanceof DomainError && error.code === 'unauthenticated') {
    return c.redirect('/console/sign-in', 303)
  }
  const requestId = c.get('requestId')
  const failed = { requestId, method: c.req.method, path: hideToken(c.req.path) }
  const { code, detail, options } = explainError(ctx.log, error, failed)
  c.set('refusal', code)
  const { status } = REFUSALS[code]
  const waitS = options?.retryAfterS ?? (status === 503 ? RETRY_S : undefined)
  if (waitS !== undefined) c.header('retry-after', String(waitS))
  if (status === 503 && isUnsafe(c)) return respondInterrupted(ctx, c)
  return respondRefusal(c, status, describe(status, detail, requestId))
}

/** A form whose outcome is not known, because the database did not answer: leads back to it, filled in again. */
function respondInterrupted(ctx: ConsoleContext, c: ConsoleRequest) {
  keepDraft(ctx, c, c.get('session')?.personId)
  const refreshTo = c.get('form')?.[PAGE_FIELD] ?? '/console'
  return respondRefusal(c, 503, { ...TEXTS.errors.interrupted, refreshS: RETRY_S, refreshTo })
}

/** The token of a sign-in link must not stand in the log. */
function hideToken(path: string): string {
  return path.replace(/^(\/console\/sign-in\/).+/, '$1{token}')
}

type Description = { title: string; body: string; refreshS?: number; refreshTo?: string }

function describe(status: number, detail: string, requestId: string): Description {
  const { forbidden, notFound, refused, limited, unavailable, failed } = TEXTS.errors
  if (status === 503) return { ...unavailable, refreshS: RETRY_S }
  if (status === 500) return { title: failed.title, body: failed.body(requestId) }
  if (status === 403) return forbidden
  if (status === 404) return notFound
  if (status === 429) return { title: limited.title, body: detail }
  return { title: refused.title, body: detail }
}

type Status = (typeof REFUSALS)[keyof typeof REFUSALS]['status']

/** Answers with a page about why there is nothing else to see. */
export function respondRefusal(c: ConsoleRequest, status: Status, { body, ...shown }: Description) {
  return renderConsolePage(
    c,
    { ...shown, status },
    <>
      <p>{body}</p>
      <p>
        <a href="/console">{TEXTS.errors.back}</a>
      </p>
    </>,
  )
}

/** Explains that the person has to sign in again first; what they typed is kept for when they come back. */
function respondSignInAgain(ctx: ConsoleContext, c: ConsoleRequest) {
  keepDraft(ctx, c, c.get('session')?.personId)
  const { title, why, kept } = TEXTS.signIn.again
  return renderConsolePage(
    c,
    { title, status: 403 },
    <>
      <p>{why}</p>
      <p>{kept}</p>
      <p>
        <a href="/console/sign-in">{TEXTS.signIn.how}</a>
      </p>
    </>,
  )
}
