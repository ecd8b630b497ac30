import { z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import { auditEntries } from '../db/schema.ts'
import { Id, Time, TimeParameter } from '../http/fields.ts'
import { cutPage, type Position } from '../http/list.ts'
import type { HttpEnv } from '../http/problems.ts'
import { maskCardText } from '../platform/crypto/masking.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { countRowsRead, cutRead, EXAMINED } from '../platform/postgres/list-page.ts'
import { runAfterCommit } from '../platform/postgres/notify.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import type { Filter, Listing } from './listing.ts'
import { lockActor } from './principal.ts'
import type { Access } from './types.ts'

/** Describes who did something, to follow what was done: "requested by Mai", "requested with API key shop". */
export const describeActor = ({ name, isPerson }: Pick<Access, 'name' | 'isPerson'>) =>
  isPerson ? `by ${name}` : `with API key ${name}`

/** A write that was carried out: when (ISO 8601), by which person or key, and on which object. */
export type ListedWrite = { at: string; actor: string; operation: string; objectId: string }

/** Lists the writes on some objects of an account, newest first, `limit` at most. */
export async function listWrites(
  sql: Sql,
  merchantCode: string,
  objectIds: readonly string[],
  limit: number,
): Promise<ListedWrite[]> {
  const rows = await sql<ListedWrite[]>`
    select a.at::text, a.actor, a.operation, a.object_id as "objectId"
    from json_array_elements_text(${JSON.stringify(objectIds)}::json) as k (object_id) cross join lateral (
      select * from audit_entries as a where ${sql.unsafe(byKey('a', ['object_id'], 'k'))} offset 0) as a
    where a.merchant_code = ${merchantCode} and a.outcome = 'done'
    order by a.at desc, a.id desc limit ${limit}`
  return rows.map((row) => ({ ...row, at: toIso(row.at) }))
}

export type AuditEntry = typeof auditEntries.$inferSelect

/** Who makes a write: a key or a person, or, without an id, a person on the command line or the service itself. */
export type Actor = Access | { id: null; name: string; requestId: null; isPerson?: true }

type EntryActor = { id: string | null; name: string; requestId: string | null }

/** A requested write; `operation` is a method with its route, or a command. */
export type AuditedWrite = Pick<AuditEntry, 'operation' | 'merchantCode' | 'objectId'>

/** Records a write in its transaction: it is committed only if the actor may still make it. */
export async function recordWrite(tx: Tx, log: Log, actor: Actor, write: AuditedWrite) {
  if (actor.id !== null) await lockActor(tx, actor)
  await recordEntry(tx, log, actor, write)
}

/**
 * Records an entry as it is, in the transaction of what it is about. Once that has committed, the entry is also a line of the
 * log: a copy that nobody can reach through the database, long before the entry is in a checkpoint.
 * @param outcome `done`, or the code of the refusal
 */
export async function recordEntry(
  tx: Tx,
  log: Log,
  actor: EntryActor,
  { operation, merchantCode, objectId }: AuditedWrite,
  outcome = 'done',
): Promise<void> {
  const { id: keyId, name, requestId } = actor
  const entry = { keyId, actor: name, operation, merchantCode, objectId, requestId, outcome }
  const [row] = await build(tx)
    .insert(auditEntries)
    .values(entry)
    .returning({ entryId: auditEntries.id })
  runAfterCommit(tx, () => log.info({ ...row, ...entry }, 'audit entry'))
}

/** Returns the route that a request matches, which no middleware alone makes; undefined for an unknown path. */
function findRoute(c: HttpContext): string | undefined {
  const paths = matchedRoutes(c).map(({ path }) => path)
  return paths.findLast((path) => !path.includes('*'))
}

/** Names what a request does: its method and its route, `POST /v1/payments/{paymentId}/refunds`. */
export function nameOperation(c: HttpContext): string {
  const route = findRoute(c) ?? '(unknown path)'
  return `${c.req.method} ${route.replaceAll(/:(\w+)/g, '{$1}')}`
}

export type RefusalContext = { sql: Sql; log: Log }

/** Records a refusal on its own. It does not reject: a lost record is logged. */
export async function recordRefusal(
  { sql, log }: RefusalContext,
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

/** Records every refused write. Requests over the key's rate limit never come here; failed ones are logged. */
export function auditRefusals(ctx: RefusalContext) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    await next()
    const { method, path } = c.req
    const { status } = c.res
    const refusal = c.get('refusal')
    if (method === 'GET' || method === 'HEAD' || status > 499) return
    // A form of the console that is refused leads back to its page; a dry run writes nothing.
    if ((status < 400 && refusal === undefined) || c.get('isDryRun')) return
    const route = findRoute(c)
    if (route === undefined) return
    const objectId = readId(route, path)
    const write = { operation: nameOperation(c), merchantCode: null, objectId }
    await recordRefusal(ctx, c.get('access'), write, refusal ?? String(status))
  })
}

/** Returns a path's first parameter, other than the account. It is unvalidated input: truncated and masked. */
function readId(route: string, path: string): string | null {
  const at = route.split('/').findIndex((part) => part.startsWith(':') && part !== ':merchant')
  const id = at === -1 ? undefined : path.split('/')[at]
  if (id === undefined) return null
  const text = decodeURIComponent(id).replaceAll(/\p{Cc}/gu, '?')
  return maskCardText(text.toWellFormed()).slice(0, 128)
}

/** An entry of the audit log as its list shows it. */
const ListedEntry = z.strictObject({
  id: z.string(),
  at: Time,
  actor: z.string(),
  operation: z.string(),
  merchantCode: z.string().nullable(),
  objectId: z.string().nullable(),
  requestId: z.string().nullable(),
  outcome: z.string(),
})

type ListedEntry = z.infer<typeof ListedEntry>

const query = {
  actor: Id.optional(),
  objectId: Id.optional(),
  outcome: z.enum(['done', 'refused']).optional(),
  from: TimeParameter,
  to: TimeParameter,
}

/** The audit log, newest first: of the caller's accounts, and what belongs to none for who covers all of them. */
export const AUDIT: Listing<typeof query, ListedEntry> = {
  name: 'audit',
  scope: 'ops',
  query,
  // They are numbers that fit in a bigint.
  idForm: z.string().regex(/^\d{1,18}$/),
  schema: ListedEntry,
  async read({ sql }, filter, limit, after) {
    const rows = await sql<(ListedEntry & { fits: boolean; stops: boolean })[]>`
      select id::text, at::text, actor, operation, merchant_code as "merchantCode", object_id as "objectId",
        request_id as "requestId", outcome, fits, stops
      from (${examineEntries(sql, filter, after)}) as audit_entries
      where fits or stops order by audit_entries.at desc, audit_entries.id desc
      limit ${sql.unsafe(String(countRowsRead(limit)))}`
    const locate = ({ id, at, merchantCode }: ListedEntry) => {
      return { time: at, id, merchantCode: merchantCode ?? '' }
    }
    const show = (row: ListedEntry) => ({ ...row, at: toIso(row.at) })
    return cutPage(cutRead(rows, limit), limit, locate, show)
  },
}

/** Compares the newest entries with the filter, as `pickNewest` does: those of one object by their own index. */
function examineEntries(sql: Sql, filter: Filter<typeof query>, after: Position | undefined) {
  const { merchants, coversAll, actor, objectId, outcome, from, to } = filter
  const most = sql.unsafe(String(EXAMINED))
  const every = sql`true`
  const entries =
    objectId === undefined
      ? sql`audit_entries`
      : sql`(select * from audit_entries where object_id = ${objectId} offset 0) as audit_entries`
  return sql`
    select *, row_number() over (order by at desc, id desc) = ${most} as stops,
      coalesce(merchant_code = any(${[...merchants]}), ${coversAll})
        and ${actor === undefined ? every : sql`lower(actor) = lower(${actor})`}
        and ${outcome === undefined ? every : sql`(outcome = 'done') = ${outcome === 'done'}`} as fits
    from (
      select * from ${entries}
      where ${from === undefined ? every : sql`at >= ${from}::timestamptz`}
        and ${to === undefined ? every : sql`at < ${to}::timestamptz`}
        and ${after === undefined ? every : sql`(at, id) < (${after.time}::timestamptz, ${after.id}::bigint)`}
      order by at desc, id desc limit ${most}
    ) as audit_entries`
}
