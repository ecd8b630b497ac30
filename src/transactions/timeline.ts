import type { z } from '@hono/zod-openapi'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { readStoredMessage } from '../gateway/read-stored-message.ts'
import type { Position } from '../http/list.ts'
import { maskCardText } from '../platform/crypto/masking.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { selectEntries } from './select-entries.ts'
import { TimelineEntry } from './timeline-schema.ts'

export type TimelineRow = {
  position: Position
  entry: z.infer<typeof TimelineEntry>
}

type Row = {
  at: string
  id: string
  type: z.infer<typeof TimelineEntry>['type']
  facts: Record<string, unknown>
}

/**
 * Reads everything that happened to a transaction, oldest first: each notification (with a count of its
 * deliveries), each query, each change, each discrepancy, and with `withRefunds` each step of its refunds and each
 * discrepancy that names one. An entry of type
 * `removed` comes first if older entries have been deleted.
 * @returns `limit` + 1 entries if there is a next page
 */
export async function readTimeline(
  ctx: Pick<Context, 'config' | 'sql'>,
  transaction: TransactionKey,
  withRefunds: boolean,
  limit: number,
  after: Position | undefined,
): Promise<TimelineRow[]> {
  const { config, sql } = ctx
  const { merchantCode } = transaction
  const rows = await sql<Row[]>`
    select at::text, id, type, facts
    from (${selectEntries(sql, { config, transaction, withRefunds, limit, after })}) as entries
    where ${after ? sql`(at, id) > (${after.time}::timestamptz, ${after.id})` : sql`true`}
    order by entries.at, id limit ${limit + 1}`
  const messages = await readMessages(ctx, merchantCode, rows)
  return rows.map(({ at, id, type, facts }) => {
    const message = type === 'ipn' ? { message: messages.get(id) ?? null } : {}
    return {
      position: { time: at, id, merchantCode },
      entry: TimelineEntry.parse({ ...formatTimes(facts), ...message, type, at: toIso(at) }),
    }
  })
}

/** Reads the messages of the notifications on a page, by the ids of their entries: only these bodies are parsed. */
async function readMessages(
  { config, sql }: Pick<Context, 'config' | 'sql'>,
  merchantCode: string,
  rows: readonly Row[],
): Promise<Map<string, string>> {
  const ids = rows.flatMap(({ type, id }) => (type === 'ipn' ? [Number(id.slice(2))] : []))
  if (ids.length === 0) return new Map()
  const found = await sql<{ id: string; body: string }[]>`
    select '1-' || lpad(e.id::text, 19, '0') as id, e.body
    from (select value::bigint as id from json_array_elements_text(${JSON.stringify(ids)}::json)) as k
    cross join lateral (
      select id, body from ipn_events as e
      where merchant_code = ${merchantCode} and ${sql.unsafe(byKey('e', ['id'], 'k'))} limit 1) as e`
  return new Map(
    found.flatMap(({ id, body }) => {
      const message = readStoredMessage(config.GATEWAY_FIELD_PREFIX, body)
      return message === null ? [] : [[id, maskCardText(message)] as const]
    }),
  )
}

function formatTimes(facts: Record<string, unknown>): Record<string, unknown> {
  const { lastReceivedAt } = facts
  return typeof lastReceivedAt === 'string'
    ? { ...facts, lastReceivedAt: toIso(lastReceivedAt) }
    : facts
}
