import { z } from '@hono/zod-openapi'
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
export function describeActor({ name, isPerson }: Pick<Access, 'name' | 'isPerson'>): string {
  return isPerson ? `by ${name}` : `with API key ${name}`
}

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

/** Who makes a write: a key or a person, or, without an id, a person on the command line. */
export type Actor = Access | { id: null; name: string; requestId: null; isPerson?: true }

/** A requested write; `operation` is a method with its route, or a command. */
export type AuditedWrite = {
  operation: string
  merchantCode: string | null
  objectId: string | null
}

/**
 * Records a write and its actor, in the transaction of the write: it is committed only if the actor may still make it.
 * @throws DomainError of `lockActor`
 */
export async function recordWrite(
  tx: Tx,
  log: Log,
  actor: Actor,
  write: AuditedWrite,
): Promise<void> {
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
  {
    id: keyId,
    name: actor,
    requestId,
  }: { id: string | null; name: string; requestId: string | null },
  { operation, merchantCode, objectId }: AuditedWrite,
  outcome = 'done',
): Promise<void> {
  const entry = { keyId, actor, operation, merchantCode, objectId, requestId, outcome }
  const [row] = await build(tx)
    .insert(auditEntries)
    .values(entry)
    .returning({ entryId: auditEntries.id })
  runAfterCommit(tx, () => log.info({ ...row, ...entry }, 'audit entry'))
}

/**
 * Records every refused write, after the refusal: the write itself committed nothing. Requests over the key's
 * rate limit are not recorded; requests that fail with a server error are logged.
 */
export function auditRefusals({ sql, log }: { sql: Sql; log: Log }) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    await next()
    const { method, path } = c.req
    const { status } = c.res
    if (method === 'GET' || method === 'HEAD' || status > 499) return
    // A form of the console that is refused leads back to its page.
    if (status < 400 && c.get('refusal') === undefined) return
    // A dry run writes nothing.
    if (c.get('isDryRun')) return
    const route = matchedRoutes(c).at(-1)?.path ?? '*'
    if (route.includes('*')) return
    const write = {
      operation: `${method} ${route.replaceAll(/:(\w+)/g, '{$1}')}`,
      merchantCode: null,
      objectId: readId(route, path),
    }
    const outcome = c.get('refusal') ?? String(status)
    await recordEntry(sql, log, c.get('access'), write, outcome).catch((error: unknown) => {
      const requestId = c.get('requestId')
      log.error(
        { err: error, requestId, ...write, outcome },
        'a refused write could not be recorded in the audit log',
      )
    })
  })
}

/**
 * Returns the value of a path's first parameter, other than the account. It is unvalidated input, so truncate and mask
 * it.
 */
function readId(route: string, path: string): string | null {
  const at = route.split('/').findIndex((part) => part.startsWith(':') && part !== ':merchant')
  const id = at === -1 ? undefined : path.split('/')[at]
  if (id === undefined) return null
  const text = decodeURIComponent(id)
    .replaceAll(/\p{Cc}/gu, '?')
    .toWellFormed()
  return maskCardText(text).slice(0, 128)
}

export type AuditEntry = {
  id: number
  at: string
  keyId: string | null
  actor: string
  operation: string
  merchantCode: string | null
  objectId: string | null
  requestId: string | null
  outcome: string
}

export type AuditFilter = { objectId?: string | undefined; keyId?: string | undefined }

/** Lists the newest entries, newest first, optionally of one object with its refunds or of one key. */
export async function listAuditEntries(
  sql: Sql,
  { objectId, keyId }: AuditFilter,
  limit: number,
): Promise<AuditEntry[]> {
  return await sql<AuditEntry[]>`
    select id, at::text, key_id as "keyId", actor, operation, merchant_code as "merchantCode",
      object_id as "objectId", request_id as "requestId", outcome
    from audit_entries
    where ${
      objectId === undefined
        ? sql`true`
        : sql`object_id in (select ${objectId}::text union all
            select refund_id::text from refunds
            where payment_id = ${objectId} or transaction_id = ${objectId})`
    }
      and ${keyId === undefined ? sql`true` : sql`key_id = ${keyId}`}
    order by id desc limit ${limit}`
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
