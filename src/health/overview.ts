import { listMerchantCodes } from '../accounts/merchant-codes.ts'
import type { Config } from '../config/config.ts'
import { findStop, type Stop } from '../db/installation.ts'
import { UNSEEN_MS } from '../db/processes.ts'
import { rateKind } from '../discrepancies/kinds.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { isUnendedSql } from '../refunds/lifecycle.ts'

/** A process that has been seen lately. Times are ISO 8601. */
export type SeenProcess = {
  id: string
  role: string
  version: string
  commit: string | null
  startedAt: string
  seenAt: string
}

/** How some accounts stand now; `processes` and `stop` are those of the whole installation. */
export type Overview = {
  /** When it was read, by the database's clock (ISO 8601): ages are counted from it. */
  at: string
  processes: SeenProcess[]
  /** Why refunds and webhooks are not sent, if so. */
  stop: Stop | undefined
  /** The end of the last minute with a notification (ISO 8601); null when there was none for a day. */
  lastNotificationAt: string | null
  /** Transactions of configured accounts that are due, as far as they are counted, and how long the oldest has waited (ms). */
  due: number
  lagMs: number
  /** The calls of the last hour, by whether they were answered. */
  answered: number
  unanswered: number
  /** Refunds that have not ended, and since when the oldest of a status waits (ISO 8601). */
  refunds: { status: string; count: number; since: string }[]
  /** Open discrepancies, those of them about money, and when the oldest was found (ISO 8601). */
  discrepancies: { all: number; severe: number; since: string | null }
  /** Webhook endpoints, and since when the one has failed that has failed for longest (ISO 8601). */
  endpoints: { all: number; disabled: number; failing: number; since: string | null }
  /** Accounts whose refunds are held. */
  held: string[]
}

/** Something that is due waits for a second; a minute is late, and ten are an outage (ms). */
export const LATE_MS = 60_000
export const OUTAGE_MS = 600_000
/** What waits for a person longer than this has been overlooked (ms). */
export const OVERLOOKED_MS = 86_400_000

/** Whether workers are missing, and whether versions are mixed. */
export function rateProcesses(processes: readonly SeenProcess[]) {
  const versions = new Set(processes.map(({ version, commit }) => `${version} ${commit}`))
  return { hasWorker: processes.some(({ role }) => role !== 'web'), isMixed: versions.size > 1 }
}

/** Of refunds that have not ended, those that somebody has to look at. */
export const isWaiting = ({ status }: { status: string }) =>
  status === 'needs_review' || status === 'unknown'

/** Reads the processes that have been seen lately. */
export async function readProcesses(sql: Sql): Promise<SeenProcess[]> {
  const rows = await sql<SeenProcess[]>`
    select id, role, version, commit, started_at as "startedAt", seen_at as "seenAt" from processes
    where seen_at > now() - ${UNSEEN_MS} * interval '1 millisecond' order by role, started_at, id`
  return rows.map((one) => ({
    ...one,
    startedAt: toIso(one.startedAt),
    seenAt: toIso(one.seenAt),
  }))
}

/** Nobody needs to know how many more there are. */
const MOST = 10_000

/**
 * Reads how accounts stand. Every part looks rows up by account, and counts at most `MOST` of them.
 * @param owners of webhook endpoints, as the person may see them
 */
export async function readOverview(
  sql: Sql,
  config: Config,
  merchants: readonly string[],
  owners: readonly string[],
): Promise<Overview> {
  const codes = [...merchants]
  const accounts = sql`unnest(${codes}::text[]) as a (merchant_code)`
  const [processes, refunds, kinds, stop, [endpoints], [row]] = await Promise.all([
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
    sql<{ kind: string; count: number; since: string }[]>`
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
        where a.merchant_code = any(${listMerchantCodes(config)}::text[])
      ) as due, (
        select max(at) filter (where notifications > 0) as "lastNotificationAt",
          coalesce(sum(answered) filter (where at > now() - interval '1 hour'), 0)::int as answered,
          coalesce(sum(unanswered) filter (where at > now() - interval '1 hour'), 0)::int as unanswered
        from minute_figures where merchant_code = any(${codes}::text[])
      ) as calls`,
  ])
  if (!endpoints || !row) throw new Error('the database returned no row')
  const sum = (some: readonly { count: number }[]) =>
    some.reduce((total, { count }) => total + count, 0)
  const severe = kinds.filter(({ kind }) => rateKind(kind) === 'high')
  const [oldest = null] = kinds.map(({ since }) => toIso(since)).sort()
  return {
    ...row,
    at: toIso(row.at),
    lastNotificationAt: row.lastNotificationAt && toIso(row.lastNotificationAt),
    processes,
    refunds: refunds.map((one) => ({ ...one, since: toIso(one.since) })),
    discrepancies: { all: sum(kinds), severe: sum(severe), since: oldest },
    endpoints: { ...endpoints, since: endpoints.since && toIso(endpoints.since) },
    stop,
  }
}
