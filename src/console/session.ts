import { createMiddleware } from 'hono/factory'
import { z } from 'zod'
import { listAccounts } from '../access/authenticate.ts'
import { findLoss } from '../access/principal.ts'
import { findSession, recordUse, type StoredSession } from '../access/sessions.ts'
import type { Access } from '../access/types.ts'
import type { ConsoleContext, ConsoleEnv, ConsoleRequest } from './env.ts'
import {
  carriesToken,
  ForeignFormError,
  isUnsafe,
  makeFormToken,
  namePage,
  readCookie,
  readFields,
  readPath,
  removeCookie,
  writeCookie,
} from './form-guard.ts'
import { KeptForm, open, pageWith, readNotice, seal } from './kept.ts'
import { showTo, useView } from './view.ts'

const SIGN_IN = '/console/sign-in'

/** A live refresh of an open page: it is sent while no one is there, too, so it does not keep the session alive. */
export function isRefresh(c: ConsoleRequest): boolean {
  return c.req.header('x-refresh') === '1'
}

/** Without a live session it leads to the sign-in page, and from there back, with what was typed. */
export function requireSession(ctx: ConsoleContext) {
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    const token = readCookie(ctx, c, 'session')
    const stored = token === undefined ? undefined : await findSession(ctx.db.sql, token)
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

/** Where a person was when the session ended, and what they had sent from there. */
const Then = z.strictObject({ page: z.string(), form: KeptForm.optional() })

const ANYBODY = 'anybody'
const ownerOf = (personId: string) => ({ personId, path: 'then' })

/** Sealed it has to fit into a cookie of 4,096 bytes (RFC 6265, 6.1). */
const MAX_COOKIE = 3_900

/** Keeps the page of a request until the sign-in; what was typed there only the same person gets back. */
function rememberPage(ctx: ConsoleContext, c: ConsoleRequest, personId: string | undefined): void {
  const page = namePage(c)
  const fields = readFields(c)
  const form = { action: readPath(c), fields, isUnsent: true }
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

/** Where a person is led after the sign-in: to what was remembered for them or for anybody, which is then forgotten. */
export function recallPage(ctx: ConsoleContext, c: ConsoleRequest, personId: string): string {
  const kept = readCookie(ctx, c, 'page')
  if (kept === undefined) return '/console'
  removeCookie(ctx, c, 'page')
  const then = open(ctx, ownerOf(personId), kept, Then) ?? open(ctx, ownerOf(ANYBODY), kept, Then)
  if (!then) return '/console'
  return then.form ? pageWith(ctx, personId, then.page, then.form) : then.page
}
