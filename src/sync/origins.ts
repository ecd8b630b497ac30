import type { Context } from '../context.ts'
import { within } from '../http/deadline.ts'
import type { StepPlan } from '../trace.ts'
import type { Claim } from './claim.ts'

/** What led to a query, as `traceparent`: the one it goes on from, and others. */
type Origin = Pick<StepPlan, 'parent' | 'links'>

/** A poll goes on the trace of its notification for so long; later ones begin their own (ms). */
const TRACE_FOR_MS = 3_600_000
const MAX_LINKS = 10
/** The claims' leases run meanwhile: they are asked about without their traces then (ms). */
const READ_WITHIN_MS = 1_000

/**
 * What led to the claims: who asked in this process, or the newest notification, also of a refund; other
 * notifications are pointed to. Nothing is read without tracing, and trouble with it harms no claim.
 * @returns by the claims' leases
 */
export async function findOrigins(
  ctx: Context,
  claims: readonly Claim[],
): Promise<ReadonlyMap<string, Origin>> {
  if (!ctx.tracing.enabled || claims.length === 0) return new Map()
  const reading = within(READ_WITHIN_MS, readTraces(ctx, claims))
  const rows = await reading.catch((error: unknown) => {
    ctx.log.warn({ err: error }, 'the traces of notifications could not be read')
    return []
  })
  return new Map(
    claims.map(({ merchantCode, transactionId, leaseId }) => {
      const own = rows.filter((row) => row.leaseId === leaseId)
      const [newest] = own
      const asked = ctx.tracing.recall(merchantCode, transactionId)
      const parent = asked ?? (newest?.fresh ? newest.traceParent : undefined)
      const links = own.map(({ traceParent }) => traceParent).filter((one) => one !== parent)
      return [leaseId, { parent, links }]
    }),
  )
}

type Trace = { leaseId: string; traceParent: string; fresh: boolean }

async function readTraces({ sql }: Context, claims: readonly Claim[]): Promise<Trace[]> {
  return await sql<Trace[]>`
    select c.lease_id as "leaseId", n.trace_parent as "traceParent",
      n.last_received_at > now() - ${TRACE_FOR_MS} * interval '1 millisecond' as fresh
    from unnest(
      ${claims.map((claim) => claim.merchantCode)}::text[],
      ${claims.map((claim) => claim.transactionId)}::text[],
      ${claims.map((claim) => claim.leaseId)}::text[]
    ) as c (merchant_code, transaction_id, lease_id)
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
