import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { createMiddleware } from 'hono/factory'
import { SESSION_MINUTES } from '../access/sessions.ts'
import { isLoopback } from '../config/setting-types.ts'
import { readFormBody } from '../http/body.ts'
import type { ConsoleContext, ConsoleEnv, ConsoleRequest, FormFields } from './env.ts'
import { KEPT_S } from './kept.ts'

export const TOKEN_FIELD = 'formToken'

export const PAGE_FIELD = 'formPage'

/** A path of the console, other than the way in and the files of its pages. */
export const OWN_PAGE = /^\/console(?!\/(?:sign-in|assets))(?:[/?][\x21-\x7e]*)?$/

/** An unsafe request that did not come from a form of this session. */
export class ForeignFormError extends Error {}

export function isUnsafe(c: ConsoleRequest): boolean {
  return c.req.method !== 'GET' && c.req.method !== 'HEAD'
}

/** Refuses unsafe requests of other origins, by what the browser itself says, and reads the fields of the others. */
export function readOwnForms({ config }: Pick<ConsoleContext, 'config'>) {
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    if (isUnsafe(c)) {
      if (c.req.header('sec-fetch-site') !== 'same-origin') throw new ForeignFormError()
      c.set('form', await readFormBody(c.env, config.bodyTimeoutMs))
    }
    await next()
  })
}

export function protectForms(ctx: Pick<ConsoleContext, 'config'>) {
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    if (isUnsafe(c) && !carriesToken(c, readCookie(ctx, c, 'session') ?? '')) {
      throw new ForeignFormError()
    }
    await next()
  })
}

export function carriesToken(c: ConsoleRequest, sessionToken: string): boolean {
  const [nonce = '', mac = ''] = (c.get('form')?.[TOKEN_FIELD] ?? '').split('.')
  const [given, expected] = [Buffer.from(mac), Buffer.from(sign(sessionToken, nonce))]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** Makes a form token of a session. Each differs, and none needs to be stored: it proves that its maker knew the session. */
export function makeFormToken(sessionToken: string): string {
  const nonce = randomBytes(12).toString('base64url')
  return `${nonce}.${sign(sessionToken, nonce)}`
}

const sign = (sessionToken: string, nonce: string) =>
  createHmac('sha256', sessionToken).update(`form token ${nonce}`).digest('base64url')

export function readFields(c: ConsoleRequest): FormFields {
  const { [TOKEN_FIELD]: _, [PAGE_FIELD]: __, ...typed } = c.get('form') ?? {}
  return typed
}

/** The path of a request as links and forms write it; `c.req.path` is decoded. */
export const readPath = (c: ConsoleRequest) => new URL(c.req.url).pathname

/**
 * The page that shows the form of a request, or the page itself: its path and query, as it can be opened again. That of
 * a download is its list: a browser that is led into a file stays where it was.
 */
export function namePage(c: ConsoleRequest): string {
  const given = isUnsafe(c) ? (c.get('form')?.[PAGE_FIELD] ?? '') : c.req.url
  const url = URL.parse(given, 'http://localhost')
  for (const once of ['notice', 'kept', 'made', 'check', 'format']) url?.searchParams.delete(once)
  const page = url === null ? '' : url.pathname + url.search
  const isOwn = OWN_PAGE.test(page) && (!isUnsafe(c) || OWN_PAGE.test(given))
  return isOwn ? page : '/console'
}

type Settings = Pick<ConsoleContext, 'config'>

const MAX_AGE_S = { session: SESSION_MINUTES * 60, page: KEPT_S }

type CookieName = keyof typeof MAX_AGE_S

/** Plain http on this machine, where cookies cannot be `Secure` in every browser; any sign of a proxy's TLS counts. */
function isLocal({ config }: Settings, c: ConsoleRequest): boolean {
  if (config.CONSOLE_BASE_URL?.startsWith('https:')) return false
  if (c.req.header('x-forwarded-proto')?.includes('https')) return false
  return isLoopback(new URL(c.req.url).hostname)
}

/** With the prefix no other host, not even one of the same domain, can set the cookie (RFC 6265bis, 4.1.3.2). */
function nameCookie(ctx: Settings, c: ConsoleRequest, name: CookieName): string {
  return isLocal(ctx, c) ? name : `__Host-${name}`
}

export function readCookie(ctx: Settings, c: ConsoleRequest, name: CookieName): string | undefined {
  return getCookie(c, nameCookie(ctx, c, name))
}

/** Sets one of the console's own cookies: scripts cannot read it, and other sites' requests do not carry it. */
export function writeCookie(ctx: Settings, c: ConsoleRequest, name: CookieName, value: string) {
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
