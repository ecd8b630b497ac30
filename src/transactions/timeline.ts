import { z } from '@hono/zod-openapi'
import type { Context } from '../context.ts'
import type { ReadDatabase } from '../db/reads.ts'
import { byTransaction, type TransactionKey } from '../db/transaction-key.ts'
import { NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { readRefundDetails } from '../gateway/stored-body.ts'
import { Amount, Time } from '../http/fields.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { countRowsRead } from '../platform/postgres/list-page.ts'
import { toIso, toSnakeCase } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { selectKey, selectRefundAttempts, selectRefundNotifications } from './due.ts'

const text = z.string().nullable()

const Ipn = z.strictObject({
  at: Time,
  type: z.literal('ipn'),
  kind: z.string(),
  code: text.describe('The response code it carries; a hint, like everything in a notification'),
  message: text.describe("The gateway's words, as notified"),
  amount: Amount.nullable(),
  currency: text.describe('As the notification names it'),
  paymentId: text,
  requestId: text.describe('Of the notification of a refund'),
  deliveries: z.int().describe('How often it was delivered'),
  lastReceivedAt: Time,
  signature: z.string(),
  recut: z
    .boolean()
    .describe(
      'The hash of the notification was received with other values as well; at most one such reading is trusted',
    ),
  address: z.string(),
})

const Query = z.strictObject({
  at: Time,
  type: z.literal('query'),
  outcome: z.string().describe('answered, rejected, unavailable or unknown'),
  code: text,
  message: text,
  httpStatus: z.int().nullable(),
  durationMs: z.int(),
  bodyHmac: z
    .string()
    .describe('HMAC-SHA-256 of the bytes sent under a key of this service, hexadecimal'),
  // At most 64 KiB of an answer are stored, with card data and tokens masked.
  received: text.describe(
    'The first 2,000 characters of what was received beside the payments, the code and the message, as JSON: `members` of an answer, or the `text` of one that cannot be read',
  ),
})

const Change = z.strictObject({
  at: Time,
  type: z.literal('change'),
  ...{ paymentId: text, refundId: text },
  field: z.string(),
  ...{ before: text, after: text },
  cause: z.string(),
})

const RefundAttempt = z.strictObject({
  at: Time,
  type: z.literal('refund_attempt'),
  refundId: z.string(),
  ...{ outcome: text, code: text, message: text },
  ...{ httpStatus: z.int().nullable(), durationMs: z.int().nullable() },
  bodyHmac: z.string(),
  received: text.describe('The first 2,000 characters of what was received, as JSON'),
})

const Discrepancy = z.strictObject({
  at: Time,
  type: z.literal('discrepancy'),
  kind: z.string(),
  ...{ paymentId: text, refundId: text },
  ...{ ours: z.string(), theirs: z.string() },
})

export const TimelineEntry = z
  .discriminatedUnion('type', [Ipn, Query, Change, RefundAttempt, Discrepancy])
  .openapi('TimelineEntry', {
    example: {
      at: '2026-11-21T09:33:03.213Z',
      type: 'ipn',
      kind: 'payment',
      code: '0',
      message: 'Successful',
      amount: '20000000',
      currency: 'VND',
      paymentId: null,
      requestId: null,
      deliveries: 1,
      lastReceivedAt: '2026-11-21T09:33:03.213Z',
      signature: 'verified',
      recut: false,
      address: '127.0.0.1',
    },
  })

export type TimelineRow = { position: Position; entry: z.infer<typeof TimelineEntry> }

type Row = {
  at: string
  id: string
  type: z.infer<typeof TimelineEntry>['type']
  facts: Record<string, unknown>
}

type TimelineContext = {
  db: Pick<ReadDatabase, 'sql'>
  config: Pick<Context['config'], 'GATEWAY_FIELD_PREFIX'>
}

type TimelineRequest = {
  transaction: TransactionKey
  /** Includes the steps of its refunds, and discrepancies that name one. */
  withRefunds: boolean
  limit: number
  after: Position | undefined
}

/**
 * Reads what happened to a transaction, oldest first.
 * @returns `limit` + 1 entries if there is a next page
 */
export async function readTimeline(
  { db: { sql }, config }: TimelineContext,
  request: TimelineRequest,
): Promise<TimelineRow[]> {
  const { limit, after } = request
  const { merchantCode } = request.transaction
  const rows = await sql<Row[]>`
    select at::text, id, type, facts
    from (${selectEntries(sql, request)}) as entries
    where ${after ? sql`(at, id) > (${after.time}::timestamptz, ${after.id})` : sql`true`}
    order by entries.at, id limit ${limit + 1}`
  return rows.map(({ at, id, type, facts }) => {
    const { lastReceivedAt, message: body } = facts
    const ofIpn = type === 'ipn' && {
      lastReceivedAt: toIso(String(lastReceivedAt)),
      message: readRefundDetails(String(body), config.GATEWAY_FIELD_PREFIX).message ?? null,
    }
    return {
      position: { time: at, id, merchantCode },
      entry: TimelineEntry.parse({ ...facts, ...ofIpn, type, at: toIso(at) }),
    }
  })
}

const HAS_OTHER_READING = `exists (
  select from (
    select reading from ipn_events as o where ${byKey('o', ['merchant_code', 'text_hash'], 'e')} offset 0) as o
  where o.reading <> e.reading)`

const CALL = { bodyHmac: `encode(body_hmac, 'hex')`, received: 'left(received, 2000)' }

/** Facts are read from the columns of the same names, unless another expression is given. */
const FACTS = {
  ipn: writeFacts(Ipn, {
    amount: 'amount::text',
    lastReceivedAt: 'last_received_at::text',
    signature: 'verdict',
    recut: `reading > 1 or ${HAS_OTHER_READING}`,
    // The message is read from the body.
    message: 'body',
  }),
  query: writeFacts(Query, CALL),
  change: writeFacts(Change),
  refund_attempt: writeFacts(RefundAttempt, CALL),
  discrepancy: writeFacts(Discrepancy),
}

function writeFacts(entry: z.ZodObject, expressions: Record<string, string> = {}): string {
  const names = Object.keys(entry.shape).filter((name) => name !== 'at' && name !== 'type')
  const members = names.map((name) => `'${name}', ${expressions[name] ?? toSnakeCase(name)}`)
  return `json_build_object(${members.join(', ')})`
}

/** The first digit of an entry's id, which orders entries of the same time by type. */
const RANKS = { ipn: 1, query: 2, change: 3, refund_attempt: 4, discrepancy: 5 }

function writeEntry(type: Row['type'], time: string): string {
  return `${time} as at, '${RANKS[type]}-' || lpad(id::text, 19, '0') as id, '${type}' as type, ${FACTS[type]} as facts`
}

const IPN = writeEntry('ipn', 'first_received_at')

/**
 * The entries of a timeline, in no order. A transaction can have any number of notifications, queries and changes, so
 * only as many are selected as a page needs, oldest first. The rest is bounded by its refunds and selected whole.
 */
function selectEntries(sql: Sql, request: TimelineRequest) {
  const { transaction, withRefunds } = request
  const key = selectKey(sql, transaction)
  return sql`
    select ${sql.unsafe(IPN)} from ${key} cross join lateral (
      ${selectOldest(sql, request, 'ipn', 'ipn_events', 'first_received_at')}) as e
    union all
    select ${sql.unsafe(writeEntry('query', 'sent_at'))} from ${key} cross join lateral (
      ${selectOldest(sql, request, 'query', 'gateway_calls', 'sent_at')}) as g
    union all
    select ${sql.unsafe(writeEntry('change', 'at'))} from ${key} cross join lateral (
      ${selectOldest(sql, request, 'change', 'changes', 'at')}) as c
    union all
    select ${sql.unsafe(writeEntry('discrepancy', 'at'))} from ${key} cross join lateral (
      select * from discrepancies as d where ${sql.unsafe(byTransaction('d'))} offset 0) as d
    where ${withRefunds} or not ${sql.unsafe(NAMES_REFUND_SQL)}
    ${withRefunds ? selectRefundSteps(sql, transaction) : sql``}`
}

/**
 * The oldest rows after a position, from an index whose next column is the time. Includes all rows of the same time
 * as the last one, because these are ordered by their ids.
 */
function selectOldest(
  sql: Sql,
  { after, limit, withRefunds }: TimelineRequest,
  type: Row['type'],
  table: 'ipn_events' | 'gateway_calls' | 'changes',
  time: string,
) {
  const at = sql.unsafe(`o.${time}`)
  const behind = after
    ? sql`(o.transaction_id, ${at}) >= (k.transaction_id, ${after.time}::timestamptz)
        and (${at}, ${sql.unsafe(`'${RANKS[type]}-' || lpad(o.id::text, 19, '0')`)}) > (${after.time}::timestamptz, ${after.id}) and`
    : sql``
  const readable =
    table === 'changes' && !withRefunds
      ? sql`o.refund_id is null and o.field <> 'external_refund' and`
      : sql``
  return sql`
    select * from ${sql(table)} as o where ${behind} ${readable} ${sql.unsafe(byTransaction('o'))}, ${at}
    fetch first ${sql.unsafe(String(countRowsRead(limit)))} rows with ties`
}

function selectRefundSteps(sql: Sql, transaction: TransactionKey) {
  return sql`
    union all
    select ${sql.unsafe(IPN)} from (${selectRefundNotifications(sql, transaction)}) as e
    union all
    select ${sql.unsafe(writeEntry('refund_attempt', 'recorded_at'))}
    from ${selectRefundAttempts(sql, transaction)}`
}
