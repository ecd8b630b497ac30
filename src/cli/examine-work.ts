import { EXPIRING_SOON } from '../access/keys.ts'
import { NO_WORKER, UNSEEN_MS } from '../db/processes.ts'
import { isUnendedSql } from '../refunds/lifecycle.ts'
import { type Examinations, formatSpan, judge, orFine, readOne } from './diagnosis.ts'

/** A transaction is asked about within a second; the oldest of a backlog has waited for longer than this (s). */
const LATE_S = 60
/** What waits for a person longer than this has been overlooked (s). */
const OVERLOOKED_S = 86_400

const oldest = (seconds: number) =>
  seconds === 0 ? '' : `; the oldest is ${formatSpan(seconds)} old`

/** What is examined of the work that the database holds. */
export const OF_WORK: Examinations = {
  async processes({ sql }) {
    const rows = await sql<{ role: string; version: string; commit: string; count: number }[]>`
      select role, version, coalesce(commit, '') as commit, count(*)::int as count from processes
      where seen_at > now() - ${UNSEEN_MS} * interval '1 millisecond' group by 1, 2, 3 order by 1, 2`
    const list = rows.map(({ role, version, count }) => `${count} × ${role} ${version}`).join(', ')
    if (rows.length === 0) {
      const action = 'start one: npm start, or node dist/main.js'
      return judge('no process of the service is running', action)
    }
    if (rows.every(({ role }) => role === 'web'))
      return judge(`${list}: no worker is running`, NO_WORKER, 'error')
    const versions = new Set(rows.map(({ version, commit }) => `${version} ${commit}`))
    return judge(`running: ${list}`, versions.size > 1 && 'complete the upgrade')
  },

  async backlog({ sql }) {
    const { due, seconds, waiting } = await readOne(sql<
      Record<'due' | 'seconds' | 'waiting', number>[]
    >`
      select count(*)::int as due, coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as seconds,
        (select count(*) from (select from event_outbox limit 10000) as o)::int as waiting
      from transactions where due_at <= now()`)
    return judge(
      `events that wait for the feed: ${waiting}, transactions due: ${due}${oldest(seconds)}`,
      seconds > LATE_S && 'follow "When transactions are not queried" in docs/operations.md',
    )
  },

  async claims({ sql }) {
    const { dead } = await readOne(sql<{ dead: number }[]>`
      select count(*)::int as dead from transactions as t
      where t.due_at is not null and t.lease_owner is not null and not exists (
        select from processes as p where p.id = t.lease_owner and p.seen_at > now() - interval '1 minute')`)
    return judge(
      `claims of processes that ended more than a minute ago: ${dead}`,
      dead > 0 &&
        'start a worker if none is running; those with an open refund are taken over when their claim ends by itself',
    )
  },

  async refunds({ sql }) {
    const { review, unknown, seconds } = await readOne(sql<
      Record<'review' | 'unknown' | 'seconds', number>[]
    >`
      select count(*) filter (where status = 'needs_review')::int as review,
        count(*) filter (where status = 'unknown')::int as unknown,
        coalesce(extract(epoch from now() - min(requested_at)), 0)::float8 as seconds
      from refunds where status in ('needs_review', 'unknown')`)
    return judge(
      `refunds that need a decision: ${review}, without a known outcome: ${unknown}${oldest(seconds)}`,
      seconds > OVERLOOKED_S &&
        'decide them under Waiting for you in the console; see "When a refund waits" in docs/operations.md',
    )
  },

  async discrepancies({ sql }) {
    const { open, seconds } = await readOne(sql<Record<'open' | 'seconds', number>[]>`
      select count(*)::int as open, coalesce(extract(epoch from now() - min(at)), 0)::float8 as seconds
      from discrepancies where resolved_at is null and over_at is null`)
    return judge(
      `open disagreements with the gateway: ${open}${oldest(seconds)}`,
      seconds > OVERLOOKED_S &&
        'look at /console/discrepancies; see "When the sides disagree" in docs/operations.md',
    )
  },

  async webhooks({ sql }) {
    const { all, disabled, failing, seconds } = await readOne(sql<
      Record<'all' | 'disabled' | 'failing' | 'seconds', number>[]
    >`
      select count(*)::int as all, count(disabled_at)::int as disabled,
        count(*) filter (where disabled_at is null and failing_since < now() - interval '10 minutes')::int as failing,
        coalesce(extract(epoch from now() - min(failing_since) filter (where disabled_at is null)), 0)::float8 as seconds
      from webhook_endpoints`)
    const longest = failing > 0 ? `, the longest for ${formatSpan(seconds)}` : ''
    return judge(
      `webhook endpoints: ${all}, disabled: ${disabled}, without a success for ten minutes: ${failing}${longest}`,
      disabled + failing > 0 &&
        'mend the receiver, then POST /v1/webhook-endpoints/{id}/enable and …/replay; see "Webhooks" in docs/operations.md',
    )
  },

  async accounts({ sql, config }) {
    const codes = config.accounts.map(({ merchantCode }) => merchantCode)
    const rows = await sql<{ code: string }[]>`
      select m.merchant_code as code from merchant_accounts as m
      where m.merchant_code <> all (${codes}) and (
        exists (select from transactions as t where t.merchant_code = m.merchant_code and t.due_at is not null)
        or exists (select from refunds as r where r.merchant_code = m.merchant_code and ${sql.unsafe(isUnendedSql('r'))}))`
    const found = rows.map(({ code }) =>
      judge(
        `the account ${code} is no longer in the settings, and work of it waits for the gateway's answer`,
        'put it back until that has ended; see "An account that leaves" in docs/operations.md',
      ),
    )
    return orFine(found, `accounts in the settings: ${codes.length}`)
  },

  async keys({ sql }) {
    const { ending } = await readOne(sql<{ ending: number }[]>`
      select count(*)::int as ending from actors as k where ${sql.unsafe(EXPIRING_SOON)}`)
    return judge(
      `API keys that end within seven days without a successor: ${ending}`,
      ending > 0 && 'list them with keys list, and make successors with keys rotate',
    )
  },

  async retention({ sql, config }) {
    const { days } = await readOne(sql<{ days: number }[]>`
      select coalesce(extract(epoch from now() - min(at)) / 86400, 0)::float8 as days
      from (select at from events order by id limit 1) as oldest`)
    return judge(
      `the oldest event is ${Math.floor(days)} days old, of at most ${config.RETENTION_DAYS}`,
      days > config.RETENTION_DAYS + 2 && 'start a worker: what is older is deleted by its passes',
    )
  },
}
