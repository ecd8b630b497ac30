import { z } from '@hono/zod-openapi'
import type { Context } from '../context.ts'
import { ORDER_COLUMNS, type OrderFacts } from '../db/order-facts.ts'
import { externalRefunds } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { Amount, Id, isUuid, MerchantTxnId, OrderId, Time } from '../http/fields.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns, toIso } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

/** The cause of every change that a person decided begins with this, and with the actor. */
export const DECIDED = 'resolved'
export const DECIDED_CAUSE = /^resolved (with API key|by) /

export const Resolution = z
  .strictObject({
    outcome: z.string(),
    reason: z.string(),
    by: z.string().openapi({ description: 'The name of the API key, or of the person' }),
    againstEvidence: z
      .string()
      .nullable()
      .openapi({ description: 'The evidence it contradicts, if any' }),
    decidedAt: Time,
  })
  .openapi('Resolution', {
    example: {
      outcome: 'succeeded',
      reason: 'gateway support, ticket 4711: paid out',
      by: 'operations',
      againstEvidence: null,
      decidedAt: '2026-11-24T09:12:00.000Z',
    },
  })

/**
 * `reserved` is deducted until the refunded amount shows it; `released` was contradicted by its failure, or replaced
 * by another reading of its notification; `own` is a refund of ours whose row was lost.
 */
export const EXTERNAL_STATES = [
  'reserved',
  'matched',
  'part_of_first_sight',
  'released',
  'never_happened',
  'own',
] as const

export type ExternalState = (typeof EXTERNAL_STATES)[number]

type ExternalRow = typeof externalRefunds.$inferSelect

export type ExternalRecord = ExternalRow & OrderFacts & { transactionId: string }

export function deriveExternalState({
  matched,
  outcome,
}: Pick<ExternalRow, 'matched' | 'outcome'>): ExternalState {
  return outcome ?? (matched ? 'matched' : 'reserved')
}

export const ExternalRefund = z
  .strictObject({
    id: z.uuid(),
    merchantCode: z.string(),
    paymentId: Id,
    transactionId: Id,
    orderId: OrderId,
    merchantTxnId: MerchantTxnId,
    amount: Amount,
    currency: z.string().nullable(),
    requestId: z
      .string()
      .nullable()
      .openapi({ description: 'As notified; null if a person entered the refund' }),
    source: z.enum(['notification', 'person']),
    state: z.enum(EXTERNAL_STATES).openapi({
      description:
        '`reserved` until the refunded amount of the payment shows it (`matched`); `part_of_first_sight`: it was refunded before the payment was first seen',
    }),
    resolution: Resolution.nullable(),
    notifiedAt: Time.nullable(),
    firstSeenAt: Time,
  })
  .openapi('ExternalRefund', {
    example: {
      id: '6f0d1c1e-0c39-4d54-9a5c-2f2f7a5b8f10',
      merchantCode: 'UFLIYL',
      paymentId: '1439211',
      transactionId: '240830080146NDTISR',
      orderId: 'DH1',
      merchantTxnId: 'T1',
      amount: '10000',
      currency: 'VND',
      requestId: '7c1f3b52-portal',
      source: 'notification',
      state: 'matched',
      resolution: null,
      notifiedAt: '2026-11-21T10:20:00.000Z',
      firstSeenAt: '2026-11-21T10:20:00.120Z',
    },
  })

export function showExternalRefund(row: ExternalRecord): z.infer<typeof ExternalRefund> {
  return {
    id: row.id,
    merchantCode: row.merchantCode,
    paymentId: row.paymentId,
    transactionId: row.transactionId,
    orderId: row.orderId,
    merchantTxnId: row.merchantTxnId,
    amount: row.amount,
    currency: row.currency,
    requestId: row.source === 'person' ? null : row.requestId,
    source: row.source,
    state: deriveExternalState(row),
    resolution: row.resolution,
    notifiedAt: toIso(row.notifiedAt),
    firstSeenAt: toIso(row.firstSeenAt),
  }
}

const COLUMNS = listColumns(externalRefunds, 'f')

const OF_TRANSACTION = ['merchant_code', 'transaction_id']

/** External refunds `f`, each with the transaction `t` of its payment. */
const SELECT = `
  select ${COLUMNS}, p.transaction_id as "transactionId", ${ORDER_COLUMNS}
  from external_refunds f
    join payments p on p.merchant_code = f.merchant_code and p.payment_id = f.payment_id
    join transactions t on t.merchant_code = p.merchant_code and t.transaction_id = p.transaction_id`

/** Lists the external refunds of a payment, newest first, and one more than `limit` if there is a next page. */
export async function listExternalRefunds(
  sql: Sql,
  { merchantCode, paymentId }: { merchantCode: string; paymentId: string },
  limit: number,
  after: Position | undefined,
): Promise<ExternalRecord[]> {
  return await sql<ExternalRecord[]>`
    ${sql.unsafe(SELECT)}
    where f.merchant_code = ${merchantCode} and f.payment_id = ${paymentId}
      and ${
        after
          ? sql`(f.first_seen_at, f.id) < (${after.time}::timestamptz, ${after.id}::uuid)`
          : sql`true`
      }
    order by f.first_seen_at desc, f.id desc limit ${limit + 1}`
}

/** Lists at most `limit`: first the one with the id and those whose request id is in the text, then reserved ones. */
export async function listExternalToDecide(
  { db: { sql } }: Pick<Context, 'db'>,
  { merchantCode, paymentId }: { merchantCode: string; paymentId: string },
  { id, text }: { id: string | undefined; text: string },
  limit: number,
): Promise<ExternalRecord[]> {
  return await sql<ExternalRecord[]>`
    ${sql.unsafe(SELECT)}
    where f.merchant_code = ${merchantCode} and f.payment_id = ${paymentId}
    order by f.id::text = ${id ?? ''} or position(f.request_id in ${text}::text) > 0 desc,
      f.outcome is null and not f.matched desc, f.first_seen_at desc, f.id desc
    limit ${limit}`
}

/** Lists at most `limit` external refunds of a transaction's payments, newest first. */
export async function listExternalOfTransaction(
  { db: { sql } }: Pick<Context, 'db'>,
  { merchantCode, transactionId }: TransactionKey,
  limit: number,
): Promise<ExternalRecord[]> {
  return await sql<ExternalRecord[]>`
    select ${sql.unsafe(COLUMNS)}, t.transaction_id as "transactionId", ${sql.unsafe(ORDER_COLUMNS)}
    from (
      select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id
    ) as k cross join lateral (
      select * from transactions as t where ${sql.unsafe(byKey('t', OF_TRANSACTION, 'k'))} limit 1
    ) as t cross join lateral (
      select merchant_code, payment_id from payments as p
      where ${sql.unsafe(byKey('p', OF_TRANSACTION, 'k'))} offset 0
    ) as p cross join lateral (
      select * from external_refunds as f
      where ${sql.unsafe(byKey('f', ['merchant_code', 'payment_id'], 'p'))} offset 0) as f
    order by f.first_seen_at desc, f.id desc limit ${limit}`
}

/** @param id unvalidated text @throws DomainError `external_refund_not_found` */
export async function findExternalRefund(
  { db: { sql } }: Pick<Context, 'db'>,
  merchants: readonly string[],
  id: string,
): Promise<ExternalRecord> {
  const [found] = isUuid(id)
    ? await sql<ExternalRecord[]>`
        ${sql.unsafe(SELECT)}
        where f.merchant_code = any(${[...merchants]}::text[]) and f.id = ${id}`
    : []
  if (!found) throw new DomainError('external_refund_not_found', `No external refund ${id}`)
  return found
}

export async function readExternalRefunds(
  tx: Tx,
  merchantCode: string,
  ids: readonly string[],
): Promise<ExternalRecord[]> {
  if (ids.length === 0) return []
  return await tx<ExternalRecord[]>`
    ${tx.unsafe(SELECT)}
    where f.merchant_code = ${merchantCode} and f.id = any(${ids}::uuid[])
    order by f.first_seen_at, f.id`
}

export async function listExternalIds(
  tx: Tx,
  merchantCode: string,
  paymentIds: readonly string[],
): Promise<string[]> {
  if (paymentIds.length === 0) return []
  const rows = await tx<{ id: string }[]>`
    select f.id from (
      select ${merchantCode}::text as merchant_code, payment_id
      from unnest(${[...paymentIds]}::text[]) as payment_id
    ) as k cross join lateral (
      select * from external_refunds as f
      where ${tx.unsafe(byKey('f', ['merchant_code', 'payment_id'], 'k'))} offset 0) as f`
  return rows.map(({ id }) => id)
}
