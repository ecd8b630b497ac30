import { setTimeout as pause } from 'node:timers/promises'
import { Gauge } from 'prom-client'
import { EXPIRING_SOON } from '../access/keys.ts'
import type { Context } from '../context.ts'
import { isUnendedSql } from '../db/schema.ts'
import { shareRuns } from '../platform/concurrency/timing.ts'
import type { Sql } from '../platform/postgres/types.ts'

export type HealthContext = Context & {
  countEndedRefunds: () => Promise<readonly StoredValue[]>
  /** The gauges that count by the rules of folders that this one may not import. */
  sharedGauges: readonly StoredGauge[]
  /** Sets the gauges of what this process holds. */
  measure: () => void
}

/** If counting the ended refunds takes longer, their gauges keep the last values (ms). */
const COUNT_TIMEOUT_MS = 250
/** Counting stops here to remain cheap: beyond it the exact number does not matter. */
const MAX_COUNTED = 10_000

const OPEN_REFUND = isUnendedSql('refunds')
const PUBLIC_STATUS = "case status when 'sending' then 'pending' else status end as status"
const OPEN_STATUS = {
  name: 'status',
  values: ['awaiting_approval', 'pending', 'accepted', 'unknown', 'needs_review'],
}

export type StoredGauge = {
  gauge: string
  /** Selects `value`, and a column for each label. */
  sql: string
  /** Whether `$1` in the SQL stands for the codes of the configured accounts. */
  takesAccounts?: true
  /** Whether a series that is no longer selected is removed. */
  isList?: true
  /** A label with the values that are always shown, as 0 if no row has them. */
  label?: { name: string; values: readonly string[] }
}

/** Work of accounts that are not configured is counted by `missing_account_work` instead. */
const STORED_GAUGES: readonly StoredGauge[] = [
  {
    gauge: 'sync_due',
    sql: 'select count(*) as value from transactions where due_at <= now() and merchant_code = any($1)',
    takesAccounts: true,
  },
  {
    gauge: 'sync_lag_seconds',
    sql: `select coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as value
      from transactions as t where due_at <= now() and t.merchant_code = any($1)`,
    takesAccounts: true,
  },
  {
    gauge: 'api_keys_expiring',
    sql: `select count(*) as value from actors as k where ${EXPIRING_SOON}`,
  },
  {
    gauge: 'refunds',
    sql: `select ${PUBLIC_STATUS}, count(*) as value from refunds where ${OPEN_REFUND} group by 1`,
    label: OPEN_STATUS,
  },
  {
    gauge: 'refund_age_seconds',
    sql: `select ${PUBLIC_STATUS}, extract(epoch from now() - min(requested_at))::float8 as value
      from refunds where ${OPEN_REFUND} group by 1`,
    label: OPEN_STATUS,
  },
  {
    gauge: 'events_unpublished',
    sql: `select count(*) as value from (select from event_outbox limit ${MAX_COUNTED}) as waiting`,
  },
  {
    gauge: 'webhook_endpoints_disabled',
    sql: `select disabled_reason as reason, count(*) as value from webhook_endpoints
      where disabled_at is not null group by 1`,
    label: { name: 'reason', values: ['gone', 'failing', 'key_ended'] },
  },
  {
    gauge: 'audit_checkpoint_age_seconds',
    sql: `select coalesce((
      select greatest(0, extract(epoch from now() - at))::float8 from audit_entries where isfinite(at)
        and id > coalesce((select max(up_to_id) from audit_checkpoints), ${-Number.MAX_SAFE_INTEGER})
      order by id limit 1), 0) as value`,
  },
]

/** The other statuses, which are counted less often. */
const ENDED_REFUNDS: StoredGauge = {
  gauge: 'refunds',
  sql: `select status, count(*) as value from refunds
    where status in ('succeeded', 'failed', 'returned') group by 1`,
  label: { name: 'status', values: ['succeeded', 'failed', 'returned'] },
}

type StoredValue = { value: number } & Record<string, string | number>

/** @throws database errors; the gauges keep their values */
export async function setStoredGauges(sql: Sql, ctx: HealthContext): Promise<void> {
  const timeout = pause(COUNT_TIMEOUT_MS, undefined, { ref: false })
  const accounts = ctx.config.accounts.map(({ merchantCode }) => merchantCode)
  const gauges = [...STORED_GAUGES, ...ctx.sharedGauges]
  const [ended, ...values] = await Promise.all([
    Promise.race([ctx.countEndedRefunds(), timeout]),
    ...gauges.map(({ sql: text, takesAccounts }) =>
      sql.unsafe<StoredValue[]>(text, takesAccounts && [accounts]),
    ),
  ])
  for (const [index, gauge] of gauges.entries()) setGauge(ctx, gauge, values[index] ?? [], 0)
  if (ended) setGauge(ctx, ENDED_REFUNDS, ended, 0)
}

/** Sets the gauges to NaN, so that no stale value is shown while the database is unavailable. */
export function clearStoredGauges(ctx: HealthContext): void {
  const gauges = [...STORED_GAUGES, ...ctx.sharedGauges, ENDED_REFUNDS]
  for (const gauge of gauges) setGauge(ctx, gauge, [], Number.NaN)
}

/** @param missing the value of a series without a row */
function setGauge(
  { metrics: { registry } }: Pick<HealthContext, 'metrics'>,
  { gauge: name, label, isList }: StoredGauge,
  rows: readonly StoredValue[],
  missing: number,
): void {
  const gauge = registry.getSingleMetric(name)
  if (!(gauge instanceof Gauge)) throw new Error(`${name} is no gauge`)
  const shown = label ? label.values.map((value) => ({ [label.name]: value })) : [{}]
  if (isList) gauge.reset()
  else for (const labels of shown) gauge.set(labels, missing)
  for (const { value, ...labels } of rows) gauge.set(labels, value)
}

/**
 * Counting scans the whole table, so a count is reused for 20 times as long as it took: in a small installation the
 * numbers are current, with some millions of rows they are up to a minute old.
 */
export function createEndedRefundCounter(sql: Sql): HealthContext['countEndedRefunds'] {
  const count = async () => await sql.unsafe<StoredValue[]>(ENDED_REFUNDS.sql)
  return shareRuns(count, ({ tookMs, failed }) => (failed ? 0 : 20 * tookMs))
}
