import { DomainError, REFUSALS } from '../errors.ts'
import { explainError } from '../http/problems.ts'
import type { ConsoleContext } from './context.ts'
import type { ConsoleRequest } from './env.ts'
import { ForeignFormError, isUnsafe, namePage, readFields } from './form-guard.ts'
import { pageWith } from './kept.ts'
import { renderConsolePage } from './layout.tsx'
import { t, useView } from './view.ts'

/** How soon a page that found no database tries again (s). */
const RETRY_S = 5

/** Answers an error with a page that explains what happened and what to do next. */
export function respondError(ctx: ConsoleContext, error: Error, c: ConsoleRequest) {
  if (error instanceof ForeignFormError) return respondRefusal(c, 403, describeError('foreignForm'))
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
  const { person } = useView()
  const form = { action: c.req.path, fields: readFields(c), isUnsent: true }
  const refreshTo = person ? pageWith(ctx, person.id, namePage(c), form) : namePage(c)
  return respondRefusal(c, 503, { ...describeError('interrupted'), refreshS: RETRY_S, refreshTo })
}

/** The token of a sign-in link must not stand in the log. */
function hideToken(path: string): string {
  return path.replace(/^(\/console\/sign-in\/).+/, '$1{token}')
}

type Description = { title: string; body: string; refreshS?: number; refreshTo?: string }

function describe(status: number, detail: string, requestId: string): Description {
  if (status === 503) return { ...describeError('unavailable'), refreshS: RETRY_S }
  if (status === 500)
    return { title: t('errors.failed.title'), body: t('errors.failed.body', { requestId }) }
  if (status === 403) return describeError('forbidden')
  if (status === 404) return describeError('notFound')
  if (status === 429) return { title: t('errors.limited.title'), body: detail }
  return { title: t('errors.refused.title'), body: detail }
}

type Explained =
  | 'forbidden'
  | 'notFound'
  | 'foreignForm'
  | 'wrongMethod'
  | 'interrupted'
  | 'unavailable'

/** What happened, and what to do next. */
export function describeError(name: Explained): Description {
  return { title: t(`errors.${name}.title`), body: t(`errors.${name}.body`) }
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
        <a href="/console">{t('errors.back')}</a>
      </p>
    </>,
  )
}
