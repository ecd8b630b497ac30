import { readPage } from '../access/listing.ts'
import type { Access } from '../access/types.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { findMayRelease, readAccountHold } from '../decisions/holds.ts'
import { listOfTransaction } from '../discrepancies/store.ts'
import { cutPage } from '../http/list.ts'
import { listExternalOfTransaction } from '../refunds/external-view.ts'
import { listRefunds } from '../refunds/find.ts'
import { readSurplus } from '../refunds/surplus.ts'
import { listTransactions } from '../transactions/find-transactions.ts'
import { readMessages } from '../transactions/read-messages.ts'
import { readTimeline, type TimelineRow } from '../transactions/timeline.ts'
import type { FoundTransaction } from '../transactions/types.ts'
import { listSent } from '../webhooks/log.ts'
import { listWrites } from './audit-list.ts'
import type { ConsoleContext } from './env.ts'

const LIMITS = {
  ...{ refunds: 50, external: 20, discrepancies: 50, sameOrder: 10 },
  ...{ timeline: 50, history: 200, messages: 10, webhooks: 20 },
}

export type Story = Awaited<ReturnType<typeof readStory>>

/** Reads what the first page about a transaction shows. What the person may not read is undefined. */
export async function readStory(ctx: ConsoleContext, access: Access, found: FoundTransaction) {
  const { transaction: key, payments } = found
  const { merchantCode } = key
  const withRefunds = access.scopes.includes('refunds:read')
  const isOperator = access.scopes.includes('ops')
  const held = isOperator ? payments.filter(({ hold }) => hold !== null) : []
  const [accountHold, refunds, surplus, discrepancies, sameOrder, mayRelease] = await Promise.all([
    readAccountHold(ctx.db.sql, merchantCode),
    withRefunds ? loadRefunds(ctx, key) : undefined,
    withRefunds ? readSurplus(ctx.db.sql, key) : undefined,
    isOperator ? listOfTransaction(ctx.db.sql, key, LIMITS.discrepancies) : undefined,
    loadSameOrder(ctx, key),
    Promise.all(
      held.map(async ({ paymentId: id }) => {
        const of = { merchantCode, target: 'payment', id } as const
        return [id, await findMayRelease(ctx.db.sql, access, of)] as const
      }),
    ),
  ])
  const read = { accountHold, refunds, surplus, discrepancies, sameOrder }
  return { found, ...read, mayRelease: new Map(mayRelease) }
}

async function loadRefunds(ctx: ConsoleContext, { merchantCode, transactionId }: TransactionKey) {
  const filter = { merchants: [merchantCode], transactionId }
  const [{ rows }, external] = await Promise.all([
    listRefunds(ctx, filter, LIMITS.refunds, undefined),
    listExternalOfTransaction(ctx, { merchantCode, transactionId }, LIMITS.external + 1),
  ])
  const listed = rows.slice(0, LIMITS.refunds)
  const hasMoreExternal = external.length > LIMITS.external
  const shown = { external: external.slice(0, LIMITS.external), hasMoreExternal }
  return { listed, hasMore: rows.length > listed.length, ...shown }
}

async function loadSameOrder(
  ctx: ConsoleContext,
  { merchantCode, transactionId, orderId }: FoundTransaction['transaction'],
) {
  if (orderId === null) return []
  const filter = { merchants: [merchantCode], orderId }
  const { rows } = await listTransactions(ctx, filter, LIMITS.sameOrder, undefined)
  return rows
    .filter(({ transaction }) => transaction.transactionId !== transactionId)
    .slice(0, LIMITS.sameOrder)
}

export type TimelineEntry = TimelineRow['entry']

export type History = Awaited<ReturnType<typeof readHistory>>

/** @throws DomainError `invalid_request` for a cursor that was not issued */
export async function readHistory(
  ctx: ConsoleContext,
  { scopes }: Access,
  { transaction: key, payments }: FoundTransaction,
  cursor: string | undefined,
) {
  const withRefunds = scopes.includes('refunds:read')
  const [{ timeline, from: after }, listed] = await Promise.all([
    readTimelinePage(ctx, key, withRefunds, LIMITS.history, cursor),
    withRefunds ? loadRefunds(ctx, key).then((refunds) => refunds.listed) : [],
  ])
  const refunds = new Map(listed.map((found) => [found.refund.refundId, found]))
  const paymentIds = payments.map(({ paymentId }) => paymentId)
  const ids = [key.transactionId, ...paymentIds, ...refunds.keys()]
  const newest = await listWrites(ctx.db.sql, key.merchantCode, ids, LIMITS.history)
  const from = after === undefined ? 0 : Date.parse(after)
  const last = timeline.nextCursor === null ? undefined : timeline.data.at(-1)
  const to = last === undefined ? Number.POSITIVE_INFINITY : Date.parse(last.at)
  const writes = newest.filter(({ at }) => Date.parse(at) > from && Date.parse(at) <= to)
  return { timeline, writes, refunds }
}

export type Technical = Awaited<ReturnType<typeof readTechnical>>

/** @throws DomainError `invalid_request` for a cursor that was not issued */
export async function readTechnical(
  ctx: ConsoleContext,
  { scopes }: Access,
  { transaction: key }: FoundTransaction,
  cursor: string | undefined,
) {
  const withRefunds = scopes.includes('refunds:read')
  const [{ timeline }, messages, webhooks] = await Promise.all([
    readTimelinePage(ctx, key, withRefunds, LIMITS.timeline, cursor),
    readMessages(ctx, key, withRefunds, LIMITS.messages),
    listSent(ctx, key, withRefunds, LIMITS.webhooks),
  ])
  return { timeline, messages, webhooks }
}

/** Reads a page of the timeline, and the time after which it begins. */
async function readTimelinePage(
  ctx: ConsoleContext,
  key: TransactionKey,
  withRefunds: boolean,
  limit: number,
  cursor: string | undefined,
) {
  let from: string | undefined
  const locate = ({ position }: TimelineRow) => position
  const timeline = await readPage(ctx.db.sql, cursor, undefined, async (after) => {
    from = after?.time
    const rows = await readTimeline(ctx, { transaction: key, withRefunds, limit, after })
    return cutPage({ rows }, limit, locate, ({ entry }) => entry)
  })
  return { timeline, from }
}
