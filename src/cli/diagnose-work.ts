import { EXPIRING_SOON } from '../access/keys.ts'
import { NO_WORKER, UNSEEN_MS } from '../db/processes.ts'
import { isUnendedSql } from '../refunds/lifecycle.ts'
import {
  count,
  type Examination,
  fail,
  formatSpan,
  info,
  type Patient,
  readOne,
  warn,
} from './diagnosis.ts'

/** What is examined of the work that the database holds, in this order. None of it changes a row. */
export const OF_WORK: Readonly<Record<string, Examination>> = {
  processes: examineProcesses,
  backlog: examineBacklog,
  claims: examineClaims,
  refunds: examineRefunds,
  discrepancies: examineDiscrepancies,
  webhooks: examineWebhooks,
  accounts: examineAccounts,
  keys: examineKeys,
  retention: examineRetention,
}

async function examineProcesses({ sql }: Patient) {
  const rows = await sql<{ role: string; version: string; commit: string | null; count: number }[]>`
    select role, version, commit, count(*)::int as count from processes
    where seen_at > now() - ${UNSEEN_MS} * interval '1 millisecond' group by 1, 2, 3 order by 1, 2`
  const list = rows.map(({ role, version, count }) => `${count} × ${role} ${version}`).join(', ')
  if (rows.length === 0) {
    return warn(
      'no process of the service is running',
      'start one: npm start, or node dist/main.js',
    )
  }
  if (rows.every(({ role }) => role === 'web'))
    return fail(`${list}: no worker is running`, NO_WORKER)
  if (new Set(rows.map(({ version, commit }) => `${version} ${commit}`)).size > 1) {
    return warn(`processes of several versions are running: ${list}`, 'complete the upgrade')
  }
  return info(`running: ${list}`)
}

/** A transaction is asked about within a second; the oldest of a backlog has waited for longer than this (s). */
const LATE_S = 60

async function examineBacklog({ sql }: Patient) {
  const { due, seconds, waiting } = await readOne(sql<
    { due: number; seconds: number; waiting: number }[]
  >`
    select count(*)::int as due, coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as seconds,
      (select count(*) from (select from event_outbox limit 10000) as o)::int as waiting
    from transactions where due_at <= now()`)
  const found = `${count(due, 'transaction is', 'transactions are')} due, ${count(waiting, 'event waits', 'events wait')} for the feed`
  if (seconds <= LATE_S) return info(found)
  return warn(
    `${found}; the oldest has waited for ${formatSpan(seconds)}`,
    'follow "When transactions are not queried" in docs/operations.md',
  )
}

async function examineClaims({ sql }: Patient) {
  const { dead } = await readOne(sql<{ dead: number }[]>`
    select count(*)::int as dead from transactions as t
    where t.due_at is not null and t.lease_owner is not null and not exists (
      select from processes as p where p.id = t.lease_owner and p.seen_at > now() - interval '1 minute')`)
  if (dead === 0) return info('no claim is left of a process that ended')
  return warn(
    `${count(dead, 'transaction is', 'transactions are')} still claimed by processes that ended more than a minute ago`,
    'start a worker if none is running; those with an open refund are taken over when their claim ends by itself',
  )
}

/** What waits for a person longer than this has been overlooked. */
const OVERLOOKED_S = 86_400

async function examineRefunds({ sql }: Patient) {
  const { review, unknown, seconds } = await readOne(sql<
    { review: number; unknown: number; seconds: number }[]
  >`
    select count(*) filter (where status = 'needs_review')::int as review,
      count(*) filter (where status = 'unknown')::int as unknown,
      coalesce(extract(epoch from now() - min(requested_at)), 0)::float8 as seconds
    from refunds where status in ('needs_review', 'unknown')`)
  const found = `${count(review, 'refund needs', 'refunds need')} a decision, ${count(unknown, 'has', 'have')} no known outcome`
  if (seconds <= OVERLOOKED_S) return info(found)
  return warn(
    `${found}; the oldest was requested ${formatSpan(seconds)} ago`,
    'decide them under Waiting for you in the console; see "When a refund waits" in docs/operations.md',
  )
}

async function examineDiscrepancies({ sql }: Patient) {
  const { open, seconds } = await readOne(sql<{ open: number; seconds: number }[]>`
    select count(*)::int as open, coalesce(extract(epoch from now() - min(at)), 0)::float8 as seconds
    from discrepancies where resolved_at is null and over_at is null`)
  const found = `${count(open, 'disagreement', 'disagreements')} with the gateway ${open === 1 ? 'is' : 'are'} open`
  if (seconds <= OVERLOOKED_S) return info(found)
  return warn(
    `${found}; the oldest is ${formatSpan(seconds)} old`,
    'look at /console/discrepancies; see "When the sides disagree" in docs/operations.md',
  )
}

async function examineWebhooks({ sql }: Patient) {
  const { all, disabled, failing, seconds } = await readOne(sql<
    { all: number; disabled: number; failing: number; seconds: number }[]
  >`
    select count(*)::int as all, count(disabled_at)::int as disabled,
      count(*) filter (where disabled_at is null and failing_since < now() - interval '10 minutes')::int as failing,
      coalesce(extract(epoch from now() - min(failing_since) filter (where disabled_at is null)), 0)::float8 as seconds
    from webhook_endpoints`)
  const found = `${count(all, 'webhook endpoint')}, ${disabled} disabled, ${failing} without a success for ten minutes`
  if (disabled + failing === 0) return info(found)
  const since = failing > 0 ? `; the longest for ${formatSpan(seconds)}` : ''
  return warn(
    found + since,
    'mend the receiver, then POST /v1/webhook-endpoints/{id}/enable and …/replay; see "Webhooks" in docs/operations.md',
  )
}

async function examineAccounts({ sql, config }: Patient) {
  const codes = config.accounts.map(({ merchantCode }) => merchantCode)
  const rows = await sql<{ code: string; due: boolean; refunds: boolean }[]>`
    select * from (
      select m.merchant_code as code,
        exists (select from transactions as t where t.merchant_code = m.merchant_code and t.due_at is not null) as due,
        exists (select from refunds as r where r.merchant_code = m.merchant_code and ${sql.unsafe(isUnendedSql('r'))}) as refunds
      from merchant_accounts as m where m.merchant_code <> all (${codes})) as gone
    where due or refunds`
  if (rows.length === 0) return info(`${count(codes.length, 'account')} in the settings`)
  return rows.flatMap(({ code, refunds }) =>
    warn(
      `the account ${code} is no longer in the settings, and ${refunds ? 'refunds' : 'transactions'} of it wait for the gateway's answer`,
      'put it back until they have ended; see "An account that leaves" in docs/operations.md',
    ),
  )
}

async function examineKeys({ sql }: Patient) {
  const { ending } = await readOne(sql<{ ending: number }[]>`
    select count(*)::int as ending from actors as k where ${sql.unsafe(EXPIRING_SOON)}`)
  if (ending === 0) return info('no API key ends within seven days without a successor')
  return warn(
    `${count(ending, 'API key ends', 'API keys end')} within seven days, and no other replaces it`,
    'list them with keys list, and make successors with keys rotate',
  )
}

async function examineRetention({ sql, config }: Patient) {
  const { days } = await readOne(sql<{ days: number }[]>`
    select coalesce(extract(epoch from now() - min(at)) / 86400, 0)::float8 as days
    from (select at from events order by id limit 1) as oldest`)
  const found = `the oldest event is ${count(Math.floor(days), 'day')} old, of at most ${config.RETENTION_DAYS}`
  if (days <= config.RETENTION_DAYS + 2) return info(found)
  return warn(found, 'start a worker: what is older is deleted by its passes')
}
