import { setTimeout as pause } from 'node:timers/promises'
import { readCheckpointAge } from '../access/audit-checkpoints.ts'
import { listExpiringKeys } from '../access/list-keys.ts'
import type { FeedContext } from '../feed/context.ts'
import type { IpnContext } from '../ipn/context.ts'
import { readMissingWork } from '../maintenance/missing-accounts.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { SyncContext } from '../sync/context.ts'
import type { TransactionsContext } from '../transactions/context.ts'

/**
 * Where a process stands between its start and its end. Only while it is `ready` does `/readyz` ask for requests; what
 * reaches it before or after is served all the same.
 */
export type Lifecycle = { phase: 'starting' | 'ready' | 'stopping' }

/** Creates the lifecycle of a process that has just started. */
export function beginLifecycle(): Lifecycle {
  return { phase: 'starting' }
}

export type HealthContext = FeedContext &
  IpnContext &
  SyncContext &
  TransactionsContext & {
    /** Counts succeeded and failed refunds, for the metrics. */
    countEndedRefunds: () => Promise<EndedRefunds>
    lifecycle: Lifecycle
  }

/** If counting ended refunds takes longer, their gauges keep the last value (ms). */
const COUNT_TIMEOUT_MS = 250

/** The public statuses of refunds that have not ended. */
const OPEN_STATUSES = [
  'awaiting_approval',
  'pending',
  'accepted',
  'unknown',
  'needs_review',
] as const

/** Breaker states; the index is the value in the metrics. */
const BREAKER_STATES = ['closed', 'half-open', 'open']

/** Pending work of all processes. */
type Backlog = {
  due: number
  lagS: number
  open: readonly { status: string; count: number; ageS: number }[]
  /** Undefined if the count timed out. */
  ended: EndedRefunds | undefined
}

/**
 * Sets the gauges of the sync's backlog and of refunds by status, from the database.
 * @throws database errors; the gauges keep their values
 */
export async function setBacklogGauges({
  sql,
  metrics,
  countEndedRefunds,
}: Pick<HealthContext, 'sql' | 'metrics' | 'countEndedRefunds'>): Promise<void> {
  const [row] = await sql<{ due: number; lagS: number }[]>`
    select count(*) as due,
      coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as "lagS"
    from transactions where due_at <= now()`
  const open = await sql<Backlog['open']>`
    select case status when 'sending' then 'pending' else status end as status, count(*) as count,
      extract(epoch from now() - min(requested_at))::float8 as "ageS"
    from refunds where status not in ('succeeded', 'failed') and status <> 'returned' group by 1`
  const timeout = pause(COUNT_TIMEOUT_MS, undefined, { ref: false })
  const ended = await Promise.race([countEndedRefunds(), timeout])
  setGauges({ metrics }, { due: row?.due ?? 0, lagS: row?.lagS ?? 0, open, ended })
}

/**
 * Sets the gauges of the accounts that are no longer configured.
 * @throws database errors; the gauges keep their values
 */
export async function setMissingAccountGauges(
  ctx: Pick<HealthContext, 'sql' | 'config' | 'metrics'>,
): Promise<void> {
  const missing = await readMissingWork(ctx)
  ctx.metrics.missingAccountWork.reset()
  for (const { merchantCode: merchant, refunds, transactions } of missing) {
    ctx.metrics.missingAccountWork.set({ merchant, work: 'refunds' }, refunds)
    ctx.metrics.missingAccountWork.set({ merchant, work: 'transactions' }, transactions)
  }
}

/**
 * Sets the gauge of the API keys that end soon.
 * @throws database errors; the gauge keeps its value
 */
export async function setKeyGauges({
  sql,
  metrics,
}: Pick<HealthContext, 'sql' | 'metrics'>): Promise<void> {
  metrics.apiKeysExpiring.set((await listExpiringKeys(sql)).length)
}

/**
 * Sets the gauge of the audit log.
 * @throws database errors; the gauge keeps its value
 */
export async function setAuditGauges({
  sql,
  metrics,
}: Pick<HealthContext, 'sql' | 'metrics'>): Promise<void> {
  metrics.auditCheckpointAge.set(await readCheckpointAge(sql))
}

/** Sets all gauges read from the database to NaN, so that no stale value is shown while it is unavailable. */
export function clearDatabaseGauges({ metrics }: Pick<HealthContext, 'metrics'>): void {
  const open = OPEN_STATUSES.map((status) => ({ status, count: Number.NaN, ageS: Number.NaN }))
  const ended = { succeeded: Number.NaN, failed: Number.NaN, returned: Number.NaN }
  setGauges({ metrics }, { due: Number.NaN, lagS: Number.NaN, open, ended })
  metrics.eventsUnpublished.set(Number.NaN)
  metrics.apiKeysExpiring.set(Number.NaN)
  metrics.webhookPending.set(Number.NaN)
  metrics.webhookEndpointsDisabled.reset()
  metrics.missingAccountWork.reset()
  metrics.auditCheckpointAge.set(Number.NaN)
}

/** Sets the gauges that do not need the database. */
export function setProcessGauges(ctx: HealthContext): void {
  for (const { merchantCode: merchant, operation, state } of ctx.breakers.list()) {
    ctx.metrics.gatewayBreaker.set({ merchant, operation }, BREAKER_STATES.indexOf(state))
  }
  ctx.metrics.gatewayConcurrency.set(ctx.limiter.currentLimit())
  ctx.metrics.ipnWaiting.set(ctx.inbox.readGauges().waiting)
  ctx.metrics.waitingReaders.set(ctx.transactionWaiters.count() + ctx.feedWaiters.count())
  ctx.metrics.eventStreams.set(ctx.streams.count())
}

function setGauges(
  { metrics }: Pick<HealthContext, 'metrics'>,
  { due, lagS, open, ended }: Backlog,
): void {
  metrics.syncDue.set(due)
  metrics.syncLag.set(lagS)
  for (const status of OPEN_STATUSES) {
    const found = open.find((row) => row.status === status)
    metrics.refunds.set({ status }, found?.count ?? 0)
    metrics.refundAge.set({ status }, found?.ageS ?? 0)
  }
  if (!ended) return
  metrics.refunds.set({ status: 'succeeded' }, ended.succeeded)
  metrics.refunds.set({ status: 'failed' }, ended.failed)
  metrics.refunds.set({ status: 'returned' }, ended.returned)
}

export type EndedRefunds = { succeeded: number; failed: number; returned: number }

/** A count is reused for this many times the time it took. */
const REUSE_FACTOR = 20

/**
 * Counts refunds that have succeeded, failed or been returned. A count scans the whole table, so a large table is
 * counted less often: in a small installation the numbers are current, with some millions of rows they are a minute old.
 * @returns a function that resolves with the newest count. Concurrent callers share one count; it throws
 *   database errors
 */
export function createEndedRefundCounter(sql: Sql): () => Promise<EndedRefunds> {
  let newest: Promise<EndedRefunds> | undefined
  let validUntil = 0

  async function count(): Promise<EndedRefunds> {
    const started = performance.now()
    const [row] = await sql<EndedRefunds[]>`
      select count(*) filter (where status = 'succeeded') as succeeded,
        count(*) filter (where status = 'failed') as failed,
        count(*) filter (where status = 'returned') as returned
      from refunds`
    const ended = performance.now()
    validUntil = ended + REUSE_FACTOR * (ended - started)
    return row ?? { succeeded: 0, failed: 0, returned: 0 }
  }

  return () => {
    if (newest && performance.now() < validUntil) return newest
    validUntil = Number.POSITIVE_INFINITY
    newest = count().catch((error: unknown) => {
      validUntil = 0
      throw error
    })
    return newest
  }
}
