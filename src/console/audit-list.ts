import { z } from '@hono/zod-openapi'
import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Filter, Listing } from '../access/listing.ts'
import type { Access } from '../access/types.ts'
import { DECISIONS } from '../decisions/obstacles.ts'
import { Id, Time, TimeParameter } from '../http/fields.ts'
import { cutPage, type Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { countRowsRead, cutRead, EXAMINED } from '../platform/postgres/list-page.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'

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
  outcome: z.enum(['done', 'refused']).optional(),
  objectId: Id.optional(),
  from: TimeParameter,
  to: TimeParameter,
}

/** The audit log, the newest first. What belongs to no account or to all is shown only to who covers all. */
export const AUDIT: Listing<typeof query, ListedEntry> = {
  name: 'audit',
  scope: 'ops',
  query,
  // Ids are numbers that fit into a bigint.
  idForm: z.string().regex(/^\d{1,18}$/),
  schema: ListedEntry,
  async read({ db: { sql } }, filter, limit, after) {
    const rows = await sql<(ListedEntry & { fits: boolean; stops: boolean })[]>`
      select id::text, at::text, actor, operation, merchant_code as "merchantCode", object_id as "objectId",
        request_id as "requestId", outcome, fits, stops
      from (${examineEntries(sql, filter, after)}) as audit_entries
      where fits or stops order by audit_entries.at desc, audit_entries.id desc
      limit ${sql.unsafe(String(countRowsRead(limit)))}`
    // A page may end at an entry of an account that the reader may not see.
    const locate = ({ id, at }: ListedEntry) => ({ time: at, id, merchantCode: '' })
    const show = (row: ListedEntry) => ({ ...row, at: toIso(row.at) })
    return cutPage(cutRead(rows, limit), limit, locate, show)
  },
}

/** Compares the newest entries with the filter, as `pickNewest` does. Those of one object are read by their index. */
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
      coalesce(nullif(merchant_code, ${EVERY_MERCHANT}) = any(${[...merchants]}), ${coversAll})
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

export type ListedWrite = { at: string; actor: string; operation: string; objectId: string }

/** Order systems may repeat it every few seconds. */
const SYNC = 'POST /v1/transactions/{transactionId}/sync'

/** Lists what was done with objects, the newest first. Beyond the limit, syncs are left out before all else. */
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
    order by a.operation = ${SYNC}, a.at desc, a.id desc limit ${limit}`
  return rows.map((row) => ({ ...row, at: toIso(row.at) }))
}

/** More than enough: a refund has few writes, and a cancellation is among the last. */
const MAX_WRITES = 500

/** Finds which of these refunds the person cancelled. */
export async function findWithdrawn(
  sql: Sql,
  { merchants, name }: Pick<Access, 'merchants' | 'name'>,
  refundIds: readonly string[],
): Promise<Set<string>> {
  const codes = refundIds.length === 0 ? [] : merchants
  const writes = await Promise.all(
    codes.map((code) => listWrites(sql, code, refundIds, MAX_WRITES)),
  )
  const own = writes.flat().filter(({ actor, operation }) => {
    return actor === name && operation.endsWith(`/${DECISIONS.cancel.path}`)
  })
  return new Set(own.map(({ objectId }) => objectId))
}
