import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import { tryDecodeURIComponent } from 'hono/utils/url'
import type { Database } from '../db/client.ts'
import { auditEntries } from '../db/schema.ts'
import type { HttpEnv } from '../http/problems.ts'
import { maskCardText } from '../platform/crypto/masking.ts'
import { runAfterCommit } from '../platform/postgres/notify.ts'
import { insertRow } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { lockActor } from './principal.ts'
import type { Access } from './types.ts'

/** Describes an actor, for texts such as "requested by Mai" and "requested with API key shop". */
export const describeActor = ({ name, isPerson }: Pick<Access, 'name' | 'isPerson'>) =>
  isPerson ? `by ${name}` : `with API key ${name}`

export type AuditEntry = typeof auditEntries.$inferSelect

/** Who makes a write: a key, a person or, without an id, a person at the command line or the service itself. */
export type Actor = Access | { id: null; name: string; requestId: null; isPerson?: true }

type EntryActor = { id: string | null; name: string; requestId: string | null }

/** `operation` is a method with its route, or a command. */
type AuditedWrite = Pick<AuditEntry, 'operation' | 'merchantCode' | 'objectId'>

/** Records a write in its transaction, which commits only if the actor may still make it. */
export async function recordWrite(tx: Tx, log: Log, actor: Actor, write: AuditedWrite) {
  if (actor.id !== null) await lockActor(tx, actor)
  await recordEntry(tx, log, actor, write)
}

/**
 * Records an entry in the transaction of what it is about. Once that has committed, the entry is also a line of the
 * log: a copy out of reach of the database, long before a checkpoint covers the entry.
 * @param outcome `done`, or the code of the refusal
 */
export async function recordEntry(
  tx: Tx,
  log: Log,
  actor: EntryActor,
  write: AuditedWrite,
  outcome = 'done',
): Promise<void> {
  await prepareEntry(tx, log, actor, write, outcome)
}

/** Builds the statement of `recordEntry`, for a unit of work that sends it with its commit. */
export function prepareEntry(
  tx: Tx,
  log: Log,
  { id: keyId, name: actor, requestId }: EntryActor,
  { operation, merchantCode, objectId }: AuditedWrite,
  outcome = 'done',
) {
  const entry = { keyId, actor, operation, merchantCode, objectId, requestId, outcome }
  const statement = insertRow(tx, auditEntries, entry, 'returning id as "entryId"')
  const write = ([row]: readonly object[]) => log.info({ ...row, ...entry }, 'audit entry')
  // It is answered by the commit. Outside of a unit of work this sends it, and its caller learns of an error.
  runAfterCommit(tx, () => void statement.then(write, () => {}))
  return statement
}

/** Leaves out middleware. @returns undefined for an unknown path */
function findRoute(c: HttpContext): string | undefined {
  const paths = matchedRoutes(c).map(({ path }) => path)
  return paths.findLast((path) => !path.includes('*'))
}

/** Names a request by its method and its route: `POST /v1/payments/{paymentId}/refunds`. */
export function nameOperation(c: HttpContext): string {
  const route = findRoute(c) ?? '(unknown path)'
  return `${c.req.method} ${route.replaceAll(/:(\w+)/g, '{$1}')}`
}

export type RefusalContext = { db: Pick<Database, 'sql'>; log: Log }

/** Records a refusal outside a transaction. Never rejects: a record that is lost is logged. */
export async function recordRefusal(
  { db: { sql }, log }: RefusalContext,
  actor: EntryActor,
  write: AuditedWrite,
  outcome: string,
): Promise<void> {
  await recordEntry(sql, log, actor, write, outcome).catch((error: unknown) => {
    const { requestId } = actor
    const what = 'a refusal could not be recorded in the audit log'
    log.error({ err: error, requestId, ...write, outcome }, what)
  })
}

/** Records every refused write, except those over the rate limit of the key. Requests that fail are only logged. */
export function auditRefusals(ctx: RefusalContext) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    await next()
    const { method, path } = c.req
    const { status } = c.res
    const refusal = c.get('refusal')
    if (method === 'GET' || method === 'HEAD' || status > 499) return
    // A refused form of the console redirects to its page, so its status is below 400. A dry run writes nothing.
    if ((status < 400 && refusal === undefined) || c.get('isDryRun')) return
    const route = findRoute(c)
    if (route === undefined) return
    const objectId = readId(route, path)
    const write = { operation: nameOperation(c), merchantCode: null, objectId }
    await recordRefusal(ctx, c.get('access'), write, refusal ?? String(status))
  })
}

/** Returns the first parameter of a path other than the account, truncated and masked, as it was not validated. */
function readId(route: string, path: string): string | null {
  const at = route.split('/').findIndex((part) => part.startsWith(':') && part !== ':merchant')
  const id = at === -1 ? undefined : path.split('/')[at]
  if (id === undefined) return null
  const text = tryDecodeURIComponent(id).replaceAll(/\p{Cc}/gu, '?')
  return maskCardText(text.toWellFormed()).slice(0, 128)
}
