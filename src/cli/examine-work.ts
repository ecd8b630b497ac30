import { EVERY_MERCHANT, EXPIRING_SOON } from '../access/keys.ts'
import { NO_WORKER } from '../db/processes.ts'
import {
  LATE_MS,
  OUTAGE_MS,
  OVERLOOKED_MS,
  type Overview,
  rateProcesses,
  readOverview,
  WAITING,
} from '../health/overview.ts'
import { isUnendedSql } from '../refunds/lifecycle.ts'
import { type Examinations, formatSpan, judge, orFine, type Patient, readOne } from './diagnosis.ts'

/** The health page of the console reads the same. */
async function seeOverview({ sql }: Patient): Promise<Overview> {
  const rows = await sql<{ code: string }[]>`select merchant_code as code from merchant_accounts`
  const codes = rows.map(({ code }) => code)
  return await readOverview({ sql }, codes, [...codes, EVERY_MERCHANT])
}

/** How long something has waited by now (ms). */
const age = (since: string | null) => (since === null ? 0 : Date.now() - Date.parse(since))

const oldest = (ms: number) => (ms === 0 ? '' : `; the oldest is ${formatSpan(ms / 1000)} old`)

/** What is examined of the work that the database holds. */
export const OF_WORK: Examinations = {
  async processes(patient) {
    const { processes } = await seeOverview(patient)
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

  async backlog(patient) {
    const { due, lagMs } = await seeOverview(patient)
    const { waiting } = await readOne(patient.sql<{ waiting: number }[]>`
      select count(*)::int as waiting from (select from event_outbox limit 10000) as o`)
    return judge(
      `events that wait for the feed: ${waiting}, transactions due: ${due}${oldest(lagMs)}`,
      lagMs > LATE_MS && 'follow "When transactions are not queried" in docs/operations.md',
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

  async refunds(patient) {
    const { refunds } = await seeOverview(patient)
    const waiting = refunds.filter(({ status }) => WAITING.includes(status))
    const ms = Math.max(0, ...waiting.map(({ since }) => age(since)))
    const list = waiting.map(({ status, count }) => `${status} ${count}`).join(', ')
    return judge(
      `refunds that wait for a person or an outcome: ${list || 'none'}${oldest(ms)}`,
      ms > OVERLOOKED_MS &&
        'decide them under Waiting for you in the console; see "When a refund waits" in docs/operations.md',
    )
  },

  async discrepancies(patient) {
    const { all, since } = (await seeOverview(patient)).discrepancies
    return judge(
      `open disagreements with the gateway: ${all}${oldest(age(since))}`,
      age(since) > OVERLOOKED_MS &&
        'look at /console/discrepancies; see "When the sides disagree" in docs/operations.md',
    )
  },

  async webhooks(patient) {
    const { all, disabled, failing, since } = (await seeOverview(patient)).endpoints
    const longest = failing > 0 ? `, the longest for ${formatSpan(age(since) / 1000)}` : ''
    return judge(
      `webhook endpoints: ${all}, disabled: ${disabled}, failing: ${failing}${longest}`,
      (disabled > 0 || age(since) > OUTAGE_MS) &&
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
