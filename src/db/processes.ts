import type { Config } from '../config/config.ts'
import { COMMIT, PACKAGE } from '../version.ts'
import type { Database } from './client.ts'

export const SEEN_EVERY_MS = 3_000
/** If two records of a process are further apart, the database did not accept writes in between (ms). */
export const WRITE_GAP_MS = 2 * SEEN_EVERY_MS
/** A process not seen for this long is dead or cannot write (ms). */
export const UNSEEN_MS = 12_000
export const WORKER_UNSEEN_MS = 30_000

export const NO_WORKER =
  'no worker has been seen for 30 s: notifications are stored, but nobody asks the gateway, sends refunds or delivers webhooks; start a process with ROLE=worker or ROLE=all'

/** A process; its id changes with every start. */
type ProcessContext = {
  db: Pick<Database, 'sql'>
  config: Pick<Config, 'ROLE'>
  lifecycle: { processId: string }
}

/**
 * Records that this process is alive, by the database's clock. If that goes back, `seen_at` stays ahead, so that
 * `followClock` sees it.
 */
export async function writeSeen({ db: { sql }, config, lifecycle }: ProcessContext): Promise<void> {
  await sql`
    insert into processes as p (id, role, version, commit)
    values (${lifecycle.processId}, ${config.ROLE}, ${PACKAGE.version}, ${COMMIT ?? null})
    on conflict (id) do update set seen_at = greatest(p.seen_at, excluded.seen_at), writing_since = case
      when excluded.seen_at - p.seen_at > ${WRITE_GAP_MS} * interval '1 millisecond'
        then excluded.seen_at else p.writing_since end`
}

/** Removes this process when it stops; it no longer holds any claim. */
export async function writeStopped({ db: { sql }, lifecycle }: ProcessContext): Promise<void> {
  await sql`delete from processes where id = ${lifecycle.processId}`
}

/** Returns how long ago a worker that has not stopped was seen, and how long this process can write (ms). */
export async function readAges({ db: { sql }, lifecycle }: ProcessContext) {
  const [row] = await sql<{ worker: number | null; own: number | null }[]>`
    select 1000 * extract(epoch from now() - max(seen_at) filter (where role <> 'web'))::float8 as worker,
      1000 * extract(epoch from now() - max(writing_since) filter (where id = ${lifecycle.processId}))::float8 as own
    from processes`
  return { worker: row?.worker ?? Number.POSITIVE_INFINITY, own: row?.own ?? 0 }
}
