import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { createMiddleware } from 'hono/factory'
import { z } from 'zod'
import { listAccounts } from '../access/authenticate.ts'
import { findLoss } from '../access/principal.ts'
import { findSession, recordUse, SESSION_MINUTES, type StoredSession } from '../access/sessions.ts'
import type { Access } from '../access/types.ts'
import { isLoopback } from '../config/setting-types.ts'
import { readFormBody } from '../http/body.ts'
import type { ConsoleContext, ConsoleEnv, ConsoleRequest, FormFields } from './env.ts'
import { KEPT_S, KeptForm, open, pageWith, readNotice, seal } from './kept.ts'
import { showTo, useView } from './view.ts'

export const TOKEN_FIELD = 'formToken'

export const PAGE_FIELD = 'formPage'

/** A page of the console that needs a session. */
const OWN_PAGE = /^\/console(?!\/(?:sign-in|assets))(?:[/?][\x21-\x7e]*)?$/

/** An unsafe request did not come from a form of this session. */
export class ForeignFormError extends Error {}

export function isUnsafe(c: ConsoleRequest): boolean {
  return c.req.method !== 'GET' && c.req.method !== 'HEAD'
}

/** Refuses unsafe requests of other origins, which the browser names, and reads the fields of the others. */
export function readOwnForms({ config }: Settings) {
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    if (isUnsafe(c)) {
      if (c.req.header('sec-fetch-site') !== 'same-origin') throw new ForeignFormError()
      c.set('form', await readFormBody(c.env, config.bodyTimeoutMs))
    }
    await next()
  })
}

export function protectForms(ctx: Settings) {
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    if (isUnsafe(c) && !carriesToken(c, readCookie(ctx, c, 'session') ?? '')) {
      throw new ForeignFormError()
    }
    await next()
  })
}

function carriesToken(c: ConsoleRequest, sessionToken: string): boolean {
  const [nonce = '', mac = ''] = (c.get('form')?.[TOKEN_FIELD] ?? '').split('.')
  const [given, expected] = [Buffer.from(mac), Buffer.from(sign(sessionToken, nonce))]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** Makes a form token. Each differs, and none is stored: it proves that its maker knew the session's token. */
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

/** Returns the path as links and forms write it: `c.req.path` is decoded. */
export const readPath = (c: ConsoleRequest) => new URL(c.req.url).pathname

/**
 * Names the page of a request or of the form that it sent, with its query, so that it can be opened again. For a
 * download it is the list: a browser that is led to a file stays on its page.
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

/** Over plain http on this machine not every browser takes a `Secure` cookie. Any sign of TLS at a proxy counts. */
function isLocal({ config }: Settings, c: ConsoleRequest): boolean {
  if (config.CONSOLE_BASE_URL?.startsWith('https:')) return false
  if (c.req.header('x-forwarded-proto')?.includes('https')) return false
  return isLoopback(new URL(c.req.url).hostname)
}

/** With the prefix no other host can set the cookie, not even one of the same domain (RFC 6265bis, 4.1.3.2). */
function nameCookie(ctx: Settings, c: ConsoleRequest, name: CookieName): string {
  return isLocal(ctx, c) ? name : `__Host-${name}`
}

export function readCookie(ctx: Settings, c: ConsoleRequest, name: CookieName): string | undefined {
  return getCookie(c, nameCookie(ctx, c, name))
}

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

export const SIGN_IN = '/console/sign-in'

/** Whether an open page refreshes itself. That does not keep the session alive: perhaps nobody is there. */
export function isRefresh(c: ConsoleRequest): boolean {
  return c.req.header('x-refresh') === '1'
}

/** Leads whoever has no live session to the sign-in, and from there back with what was typed. */
export function requireSession(ctx: ConsoleContext) {
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    const token = readCookie(ctx, c, 'session')
    const stored = token === undefined ? undefined : await findSession(ctx.db.lookups.sql, token)
    if (token === undefined || !stored?.isLive) return leadToSignIn(ctx, c, token, stored)
    if (stored.isDueForRecord && !isRefresh(c)) await recordUse(ctx.db.sql, stored.id)
    const access = describeAccess(ctx, c, stored)
    c.set('access', access)
    c.set('isStillAllowed', () => isStillAllowed(ctx, access, token))
    const { id: sessionId, roles, language, person } = stored
    const { id, name } = person
    const view = useView()
    const owner = { personId: id, path: readPath(c) }
    const { kept = '', notice } = isUnsafe(c) ? {} : c.req.query()
    const shown = {
      language: language ?? view.language,
      zone: stored.timeZone ?? view.zone,
      kept: open(ctx, owner, kept, KeptForm),
      notice: readNotice(ctx, owner, notice),
    }
    const own = { makeFormToken: () => makeFormToken(token), page: namePage(c) }
    return await showTo({ ...shown, person: { id, name, sessionId, roles, access, ...own } }, next)
  })
}

function describeAccess(ctx: ConsoleContext, c: ConsoleRequest, stored: StoredSession): Access {
  const { id: sessionId, person } = stored
  const own = {
    ...listAccounts(person, ctx.access.merchants),
    requestId: c.get('requestId'),
    sessionId,
  }
  return { ...person, ...own, required: new Set(), isPerson: true }
}

async function isStillAllowed({ db: { sql } }: ConsoleContext, access: Access, token: string) {
  const now = await findSession(sql, token)
  return now?.isLive === true && !findLoss(access, { ...now.person, roles: now.roles })
}

function leadToSignIn(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  token: string | undefined,
  stored: StoredSession | undefined,
): Response {
  const isForeign = isUnsafe(c) && stored !== undefined && !carriesToken(c, token ?? '')
  if (isForeign) throw new ForeignFormError()
  if (!isRefresh(c)) rememberPage(ctx, c, stored?.person.id)
  return c.redirect(SIGN_IN, 303)
}

/** The page of a person when the session ended, and the form that they had sent from there. */
const Then = z.strictObject({ page: z.string(), form: KeptForm.optional() })

const ANYBODY = 'anybody'
const ownerOf = (personId: string) => ({ personId, path: 'then' })

/** Sealed, it has to fit into a cookie of 4,096 bytes (RFC 6265, 6.1). */
const MAX_COOKIE = 3_900

/** Keeps the page of a request until the sign-in. What was typed there is given back only to the same person. */
function rememberPage(ctx: ConsoleContext, c: ConsoleRequest, personId: string | undefined): void {
  const page = namePage(c)
  const fields = readFields(c)
  const form = { action: readPath(c), fields, returned: 'unsent' as const }
  const isTyped = personId !== undefined && Object.keys(fields).length > 0
  const whole = isTyped ? seal(ctx, ownerOf(personId), { page, form }) : undefined
  if (whole !== undefined && whole.length <= MAX_COOKIE) {
    writeCookie(ctx, c, 'page', whole)
    return
  }
  // A page that was only opened does not replace what was typed on another.
  const kept = readCookie(ctx, c, 'page')
  if (kept !== undefined && !open(ctx, ownerOf(ANYBODY), kept, Then)) return
  const empty = seal(ctx, ownerOf(ANYBODY), { page })
  if (empty !== undefined && empty.length <= MAX_COOKIE) writeCookie(ctx, c, 'page', empty)
}

/** Returns the page that was remembered for the person or for anybody, and forgets it. */
export function recallPage(ctx: ConsoleContext, c: ConsoleRequest, personId: string): string {
  const kept = readCookie(ctx, c, 'page')
  if (kept === undefined) return '/console'
  removeCookie(ctx, c, 'page')
  const then = open(ctx, ownerOf(personId), kept, Then) ?? open(ctx, ownerOf(ANYBODY), kept, Then)
  if (!then) return '/console'
  return then.form ? pageWith(ctx, personId, then.page, then.form) : then.page
}
