import type { Config } from '../config/config.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { COMMIT, PACKAGE } from '../version.ts'
import type { Database } from './client.ts'

/** How often a process writes that it lives (ms). */
export const SEEN_EVERY_MS = 3_000
/** Longer between two of its writes, and the database did not take writes in between (ms). */
export const WRITE_GAP_MS = 2 * SEEN_EVERY_MS
/** A process unseen for so long is dead, or cannot write (ms). */
export const UNSEEN_MS = 12_000
/** Without a worker for so long, somebody should know (ms). */
const WORKER_UNSEEN_MS = 30_000

/** What a process without workers says, in its log and to whoever asks for its health. */
export const NO_WORKER =
  'no worker has been seen for 30 s: notifications are stored, but nobody asks the gateway, sends refunds or delivers webhooks; start a process with ROLE=worker or ROLE=all'

/** A process, for the database; its id is new with every start. */
export type ProcessContext = {
  db: Pick<Database, 'sql'>
  config: Pick<Config, 'ROLE'>
  lifecycle: { processId: string }
}

/** Writes that this process lives, by the clock of the database. */
export async function writeSeen({ db: { sql }, config, lifecycle }: ProcessContext): Promise<void> {
  await sql`
    insert into processes as p (id, role, version, commit)
    values (${lifecycle.processId}, ${config.ROLE}, ${PACKAGE.version}, ${COMMIT ?? null})
    on conflict (id) do update set seen_at = excluded.seen_at, writing_since = case
      when excluded.seen_at - p.seen_at > ${WRITE_GAP_MS} * interval '1 millisecond'
        then excluded.seen_at else p.writing_since end`
}

/** Forgets this process: it stops, and holds no claim any more. */
export async function writeStopped({ db: { sql }, lifecycle }: ProcessContext): Promise<void> {
  await sql`delete from processes where id = ${lifecycle.processId}`
}

/** Whether a process lives that asks the gateway. */
export async function hasWorker(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ has: boolean }[]>`
    select exists (
      select from processes
      where role <> 'web' and seen_at > now() - ${UNSEEN_MS} * interval '1 millisecond') as has`
  return row?.has === true
}

/** Whether no worker has been seen for a while, and this process has been running all that time. */
export async function isWithoutWorker({ db, lifecycle }: ProcessContext): Promise<boolean> {
  const [row] = await db.sql<{ isWithout: boolean }[]>`
    select not exists (
        select from processes
        where role <> 'web' and seen_at > now() - ${WORKER_UNSEEN_MS} * interval '1 millisecond')
      and exists (
        select from processes where id = ${lifecycle.processId}
          and started_at <= now() - ${WORKER_UNSEEN_MS} * interval '1 millisecond') as "isWithout"`
  return row?.isWithout === true
}
