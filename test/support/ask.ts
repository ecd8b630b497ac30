import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { z } from 'zod'
import type { Access } from '../../src/access/types.ts'
import { Problem } from '../../src/http/problems.ts'
import { Refund, type RefundView } from '../../src/refunds/view.ts'
import { seedPayment, seedTransaction } from './api.ts'
import type { TestDatabase } from './database.ts'
import { KEY, MERCHANT, type Rig } from './service.ts'

export const RECEIVER = {
  accountName: 'NGUYEN VAN A',
  accountNumber: '123456789',
  swiftCode: 'ASCBVNVX',
}
export const MASKED = { ...RECEIVER, accountNumber: '•••• 6789' }

export type Asked = { url: string; key?: string; query?: string; idempotencyKey?: string | null }

/** Posts to a path; a string is sent unchanged as the body, `idempotencyKey: null` sends no key. */
export async function post(
  { url, key = KEY, query = '', idempotencyKey = randomUUID() }: Asked,
  path: string,
  body: unknown,
): Promise<Response> {
  return await fetch(url + path + query, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(idempotencyKey === null ? {} : { 'idempotency-key': idempotencyKey }),
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

/** Posts a refund request. */
export const ask = (asked: Asked, paymentId: string, body: unknown = {}): Promise<Response> =>
  post(asked, `/v1/payments/${paymentId}/refunds`, body)

/** Checks that a refund request was accepted, and returns the refund. */
export async function expectTaken(response: Response, replayed = false): Promise<RefundView> {
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 202 })
  const refund = Refund.strict().parse(JSON.parse(text))
  expect(response.headers.get('location')).toBe(`/v1/refunds/${refund.id}`)
  expect(response.headers.get('idempotent-replayed')).toBe(replayed ? 'true' : null)
  return refund
}

const Refusal = Problem.extend({
  refundableAmount: z.string().optional(),
  inferredRefundId: z.uuid().optional(),
  leftToday: z.string().optional(),
  refundId: z.string().optional(),
  state: z.string().optional(),
  gatewayCode: z.string().optional(),
})

/** Checks that a refund was refused with this status and code, and returns the problem. */
export async function expectRefused(response: Response, status: number, code: string) {
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status })
  const problem = Refusal.strict().parse(JSON.parse(text))
  expect(problem).toMatchObject({ status, code })
  return problem
}

let payments = 0

/** Inserts a payment as a query would leave it, with nothing due; each has new ids. */
export async function seedPaid(
  database: Pick<TestDatabase, 'sql'>,
  more: { amount?: string; merchantCode?: string; paymentId?: string } & Record<
    string,
    unknown
  > = {},
): Promise<{ id: string; transactionId: string }> {
  payments += 1
  const { paymentId = `P-${payments}`, merchantCode = MERCHANT.merchantCode } = more
  // Tests write such ids as T-1 themselves.
  const transactionId = `T-PAID-${payments}`
  // A currency of four decimals, so that any amount can be asked for.
  const currency = 'CLF'
  await seedTransaction(database, { transactionId, merchantCode, currency, state: 'paid' })
  await seedPayment(database, {
    amount: '100',
    paymentMethod: 'CC',
    ...more,
    merchantCode,
    paymentId,
    transactionId,
  })
  return { id: paymentId, transactionId }
}

/** The same, also at the gateway. */
export async function payQuietly(
  { database, control }: Rig,
  { paymentMethod = 'QR', amount = '100', ...more }: Parameters<typeof seedPaid>[1] = {},
): Promise<{ id: string; transactionId: string }> {
  const payment = await seedPaid(database, { paymentMethod, amount, ...more })
  await control('POST', '/transactions', {
    transactionId: payment.transactionId,
    payments: [{ id: payment.id, amount, paymentMethod, status: 'SUCCESS' }],
    ipn: false,
  })
  return payment
}

/** Counts the rows of every table that a refund is recorded in. */
export async function countRows({ sql }: TestDatabase): Promise<Record<string, number>> {
  const [row] = await sql<Record<string, number>[]>`
    select (select count(*) from refunds) as refunds, (select count(*) from changes) as changes,
      (select count(*) from refund_attempts) as attempts,
      (select coalesce(sum(version), 0)::int8 from transactions) as versions,
      (select count(*) from transactions where due_at is not null) as due,
      (select count(*) from gateway_calls) as calls`
  return row ?? {}
}

/** The decision of somebody who is nobody of the test. */
const RETURNED = JSON.stringify({
  ...{ outcome: 'returned', reason: 'the account is closed', by: 'nobody', againstEvidence: null },
  decidedAt: '2026-11-24T09:12:00.000Z',
})

/** Sets the status of a stored refund in SQL, regardless of how it would get there. */
export async function moveTo(
  { sql }: TestDatabase,
  refundId: string,
  status: RefundView['status'] | 'sending',
  more: { failureMessage?: string } = {},
): Promise<void> {
  const over = ['succeeded', 'failed', 'needs_review', 'returned'].includes(status)
  const failed = status === 'failed'
  await sql`
    update refunds set status = ${status}, attempts = 1, first_sent_at = now(), last_sent_at = now(),
      matched = false,
      due_at = ${over ? null : sql`now() + interval '1 hour'`},
      failure_source = ${failed ? 'gateway' : null}, failure_reason = ${failed ? '33' : null},
      failure_message = ${failed ? (more.failureMessage ?? 'refused') : null},
      resolution = ${status === 'returned' ? sql`${RETURNED}::text::jsonb` : null}
    where refund_id = ${refundId}`
}

/** Names the currency of a transaction in a notification, verified or not. */
export async function seedCurrency(
  { sql }: TestDatabase,
  transactionId: string,
  currency: string,
  { verdict = 'verified', isOther = false, merchantCode = MERCHANT.merchantCode } = {},
): Promise<void> {
  await sql`
    insert into ipn_events (merchant_code, text_hash, kind, transaction_id, currency, verdict, reading, body,
      address, deliveries)
    values (${merchantCode}, md5(${transactionId + currency + verdict})::uuid, 'payment', ${transactionId}, ${currency},
      ${verdict}, ${isOther ? 2 : 1}, '', '', 1)`
}

const toJson = (value: unknown) => (value === undefined ? null : JSON.stringify(value))

/** Adds a key with caps. */
export async function addCappedKey(
  { sql }: TestDatabase,
  text: string,
  caps: {
    max?: string
    dailyMax?: string
    maxByCurrency?: Record<string, string>
    dailyMaxByCurrency?: Record<string, string>
  },
): Promise<Access['id']> {
  const id = randomUUID()
  await sql`
    insert into actors (id, kind, name, folded_name, chain_id, hash, scopes, merchants, refund_max, refund_daily_max,
      refund_max_by_currency, refund_daily_max_by_currency)
    values (${id}, 'key', 'capped', 'capped', ${id}, sha256(${text}::bytea),
      '{refunds:write,refunds:read}', '{*}', ${caps.max ?? null},
      ${caps.dailyMax ?? null}, ${toJson(caps.maxByCurrency)}::text::jsonb,
      ${toJson(caps.dailyMaxByCurrency)}::text::jsonb)`
  return id
}

/** Finds the columns of all tables that contain a text, as text or as bytes. */
export async function findInTables({ sql }: TestDatabase, text: string): Promise<string[]> {
  const columns = await sql<{ table: string; column: string }[]>`
    select table_name as table, column_name as column from information_schema.columns
    where table_schema = 'public' and is_updatable = 'YES' order by 1, 2`
  const found: string[] = []
  for (const { table, column } of columns) {
    const [row] = await sql<{ n: number }[]>`
      select count(*) as n from ${sql(table)}
      where position(${text} in ${sql(column)}::text) > 0
        or position(encode(${text}::bytea, 'hex') in ${sql(column)}::text) > 0
        or position(encode(${text}::bytea, 'base64') in ${sql(column)}::text) > 0`
    if (row?.n) found.push(`${table}.${column}`)
  }
  return found
}
