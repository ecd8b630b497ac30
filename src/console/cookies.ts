import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { SESSION_MINUTES } from '../access/sessions.ts'
import { isLoopback } from '../config/setting-types.ts'
import type { ConsoleContext } from './context.ts'
import type { ConsoleRequest } from './env.ts'
import { KEPT_S } from './kept.ts'

type Settings = Pick<ConsoleContext, 'config'>

export type CookieName = 'session' | 'page'

const MAX_AGE_S: Readonly<Record<CookieName, number>> = {
  session: SESSION_MINUTES * 60,
  page: KEPT_S,
}

/**
 * Whether the browser is on this machine and speaks plain http to it: then cookies cannot be `Secure` in every browser.
 * A proxy that terminates TLS may present itself as a local host, so any sign of TLS counts.
 */
function isLocal({ config }: Settings, c: ConsoleRequest): boolean {
  if (config.CONSOLE_BASE_URL?.startsWith('https:')) return false
  if (c.req.header('x-forwarded-proto')?.includes('https')) return false
  return isLoopback(new URL(c.req.url).hostname)
}

/** With the prefix no other host, not even one of the same domain, can set the cookie (RFC 6265bis, 4.1.3.2). */
function nameCookie(ctx: Settings, c: ConsoleRequest, name: CookieName): string {
  return isLocal(ctx, c) ? name : `__Host-${name}`
}

/** Returns the value of one of the console's own cookies. */
export function readCookie(ctx: Settings, c: ConsoleRequest, name: CookieName): string | undefined {
  return getCookie(c, nameCookie(ctx, c, name))
}

/** Sets one of the console's own cookies: scripts cannot read it, and other sites' requests do not carry it. */
export function writeCookie(
  ctx: Settings,
  c: ConsoleRequest,
  name: CookieName,
  value: string,
): void {
  setCookie(c, nameCookie(ctx, c, name), value, {
    path: '/',
    httpOnly: true,
    sameSite: 'Lax',
    secure: !isLocal(ctx, c),
    maxAge: MAX_AGE_S[name],
  })
}

export function removeCookie(ctx: Settings, c: ConsoleRequest, name: CookieName): void {
  deleteCookie(c, nameCookie(ctx, c, name), { path: '/', secure: !isLocal(ctx, c) })
}
