import type { Context } from '../context.ts'
import { transactions } from '../db/schema.ts'
import { formatTransactionKey } from '../db/transaction-key.ts'
import { withTimeout } from '../platform/concurrency/timing.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { SpanOptions } from '../platform/telemetry/tracing.ts'
import type { Claim } from './types.ts'

/** The traces that led to a query, as `traceparent`: the one it continues, and others it links to. */
type TraceLinks = Pick<SpanOptions, 'parent' | 'links'>

/** How long queries continue the trace of a notification (ms); later ones start their own. */
const CONTINUE_FOR_MS = 3_600_000
const MAX_LINKS = 10
/** Bounds the delay of the claims, whose leases are running (ms); without an answer by then they have no links. */
const READ_WITHIN_MS = 1_000

/**
 * Finds the traces that led to claims. A query continues the trace of the request for it in this process, or of
 * the newest payment or refund notification, and links to other notifications. Reads nothing without tracing;
 * an error is logged and does not affect the claims.
 * @returns by lease id
 */
export async function findTraceLinks(
  ctx: Pick<Context, 'log' | 'sql' | 'tracing'>,
  claims: readonly Claim[],
): Promise<ReadonlyMap<string, TraceLinks>> {
  if (!ctx.tracing.enabled || claims.length === 0) return new Map()
  const reading = withTimeout(READ_WITHIN_MS, readTraces(ctx, claims))
  const rows = await reading.catch((error: unknown) => {
    ctx.log.info({ err: error }, 'the traces of notifications could not be read')
    return []
  })
  return new Map(
    claims.map(({ merchantCode, transactionId, leaseId }) => {
      const own = rows.filter((row) => row.leaseId === leaseId)
      const [newest] = own
      const asked = ctx.tracing.recall(formatTransactionKey({ merchantCode, transactionId }))
      const parent = asked ?? (newest?.fresh ? newest.traceParent : undefined)
      const links = own.map(({ traceParent }) => traceParent).filter((one) => one !== parent)
      return [leaseId, { parent, links }]
    }),
  )
}

const COLUMNS = pickColumns(transactions, 'merchantCode', 'transactionId', 'leaseId')

type Trace = { leaseId: string; traceParent: string; fresh: boolean }

async function readTraces(
  { sql }: Pick<Context, 'sql'>,
  claims: readonly Claim[],
): Promise<Trace[]> {
  return await sql<Trace[]>`
    select c.lease_id as "leaseId", n.trace_parent as "traceParent",
      n.last_received_at > now() - ${CONTINUE_FOR_MS} * interval '1 millisecond' as fresh
    from ${rowSet(sql, 'c', COLUMNS, claims)}
    cross join lateral (
      select trace_parent, last_received_at from (
        select e.trace_parent, e.last_received_at from ipn_events e
        where e.merchant_code = c.merchant_code and e.transaction_id = c.transaction_id
        union all
        select e.trace_parent, e.last_received_at
        from payments p join ipn_events e using (merchant_code, payment_id)
        where p.merchant_code = c.merchant_code and p.transaction_id = c.transaction_id
          and e.kind = 'refund' and e.handled_at is null
      ) as received
      where trace_parent is not null order by last_received_at desc limit ${MAX_LINKS}
    ) as n
    order by n.last_received_at desc`
}
