import { type ListedWrite, listWrites } from '../../access/audit.ts'
import type { Principal } from '../../access/principal.ts'
import type { Access } from '../../access/types.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { findMayRelease, readAccountHold } from '../../decisions/hold-subject.ts'
import type { MayEnd } from '../../decisions/second-person.ts'
import type { DiscrepancyRow } from '../../discrepancies/kinds.ts'
import { listOfTransaction } from '../../discrepancies/store.ts'
import { cutPage, type Page, type Position, readCursor } from '../../http/list.ts'
import type { StoredHold } from '../../payments/view.ts'
import { type ExternalRecord, listExternalOfTransaction } from '../../refunds/external-view.ts'
import { type FoundRefund, listRefunds } from '../../refunds/find.ts'
import { readSurplus } from '../../refunds/surplus.ts'
import { listTransactions } from '../../transactions/find-transactions.ts'
import { type ReceivedMessage, readMessages } from '../../transactions/read-timeline.ts'
import { readTimeline, type TimelineRow } from '../../transactions/timeline.ts'
import type { FoundTransaction, TransactionWithPayments } from '../../transactions/types.ts'
import { listSent, type SentEvent } from '../../webhooks/log.ts'
import type { ConsoleContext } from '../context.ts'

/** Everything that the page about a transaction shows, as far as the person may read it. */
export type Story = {
  found: FoundTransaction
  accountHold: StoredHold
  /** Whether the person may release the holds of payments and refunds, by `nameHeld`; empty without the scope `ops`. */
  mayRelease: ReadonlyMap<string, MayEnd>
  /** Undefined without the scope `refunds:read`. */
  refunds: { listed: FoundRefund[]; hasMore: boolean; external: ExternalRecord[] } | undefined
  /** A decimal string; undefined when there is none to refund. */
  surplus: string | undefined
  /** Undefined without the scope `ops`. */
  discrepancies: DiscrepancyRow[] | undefined
  timeline: Page<TimelineRow['entry']>
  messages: ReceivedMessage[]
  webhooks: SentEvent[]
  requests: ListedWrite[]
  sameOrder: TransactionWithPayments[]
}

/** Rows of each part of the page. */
const LIMITS = {
  refunds: 50,
  external: 20,
  discrepancies: 50,
  timeline: 50,
  messages: 10,
  webhooks: 20,
  sameOrder: 10,
  requests: 20,
}

/**
 * Reads the story of a transaction; its statements run side by side.
 * @param cursor of the page of its timeline; undefined for the first
 * @throws DomainError `invalid_request` for a cursor that was not issued
 */
export async function loadStory(
  ctx: ConsoleContext,
  access: Access,
  found: FoundTransaction,
  cursor: string | undefined,
): Promise<Story> {
  const after = readCursor(cursor)
  return await ctx.reads.run(access.chainId, (database) =>
    readStory({ ...ctx, ...database }, access, found, after),
  )
}

async function readStory(
  ctx: ConsoleContext,
  access: Access,
  found: FoundTransaction,
  after: Position | undefined,
): Promise<Story> {
  const { transaction: key } = found
  const withRefunds = access.scopes.includes('refunds:read')
  const [accountHold, refunds, surplus, discrepancies, entries, messages, webhooks, sameOrder] =
    await Promise.all([
      readAccountHold(ctx.sql, key.merchantCode),
      withRefunds ? loadRefunds(ctx, key) : undefined,
      withRefunds ? readSurplus(ctx.sql, key) : undefined,
      access.scopes.includes('ops')
        ? listOfTransaction(ctx.sql, key, LIMITS.discrepancies)
        : undefined,
      readTimeline(ctx, key, withRefunds, LIMITS.timeline, after),
      readMessages(ctx, key, withRefunds, LIMITS.messages),
      listSent(ctx, key, withRefunds, LIMITS.webhooks),
      loadSameOrder(ctx, key),
    ])
  const timeline = cutPage({ rows: entries }, LIMITS.timeline, locate, show)
  const ids = [
    key.transactionId,
    ...found.payments.map(({ payment }) => payment.paymentId),
    ...(refunds?.listed ?? []).map(({ refund }) => refund.refundId),
  ]
  const requests = await listWrites(ctx.sql, key.merchantCode, ids, LIMITS.requests)
  const held = access.scopes.includes('ops') ? listHeld(found, refunds?.listed ?? []) : []
  const mayRelease = await loadMayRelease(ctx, access, held)
  const rest = { requests, discrepancies, timeline, messages, webhooks, sameOrder, mayRelease }
  return { found, accountHold, refunds, surplus, ...rest }
}

type Held = { merchantCode: string; target: 'payment' | 'refund'; id: string }

/** Names what is held among all that a story shows. */
export const nameHeld = (target: Held['target'], id: string) => `${target} ${id}`

/** The payments and refunds of the page that are held. */
function listHeld(
  { transaction: { merchantCode }, payments }: FoundTransaction,
  refunds: readonly FoundRefund[],
): Held[] {
  const ofPayments = payments.flatMap(({ payment: { paymentId: id, hold } }): Held[] =>
    hold === null ? [] : [{ merchantCode, target: 'payment', id }],
  )
  const ofRefunds = refunds.flatMap(({ refund: { refundId: id, hold } }): Held[] =>
    hold === null ? [] : [{ merchantCode, target: 'refund', id }],
  )
  return [...ofPayments, ...ofRefunds]
}

async function loadMayRelease(
  { sql }: ConsoleContext,
  who: Principal,
  held: readonly Held[],
): Promise<ReadonlyMap<string, MayEnd>> {
  const found = held.map(async (one) => {
    const may = await findMayRelease(sql, who, one)
    return [nameHeld(one.target, one.id), may] as const
  })
  return new Map(await Promise.all(found))
}

async function loadRefunds(ctx: ConsoleContext, { merchantCode, transactionId }: TransactionKey) {
  const filter = { merchants: [merchantCode], transactionId }
  const [{ rows }, external] = await Promise.all([
    listRefunds(ctx, filter, LIMITS.refunds, undefined),
    listExternalOfTransaction(ctx, { merchantCode, transactionId }, LIMITS.external),
  ])
  const listed = rows.slice(0, LIMITS.refunds)
  return { listed, hasMore: rows.length > listed.length, external }
}

/** The other transactions that name the same order, newest first. */
async function loadSameOrder(
  ctx: ConsoleContext,
  { merchantCode, transactionId, orderId }: TransactionKey & { orderId: string | null },
): Promise<TransactionWithPayments[]> {
  if (orderId === null) return []
  const filter = { merchants: [merchantCode], orderId }
  const { rows } = await listTransactions(ctx, filter, LIMITS.sameOrder, undefined)
  return rows
    .filter(({ transaction }) => transaction.transactionId !== transactionId)
    .slice(0, LIMITS.sameOrder)
}

const locate = ({ position }: TimelineRow) => position
const show = ({ entry }: TimelineRow) => entry
