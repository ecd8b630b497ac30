import { EVERY_MERCHANT, EXPIRING_SOON } from '../access/keys.ts'
import type { Config } from '../config/config.ts'
import { NO_WORKER } from '../db/processes.ts'
import { isUnendedSql } from '../db/schema.ts'
import {
  isWaiting,
  LATE_MS,
  OUTAGE_MS,
  OVERLOOKED_MS,
  type Overview,
  rateProcesses,
  readOverview,
  readProcesses,
} from '../health/overview.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { listMerchants } from './database.ts'
import { type Examinations, formatSpan, judge, orFine, readOne } from './diagnosis.ts'

/** Reads all accounts as the console's health page reads those of a person. */
export async function readWork(sql: Sql, config: Config): Promise<Overview> {
  const codes = await listMerchants(sql)
  return await readOverview(sql, config, codes, [...codes, EVERY_MERCHANT])
}

/** How long something has waited (ms). */
const age = ({ at }: Overview, since: string | null) =>
  since === null ? 0 : Date.parse(at) - Date.parse(since)

const oldest = (ms: number) => (ms === 0 ? '' : `; the oldest is ${formatSpan(ms / 1000)} old`)

/** Examinations of the work that the database holds. */
export const OF_WORK: Examinations = {
  async processes({ sql }) {
    const processes = await readProcesses(sql)
    const { hasWorker, isMixed } = rateProcesses(processes)
    if (processes.length === 0) {
      const action = 'start one: npm start, or node dist/main.js'
      return judge('no process of the service is running', action)
    }
    const list = processes.map(({ role, version }) => `${role} ${version}`).join(', ')
    return hasWorker
      ? judge(`running: ${list}`, isMixed && 'complete the upgrade')
      : judge(`${list}: no worker is running`, NO_WORKER, 'error')
  },

  async backlog({ sql, readWork }) {
    const { due, lagMs } = await readWork()
    const { waiting } = await readOne(sql<{ waiting: number }[]>`
      select count(*)::int as waiting from (select from event_outbox limit 10000) as o`)
    return judge(
      `events that wait for the feed: ${waiting}, transactions due: ${due}${oldest(lagMs)}`,
      lagMs > LATE_MS && 'follow "When transactions are not queried" in docs/operations.md',
    )
  },

  async claims({ sql }) {
    const { dead } = await readOne(sql<{ dead: number }[]>`
      select count(*)::int as dead from transactions as t
      where t.due_at is not null and t.lease_id is not null and t.lease_owner is not null and not exists (
        select from processes as p where p.id = t.lease_owner and p.seen_at > now() - interval '1 minute')`)
    return judge(
      `claims of processes that ended more than a minute ago: ${dead}`,
      dead > 0 &&
        'start a worker if none is running; those with an open refund are taken over when their claim ends by itself',
    )
  },

  async refunds({ readWork }) {
    const work = await readWork()
    const waiting = work.refunds.filter(isWaiting)
    const ms = Math.max(0, ...waiting.map(({ since }) => age(work, since)))
    const list = waiting.map(({ status, count }) => `${status} ${count}`).join(', ')
    return judge(
      `refunds that wait for a person or an outcome: ${list || 'none'}${oldest(ms)}`,
      ms > OVERLOOKED_MS &&
        'decide them under Waiting for you in the console; see "When a refund waits" in docs/operations.md',
    )
  },

  async discrepancies({ readWork }) {
    const work = await readWork()
    const all = work.discrepancies.reduce((sum, { count }) => sum + count, 0)
    const ms = Math.max(0, ...work.discrepancies.map(({ since }) => age(work, since)))
    return judge(
      `open disagreements with the gateway: ${all}${oldest(ms)}`,
      ms > OVERLOOKED_MS &&
        'look at /console/discrepancies; see "When the sides disagree" in docs/operations.md',
    )
  },

  async webhooks({ readWork }) {
    const work = await readWork()
    const { all, disabled, failing, since } = work.endpoints
    const ms = age(work, since)
    const longest = failing > 0 ? `, the longest for ${formatSpan(ms / 1000)}` : ''
    return judge(
      `webhook endpoints: ${all}, disabled: ${disabled}, failing: ${failing}${longest}`,
      (disabled > 0 || ms > OUTAGE_MS) &&
        'mend the receiver, or where its key ended use another, then POST /v1/webhook-endpoints/{id}/enable and …/replay; see "Webhooks" in docs/operations.md',
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
