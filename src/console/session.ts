import { createMiddleware } from 'hono/factory'
import { listAccounts } from '../access/authenticate.ts'
import { findLoss } from '../access/principal.ts'
import { findSession, recordUse, type StoredSession } from '../access/sessions.ts'
import type { Access } from '../access/types.ts'
import type { ConsoleContext } from './context.ts'
import { readCookie } from './cookies.ts'
import type { ConsoleEnv, ConsoleRequest, ConsoleSession } from './env.ts'
import { keepDraft, restoreDraft } from './forms/draft.ts'
import { makeFormToken } from './forms/form-token.ts'
import { carriesToken, ForeignFormError, isUnsafe } from './forms/protect-forms.ts'
import { showTo, useView } from './view.ts'

const SIGN_IN = '/console/sign-in'

/** A live refresh of an open page: it is sent while no one is there, too, so it does not keep the session alive. */
export function isRefresh(c: ConsoleRequest): boolean {
  return c.req.header('x-refresh') === '1'
}

/**
 * Finds the session of a request. Without a live one it leads to the sign-in page, and from there back to this page,
 * with what was typed if the browser still shows whose session it was.
 */
export function requireSession(ctx: ConsoleContext) {
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    const token = readCookie(ctx, c, 'session')
    const stored = token === undefined ? undefined : await findSession(ctx.sql, token)
    if (token === undefined || !stored?.isLive) return leadToSignIn(ctx, c, token, stored)
    if (stored.isDueForRecord && !isRefresh(c)) await recordUse(ctx.sql, stored.id)
    const { id, roles, isRecent, person } = stored
    const access = describeAccess(ctx, c, stored)
    c.set('access', access)
    c.set('session', { id, personId: person.id, roles, isRecent, name: person.name })
    c.set('makeFormToken', () => makeFormToken(token))
    c.set('isStillAllowed', () => isStillAllowed(ctx, access, token))
    if (!isRefresh(c)) restoreDraft(ctx, c, person.id)
    const view = useView()
    const language = stored.language ?? view.language
    return await showTo({ language, zone: stored.timeZone ?? view.zone }, next)
  })
}

/** Returns the session of a request. Use it behind `requireSession` only. */
export function requireOwnSession(c: ConsoleRequest): ConsoleSession {
  const session = c.get('session')
  if (!session) throw new Error('the request has no session')
  return session
}

function describeAccess(
  { merchants }: Pick<ConsoleContext, 'merchants'>,
  c: ConsoleRequest,
  { id: sessionId, person }: StoredSession,
): Access {
  const requestId = c.get('requestId')
  return {
    ...person,
    ...listAccounts(person, merchants),
    requestId,
    required: new Set(),
    isPerson: true,
    sessionId,
  }
}

async function isStillAllowed(
  { sql }: Pick<ConsoleContext, 'sql'>,
  access: Access,
  token: string,
): Promise<boolean> {
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
  if (!isRefresh(c)) keepDraft(ctx, c, stored?.person.id)
  return c.redirect(SIGN_IN, 303)
}
