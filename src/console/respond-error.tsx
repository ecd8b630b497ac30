import { REFUSALS } from '../errors.ts'
import { explainError } from '../platform/http/problems.ts'
import type { ConsoleContext } from './context.ts'
import type { ConsoleRequest } from './env.ts'
import { renderConsolePage } from './layout.tsx'
import { TEXTS } from './texts/en.ts'

/** How soon a page that found no database tries again (s). */
const RETRY_S = 5

/** Answers an error with a page that says what happened and what to do next. */
export function respondError({ log }: ConsoleContext, error: Error, c: ConsoleRequest) {
  const requestId = c.get('requestId')
  const { method, path } = c.req
  const { code, detail } = explainError(log, error, { requestId, method, path })
  c.set('refusal', code)
  const { status } = REFUSALS[code]
  const { title, body, refreshS } = describe(status, detail, requestId)
  return renderConsolePage(
    c,
    { title, status, ...(refreshS === undefined ? {} : { refreshS }) },
    <>
      <p>{body}</p>
      <p>
        <a href="/console">{TEXTS.errors.back}</a>
      </p>
    </>,
  )
}

type Description = { title: string; body: string; refreshS?: number }

function describe(status: number, detail: string, requestId: string): Description {
  const { forbidden, notFound, refused, unavailable, failed } = TEXTS.errors
  if (status === 503) return { ...unavailable, refreshS: RETRY_S }
  if (status === 500) return { title: failed.title, body: failed.body(requestId) }
  if (status === 403) return forbidden
  if (status === 404) return notFound
  return { title: refused.title, body: detail }
}
