import { z } from '@hono/zod-openapi'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { readRefundDetails } from '../gateway/stored-body.ts'
import { Amount, Time } from '../http/fields.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { selectEntries } from './read-timeline.ts'

const Ipn = z.strictObject({
  at: Time,
  type: z.literal('ipn'),
  kind: z.string(),
  code: z.string().nullable().openapi({
    description: 'The response code it carries; a hint, like everything in a notification',
  }),
  message: z.string().nullable().openapi({ description: "The gateway's words, as notified" }),
  amount: Amount.nullable(),
  paymentId: z.string().nullable(),
  requestId: z.string().nullable().openapi({ description: 'Of the notification of a refund' }),
  deliveries: z.int().openapi({ description: 'How often it was delivered' }),
  lastReceivedAt: Time,
  signature: z.string(),
  recut: z.boolean().openapi({
    description:
      'The hash of the notification was received with other values as well; at most one such reading is trusted',
  }),
  address: z.string(),
})

/** Of an answer at most 64 KiB are stored, card data and tokens masked. */
const Received = z.string().nullable().openapi({
  description:
    'The first 2,000 characters of what was received beside the payments, the code and the message, as JSON: `members` of an answer, or the `text` of one that cannot be read',
})

const Query = z.strictObject({
  at: Time,
  type: z.literal('query'),
  outcome: z.string().openapi({ description: 'answered, rejected, unavailable or unknown' }),
  code: z.string().nullable(),
  message: z.string().nullable(),
  httpStatus: z.int().nullable(),
  durationMs: z.int(),
  bodyHmac: z.string().openapi({
    description: 'HMAC-SHA-256 of the bytes sent under a key of this service, hexadecimal',
  }),
  received: Received,
})

const Change = z.strictObject({
  at: Time,
  type: z.literal('change'),
  paymentId: z.string().nullable(),
  refundId: z.string().nullable(),
  field: z.string(),
  before: z.string().nullable(),
  after: z.string().nullable(),
  cause: z.string(),
})

const RefundAttempt = z.strictObject({
  at: Time,
  type: z.literal('refund_attempt'),
  refundId: z.string(),
  outcome: z.string().nullable(),
  code: z.string().nullable(),
  message: z.string().nullable(),
  httpStatus: z.int().nullable(),
  durationMs: z.int().nullable(),
  bodyHmac: z.string(),
  received: Received.openapi({
    description: 'The first 2,000 characters of what was received, as JSON',
  }),
})

const Discrepancy = z.strictObject({
  at: Time,
  type: z.literal('discrepancy'),
  kind: z.string(),
  paymentId: z.string().nullable(),
  refundId: z.string().nullable(),
  ours: z.string(),
  theirs: z.string(),
})

const Removed = z.strictObject({
  at: Time,
  type: z.literal('removed'),
  deliveries: z.int().openapi({
    description:
      'How many deliveries were among the notifications and queries deleted after `RETENTION_DAYS`',
  }),
})

/** One entry of a transaction's timeline. */
export const TimelineEntry = z
  .discriminatedUnion('type', [Ipn, Query, Change, RefundAttempt, Discrepancy, Removed])
  .openapi('TimelineEntry', {
    example: {
      at: '2026-11-21T09:33:03.213Z',
      type: 'ipn',
      kind: 'payment',
      code: '0',
      message: 'Successful',
      amount: '20000000',
      paymentId: null,
      requestId: null,
      deliveries: 1,
      lastReceivedAt: '2026-11-21T09:33:03.213Z',
      signature: 'verified',
      recut: false,
      address: '127.0.0.1',
    },
  })

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
      const { message } = readRefundDetails(body, config.GATEWAY_FIELD_PREFIX)
      return message === undefined ? [] : [[id, message] as const]
    }),
  )
}

function formatTimes(facts: Record<string, unknown>): Record<string, unknown> {
  const { lastReceivedAt } = facts
  return typeof lastReceivedAt === 'string'
    ? { ...facts, lastReceivedAt: toIso(lastReceivedAt) }
    : facts
}
