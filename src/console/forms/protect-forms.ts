import { createMiddleware } from 'hono/factory'
import { type BodyBudget, readFormBody } from '../../http/body.ts'
import type { ConsoleContext } from '../context.ts'
import { readCookie } from '../cookies.ts'
import type { ConsoleEnv, ConsoleRequest, FormFields } from '../env.ts'
import { checkFormToken } from './form-token.ts'

/** The name of the hidden field with the session's form token. */
export const TOKEN_FIELD = 'formToken'

/** The name of the hidden field with the page that shows the form. */
export const PAGE_FIELD = 'formPage'

/** An unsafe request that did not come from a form of this session. */
export class ForeignFormError extends Error {}

/** Whether a request may change something. */
export function isUnsafe(c: ConsoleRequest): boolean {
  return c.req.method !== 'GET' && c.req.method !== 'HEAD'
}

/**
 * Refuses unsafe requests of other origins, by what the browser itself reports about their origin, and reads the
 * fields of the others.
 * @param budget shared with every other reader of bodies
 */
export function readOwnForms({ config }: Pick<ConsoleContext, 'config'>, budget: BodyBudget) {
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    if (isUnsafe(c)) {
      if (c.req.header('sec-fetch-site') !== 'same-origin') throw new ForeignFormError()
      c.set('form', await readFormBody(c.env.incoming, config.bodyTimeoutMs, budget))
    }
    await next()
  })
}

/** Refuses unsafe requests that do not carry the token of their session. */
export function protectForms(ctx: Pick<ConsoleContext, 'config'>) {
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    if (isUnsafe(c) && !carriesToken(c, readCookie(ctx, c, 'session') ?? '')) {
      throw new ForeignFormError()
    }
    await next()
  })
}

/** Whether the form of a request was made for the session with this token. */
export function carriesToken(c: ConsoleRequest, sessionToken: string): boolean {
  return checkFormToken(sessionToken, c.get('form')?.[TOKEN_FIELD] ?? '')
}

/** Returns the fields of a form. */
export async function readForm(c: ConsoleRequest): Promise<FormFields> {
  return c.get('form') ?? {}
}
