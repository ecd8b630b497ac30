import { setTimeout as pause } from 'node:timers/promises'
import { Gauge } from 'prom-client'
import { EXPIRING_SOON } from '../access/keys.ts'
import { listMerchantCodes } from '../accounts/merchant-codes.ts'
import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { MISSING_WORK_SQL } from '../maintenance/missing-accounts.ts'
import { shareRuns } from '../platform/concurrency/timing.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { isUnendedSql } from '../refunds/lifecycle.ts'
import { countPendingSql } from '../webhooks/endpoints.ts'

export type HealthContext = Context & {
  /** Counts succeeded and failed refunds, for the metrics. */
  countEndedRefunds: () => Promise<readonly StoredValue[]>
  /** Sets the gauges of what this process holds. */
  measure: () => void
}

/** If a count of the whole table takes longer, its gauges keep the last value (ms). */
const COUNT_TIMEOUT_MS = 250
/** Counting stops here to stay cheap: beyond it the exact number does not matter. */
const MAX_COUNTED = 10_000

const OPEN_REFUND = isUnendedSql('refunds')
const PUBLIC_STATUS = "case status when 'sending' then 'pending' else status end as status"
/** The public statuses of refunds that have not ended. */
const OPEN_STATUS = {
  name: 'status',
  values: ['awaiting_approval', 'pending', 'accepted', 'unknown', 'needs_review'],
}

type StoredGauge = {
  /** The name of the metric. */
  gauge: string
  /** Selects `value`, and a column for each label. */
  sql: string
  parameters?: (config: Config) => string[][]
  /** What is no longer selected is no longer shown. */
  isList?: boolean
  /** Its label with the values that are always shown, as 0 without a row. */
  label?: { name: string; values: readonly string[] }
}

/** Nobody asks about those of other accounts, which `missing_account_work` tells of. */
const listAccounts = (config: Config) => [listMerchantCodes(config)]

const STORED_GAUGES: readonly StoredGauge[] = [
  {
    gauge: 'sync_due',
    sql: 'select count(*) as value from transactions where due_at <= now() and merchant_code = any($1)',
    parameters: listAccounts,
  },
  {
    gauge: 'sync_lag_seconds',
    sql: `select coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as value
      from transactions as t where due_at <= now() and t.merchant_code = any($1)`,
    parameters: listAccounts,
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
    gauge: 'missing_account_work',
    sql: MISSING_WORK_SQL,
    isList: true,
    parameters: listAccounts,
  },
  {
    gauge: 'api_keys_expiring',
    sql: `select count(*) as value from actors as k where ${EXPIRING_SOON}`,
  },
  {
    gauge: 'events_unpublished',
    sql: `select count(*) as value from (select from event_outbox limit ${MAX_COUNTED}) as waiting`,
  },
  {
    // What waits for disabled ones, however much, is never read.
    gauge: 'webhook_pending',
    sql: `select least(${MAX_COUNTED}, coalesce(sum(${countPendingSql('e', MAX_COUNTED)}), 0))::int as value
      from webhook_endpoints as e where e.disabled_at is null`,
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

/** Beside those that have not ended; counted less often. */
const ENDED_REFUNDS: StoredGauge = {
  gauge: 'refunds',
  sql: `select status, count(*) as value from refunds
    where status in ('succeeded', 'failed', 'returned') group by 1`,
  label: { name: 'status', values: ['succeeded', 'failed', 'returned'] },
}

type StoredValue = { value: number } & Record<string, string | number>

/**
 * Sets all gauges of what is stored.
 * @throws database errors; the gauges keep their values
 */
export async function setStoredGauges(sql: Sql, ctx: HealthContext): Promise<void> {
  const { config, metrics, countEndedRefunds } = ctx
  const timeout = pause(COUNT_TIMEOUT_MS, undefined, { ref: false })
  const [ended, ...values] = await Promise.all([
    Promise.race([countEndedRefunds(), timeout]),
    ...STORED_GAUGES.map(({ sql: text, parameters }) =>
      sql.unsafe<StoredValue[]>(text, parameters?.(config)),
    ),
  ])
  for (const [index, gauge] of STORED_GAUGES.entries()) {
    setGauge(metrics, gauge, values[index] ?? [], 0)
  }
  if (ended) setGauge(metrics, ENDED_REFUNDS, ended, 0)
}

/** Sets all gauges of what is stored to NaN, so that no stale value is shown while the database is unavailable. */
export function clearStoredGauges({ metrics }: Pick<HealthContext, 'metrics'>): void {
  for (const gauge of [...STORED_GAUGES, ENDED_REFUNDS]) setGauge(metrics, gauge, [], Number.NaN)
}

/** @param missing the value of what no row has */
function setGauge(
  { registry }: Pick<HealthContext['metrics'], 'registry'>,
  { gauge: name, label, isList = false }: StoredGauge,
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
 * Counts refunds that have ended. A count scans the whole table, and is reused for 20 times the time it took: in a
 * small installation the numbers are current, with some millions of rows they are a minute old. It throws database
 * errors.
 */
export function createEndedRefundCounter(sql: Sql): HealthContext['countEndedRefunds'] {
  const count = async () => await sql.unsafe<StoredValue[]>(ENDED_REFUNDS.sql)
  return shareRuns(count, ({ tookMs, failed }) => (failed ? 0 : 20 * tookMs))
}
