import { randomBytes } from 'node:crypto'
import { nameNetwork } from '../http/client-address.ts'
import type { Rate, RateLimiter } from '../platform/concurrency/rate-limiter.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { recordWrite } from './audit.ts'
import { hashKey } from './keys.ts'
import { SESSION_MINUTES } from './sessions.ts'
import { listScopes } from './types.ts'

/**
 * Sign-ins that may fail from one network, and that one person may make. A link's token has 256 random bits, so this
 * limits the load and the log, not the chance of a guess.
 */
export const FAILURES_OF_NETWORK: Rate = { perMinute: 10, burst: 10 }
export const SIGN_INS_OF_PERSON: Rate = { perMinute: 20, burst: 20 }

/** How long a sign-in link is valid (minutes). */
export const LINK_MINUTES = 10

/** The part of a client's user agent that is kept. */
const MAX_USER_AGENT = 200

/** The token of a new sign-in link, which cannot be retrieved again; the time is ISO 8601. */
export type SignInLink = { token: string; expiresAt: string }

/** Makes a link that opens one session for a person. Only its hash is stored. */
export async function createSignInLink(tx: Tx, personId: string): Promise<SignInLink> {
  const token = generateToken()
  const [row] = await tx<{ expiresAt: string }[]>`
    insert into sign_in_links (token_hash, person_id, expires_at)
    values (${hashKey(token)}, ${personId}, now() + ${LINK_MINUTES} * interval '1 minute')
    returning expires_at::text as "expiresAt"`
  if (!row) throw new Error('no sign-in link was stored')
  return { token, expiresAt: toIso(row.expiresAt) }
}

/** @param baseUrl the origin of the console, as people see it */
export function formatSignInUrl(baseUrl: string, { token }: SignInLink): string {
  return `${baseUrl}/console/sign-in/${token}`
}

/** Who presents the token of a link, and from where. */
export type SignInRequest = {
  token: string
  address: string
  userAgent: string
  requestId: string
  /** The token of the session that this browser has: the new one takes its place. */
  replaces?: string | undefined
}

export type SignInResult =
  | { kind: 'opened'; token: string; personId: string }
  | { kind: 'refused' }
  | { kind: 'limited'; waitMs: number }

type SignInContext = { sql: Sql; log: Log; rates: RateLimiter }

/**
 * Opens a session with the token of a link, which is used up by it. The session's token is always a new one, so no
 * one can know it beforehand; the session that the browser had ends.
 * @returns `refused` for a token that is unknown, used or expired, or whose person's access has ended; `limited` instead
 *   when too many sign-ins of this network failed, or when this person made too many
 */
export async function signIn(ctx: SignInContext, request: SignInRequest): Promise<SignInResult> {
  const result = await tryLink(ctx, request)
  if (result.kind !== 'refused') return result
  // Only failures count, and only against failures: behind a proxy that is not listed everybody is one network, and
  // nobody's wrong links may keep the others out.
  const network = `network ${nameNetwork(request.address)}`
  const { ok, waitMs } = ctx.rates.take(network, FAILURES_OF_NETWORK)
  return ok ? result : { kind: 'limited', waitMs }
}

async function tryLink(
  { sql, rates, log }: SignInContext,
  request: SignInRequest,
): Promise<SignInResult> {
  // A guess costs one statement, and no transaction.
  if (!(await isOpen(sql, request.token))) return { kind: 'refused' }
  return await runInTransaction(sql, async (tx) => {
    const person = await lockInvited(tx, request.token)
    if (!person) return { kind: 'refused' }
    const { ok, waitMs } = rates.take(`person ${person.id}`, SIGN_INS_OF_PERSON)
    if (!ok) return { kind: 'limited', waitMs }
    if (!(await useLink(tx, request.token))) return { kind: 'refused' }
    return {
      kind: 'opened',
      personId: person.id,
      token: await openSession(tx, log, person, request),
    }
  })
}

async function isOpen(sql: Sql, token: string): Promise<boolean> {
  const found = await sql`
    select from sign_in_links
    where token_hash = ${hashKey(token)} and used_at is null and expires_at > now()`
  return found.length > 0
}

type Invited = { id: string; name: string; keyId: string; roles: string[] }

/** Locks the person of a link: an end of their access waits, and then ends this session, too. Ends lock links later. */
async function lockInvited(tx: Tx, token: string): Promise<Invited | undefined> {
  const [person] = await tx<Invited[]>`
    select id, name, key_id as "keyId", roles from people
    where ended_at is null and id = (
      select person_id from sign_in_links
      where token_hash = ${hashKey(token)} and used_at is null and expires_at > now())
    for share`
  return person
}

/** @returns false if the link was used or has expired meanwhile: it opens one session */
async function useLink(tx: Tx, token: string): Promise<boolean> {
  const used = await tx`
    update sign_in_links set used_at = now()
    where token_hash = ${hashKey(token)} and used_at is null and expires_at > now() returning 1`
  return used.length > 0
}

/** @returns the session's token */
async function openSession(
  tx: Tx,
  log: Log,
  { id: personId, name, keyId, roles }: Invited,
  { address, userAgent, requestId, replaces }: Omit<SignInRequest, 'token'>,
): Promise<string> {
  const token = generateToken()
  const [session] = await tx<{ id: string }[]>`
    insert into sessions (token_hash, person_id, expires_at, address, user_agent)
    values (${hashKey(token)}, ${personId}, now() + ${SESSION_MINUTES} * interval '1 minute', ${address},
      ${clean(userAgent)})
    returning id`
  if (replaces !== undefined) {
    await tx`
      update sessions set ended_at = now() where token_hash = ${hashKey(replaces)} and ended_at is null`
  }
  // Statements that look for others who may decide read the key's scopes; a new release may change a role's.
  await tx`update api_keys set scopes = ${listScopes(roles)} where id = ${keyId} and scopes <> ${listScopes(roles)}`
  const write = { operation: 'sign in', merchantCode: null, objectId: session?.id ?? null }
  await recordWrite(tx, log, { id: keyId, name, requestId }, write)
  return token
}

/** Removes what could break a line, and cuts: the header comes from the client. */
function clean(userAgent: string): string {
  return userAgent
    .replaceAll(/\p{Cc}/gu, ' ')
    .toWellFormed()
    .slice(0, MAX_USER_AGENT)
    .toWellFormed()
}

/** Generates 256 random bits. */
function generateToken(): string {
  return randomBytes(32).toString('base64url')
}
