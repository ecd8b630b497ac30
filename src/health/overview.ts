import type { Config } from '../config/config.ts'
import { findStop, type Stop } from '../db/installation.ts'
import { UNSEEN_MS } from '../db/processes.ts'
import { isUnendedSql } from '../db/schema.ts'
import { withIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'

export type SeenProcess = {
  id: string
  role: string
  version: string
  commit: string | null
  startedAt: string
  seenAt: string
}

/** The state of some accounts. `processes` and `stop` are those of the whole installation, and times are ISO 8601. */
export type Overview = {
  /** When it was read, by the database's clock: ages are counted from it. */
  at: string
  processes: SeenProcess[]
  /** Why refunds and webhooks are not sent; undefined if they are. */
  stop: Stop | undefined
  /** The end of the last minute with a notification; null if there was none for a day. */
  lastNotificationAt: string | null
  /** Transactions of configured accounts that are due, and how long the oldest has waited (ms). */
  due: number
  lagMs: number
  answered: number
  unanswered: number
  /** Refunds that have not ended, and when the oldest of each status was requested. */
  refunds: { status: string; count: number; since: string }[]
  /** Open discrepancies, and when the oldest of each kind was found. */
  discrepancies: { kind: string; count: number; since: string }[]
  /** Webhook endpoints, and since when the first of those that fail has failed. */
  endpoints: { all: number; disabled: number; failing: number; since: string | null }
  held: string[]
}

/** What is due usually waits for a second; after a minute it is late, and after ten there is an outage (ms). */
export const LATE_MS = 60_000
export const OUTAGE_MS = 600_000
/** What has waited for a person for longer than this was overlooked (ms). */
export const OVERLOOKED_MS = 86_400_000

export function rateProcesses(processes: readonly SeenProcess[]) {
  const versions = new Set(processes.map(({ version, commit }) => `${version} ${commit}`))
  return { hasWorker: processes.some(({ role }) => role !== 'web'), isMixed: versions.size > 1 }
}

/** Whether somebody has to look at refunds with this status. */
export const isWaiting = ({ status }: { status: string }) =>
  status === 'needs_review' || status === 'unknown'

export async function readProcesses(sql: Sql): Promise<SeenProcess[]> {
  const rows = await sql<SeenProcess[]>`
    select id, role, version, commit, started_at as "startedAt", seen_at as "seenAt" from processes
    where seen_at > now() - ${UNSEEN_MS} * interval '1 millisecond' order by role, started_at, id`
  return rows.map((row) => withIso(row, ['startedAt', 'seenAt']))
}

const MOST = 10_000

/** Every part reads at most `MOST` rows of each account. @param owners whose webhook endpoints are counted */
export async function readOverview(
  sql: Sql,
  config: Config,
  merchants: readonly string[],
  owners: readonly string[],
): Promise<Overview> {
  const codes = [...merchants]
  const configured = config.accounts.map(({ merchantCode }) => merchantCode)
  const accounts = sql`unnest(${codes}::text[]) as a (merchant_code)`
  const [processes, refunds, discrepancies, stop, [endpoints], [row]] = await Promise.all([
    readProcesses(sql),
    sql<Overview['refunds']>`
      select case status when 'sending' then 'pending' else status end as status, count(*)::int as count,
        min(requested_at) as since
      from ${accounts} cross join lateral (
        (select status, requested_at from refunds as r
          where r.merchant_code = a.merchant_code and r.status in ('needs_review', 'unknown') limit ${MOST})
        union all
        (select status, requested_at from refunds as r
          where r.merchant_code = a.merchant_code and r.status not in ('needs_review', 'unknown')
            and ${sql.unsafe(isUnendedSql('r'))} limit ${MOST})) as r
      group by 1 order by 1`,
    sql<Overview['discrepancies']>`
      select kind, count(*)::int as count, min(at) as since from ${accounts} cross join lateral (
        select kind, at from discrepancies as d
        where d.merchant_code = a.merchant_code and d.resolved_at is null limit ${MOST}) as d
      group by 1`,
    findStop(sql),
    sql<Overview['endpoints'][]>`
      select count(*)::int as all, count(disabled_at)::int as disabled,
        count(*) filter (where disabled_at is null and failing_since is not null)::int as failing,
        min(failing_since) filter (where disabled_at is null) as since
      from webhook_endpoints where merchant_code = any(${[...owners]}::text[])`,
    sql<
      Pick<
        Overview,
        'at' | 'due' | 'lagMs' | 'lastNotificationAt' | 'answered' | 'unanswered' | 'held'
      >[]
    >`
      select due.*, calls.*, now() as at,
        array(select merchant_code from merchant_accounts
          where merchant_code = any(${codes}::text[]) and hold is not null order by 1) as held
      from (
        select count(*)::int as due, coalesce(extract(epoch from now() - min(due_at)) * 1000, 0)::float8 as "lagMs"
        from ${accounts} cross join lateral (
          select due_at from transactions as t where t.merchant_code = a.merchant_code and t.due_at <= now()
          order by due_at limit ${MOST}) as t
        where a.merchant_code = any(${configured}::text[])
      ) as due, (
        select max(at) filter (where notifications > 0) as "lastNotificationAt",
          coalesce(sum(answered) filter (where at > now() - interval '1 hour'), 0)::int as answered,
          coalesce(sum(unanswered) filter (where at > now() - interval '1 hour'), 0)::int as unanswered
        from minute_figures where merchant_code = any(${codes}::text[])
      ) as calls`,
  ])
  if (!endpoints || !row) throw new Error('the database returned no row')
  return {
    ...withIso(row, ['at', 'lastNotificationAt']),
    processes,
    refunds: refunds.map((one) => withIso(one, ['since'])),
    discrepancies: discrepancies.map((one) => withIso(one, ['since'])),
    endpoints: withIso(endpoints, ['since']),
    stop,
  }
}
