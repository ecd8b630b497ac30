import { randomBytes, randomUUID } from 'node:crypto'
import { nameNetwork } from '../http/client-address.ts'
import type { Rate, RateLimiter } from '../platform/concurrency/rate-limiter.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { recordEntry } from './audit.ts'
import { hashKey } from './keys.ts'
import { SESSION_MINUTES } from './sessions.ts'

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

/** Makes a session for a person that its link opens once. Only the hash of the link's token is stored. */
export async function createSignInLink(tx: Tx, personId: string): Promise<SignInLink> {
  const token = generateToken()
  const [row] = await tx<{ expiresAt: string }[]>`
    insert into sessions (id, person_id, link_hash, link_until)
    values (${randomUUID()}, ${personId}, ${hashKey(token)}, now() + ${LINK_MINUTES} * interval '1 minute')
    returning link_until::text as "expiresAt"`
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
  const invited = await findInvited(sql, request.token)
  if (!invited) return { kind: 'refused' }
  const { ok, waitMs } = rates.take(`person ${invited.id}`, SIGN_INS_OF_PERSON)
  if (!ok) return { kind: 'limited', waitMs }
  const token = generateToken()
  const isOpened = await runInTransaction(sql, async (tx) => {
    const sessionId = await openSession(tx, invited, token, request)
    if (sessionId === undefined) return false
    await endReplaced(tx, request)
    const { id, name } = invited
    const write = { operation: 'sign in', merchantCode: null, objectId: sessionId }
    await recordEntry(tx, log, { id, name, requestId: request.requestId }, write)
    return true
  })
  return isOpened ? { kind: 'opened', personId: invited.id, token } : { kind: 'refused' }
}

type Invited = { id: string; name: string }

async function findInvited(sql: Sql, token: string): Promise<Invited | undefined> {
  const [person] = await sql<Invited[]>`
    select p.id, p.name from sessions as s join actors as p on p.id = s.person_id
    where s.link_hash = ${hashKey(token)} and s.signed_in_at is null and s.ended_at is null and s.link_until > now()
      and p.ended_at is null`
  return person
}

/**
 * Opens the session of a link in one conditional statement, so that it opens once. An end of the person's access ends the
 * sessions of their links, too: of the two, the one that comes second to the row finds it changed.
 * @returns its id; undefined if the link was used or has expired meanwhile, or the access has ended
 */
async function openSession(
  tx: Tx,
  { id: personId }: Invited,
  token: string,
  { token: link, address, userAgent }: SignInRequest,
): Promise<string | undefined> {
  const [opened] = await tx<{ id: string }[]>`
    update sessions set token_hash = ${hashKey(token)}, signed_in_at = now(), last_used_at = now(),
      expires_at = now() + ${SESSION_MINUTES} * interval '1 minute', address = ${address}, user_agent = ${clean(userAgent)}
    where link_hash = ${hashKey(link)} and signed_in_at is null and link_until > now() and ended_at is null
      and exists (select from actors where id = ${personId} and ended_at is null)
    returning id`
  return opened?.id
}

/** Ends the session that the browser had. */
async function endReplaced(tx: Tx, { replaces }: SignInRequest): Promise<void> {
  if (replaces === undefined) return
  await tx`
    update sessions set ended_at = now() where token_hash = ${hashKey(replaces)} and ended_at is null`
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
