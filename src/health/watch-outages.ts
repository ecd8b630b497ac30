import postgres from 'postgres'
import type { Context } from '../context.ts'
import type { Operation } from '../gateway/breakers.ts'
import { TimeoutError } from '../platform/concurrency/timing.ts'
import { startWorkerLoop, type WorkerLoop } from '../platform/concurrency/worker-loop.ts'
import { BACKLOG, DISK, describeOutage } from '../platform/postgres/describe-outage.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { type Condition, noteOutage, openOutageLog } from '../platform/telemetry/outage-log.ts'

const WATCH_EVERY_MS = 1_000
/** An outage has ended once a commit succeeds and nothing has failed for this long (ms). */
const QUIET_MS = 5_000

/**
 * Watches the outages that this process meets. One of the database lasts from the first error until a write succeeds,
 * one of the gateway as long as calls are paused.
 */
export function watchOutages({ db, log, gateway, lifecycle, config }: Context): WorkerLoop {
  const here = { isEmbedded: config.DATABASE_URL === undefined, isWorker: config.ROLE === 'worker' }
  const outages = openOutageLog(log, (error) => classifyOutage(error, outages.list(), here))
  let probing = false

  async function probe(): Promise<void> {
    probing = true
    try {
      await proveWrites(db.sql)
      await commitNothing(db.sql)
      const ended = outages.list().filter((one) => !isOfGateway(one) && one.quietMs >= QUIET_MS)
      for (const { name } of ended) outages.end(name)
    } catch (error) {
      noteOutage(log, error, 'probes')
    } finally {
      probing = false
    }
  }

  function watchGateway(): void {
    const conditions = gateway.breakers.listPaused().map(({ merchantCode, operation }) => ({
      ...describePause(merchantCode, operation),
      code: gateway.breakers.of(merchantCode, operation).failure(),
    }))
    for (const condition of conditions) outages.note(condition)
    const names = conditions.map(({ name }) => name)
    const ended = outages.list().filter((one) => isOfGateway(one) && !names.includes(one.name))
    for (const { name } of ended) outages.end(name)
  }

  return startWorkerLoop({
    name: 'outages',
    log,
    stopping: lifecycle.stopping,
    begin: async () => {
      watchGateway()
      // A commit may wait for a standby forever, so only one probe runs at a time, and nothing waits for it.
      if (!probing && outages.list().some((one) => !isOfGateway(one))) void probe()
      outages.remind()
      return { count: 0, finished: Promise.resolve() }
    },
    idleMs: () => Promise.resolve(WATCH_EVERY_MS),
  })
}

/**
 * Fails if the database cannot write. A read-only server refuses an update even of no row, and the pool then opens
 * its sessions anew. A server whose disk is full accepts it and commits as long as its log has room. So the rows of a
 * count also spill into a temporary file of 280 kB, more than is left where a table cannot grow.
 * @throws database errors
 */
export async function proveWrites(sql: Sql): Promise<void> {
  const proof = sql.unsafe(
    `update merchant_accounts set hold = hold where false;
    set local work_mem = '64kB'; set local temp_tablespaces = '';
    select count(*) from generate_series(1, 20000)`,
  )
  await proof.catch((error: unknown) => {
    // configuration_limit_exceeded: `temp_file_limit` cut the file off, so the disk has room.
    if (!(error instanceof postgres.PostgresError && error.code === '53400')) throw error
  })
}

/** Commits only a transaction id: the server writes and flushes its log, and waits for its standby. */
async function commitNothing(sql: Sql): Promise<void> {
  await sql`select pg_current_xact_id()`
}

/**
 * A database that cannot be used is also late, which is not a second condition.
 * @param here whether the server is the embedded one, and this process serves neither requests nor notifications
 */
export function classifyOutage(
  error: unknown,
  lasting: readonly Condition[],
  here = { isEmbedded: false, isWorker: false },
): Condition | undefined {
  const found =
    describeOutage(error) ?? (error instanceof TimeoutError ? { ...BACKLOG } : undefined)
  if (found && here.isWorker) found.meanwhile = 'background work waits'
  if (found?.name === 'database' && here.isEmbedded)
    found.look =
      'what this log says of the database server; if it has stopped, restart this process'
  if (found?.name === 'database' && lasting.some(({ name }) => name === DISK))
    found.what += ', after its disk was full'
  if (found?.name !== BACKLOG.name)
    return found && { ...found, replaces: [BACKLOG.name, ...(found.replaces ?? [])] }
  const cause = lasting.find((one) => !isOfGateway(one) && one.name !== BACKLOG.name)
  // Only the server knows that its disk is full: it is also late once there is room again.
  return cause ? { ...cause, isSign: cause.name !== DISK } : found
}

const GATEWAY = 'gateway'

const isOfGateway = ({ name }: { name: string }) => name.startsWith(GATEWAY)

/** Before each refund its transaction is queried, so neither goes on without queries. */
const WAITS: Readonly<Record<Operation, string>> = {
  query: 'notifications are stored, payments keep their state, and no refund is sent',
  refund: 'notifications are stored, and no refund is sent',
  cards: 'card reads get 503',
}

export function describePause(merchantCode: string, operation: Operation): Condition {
  return {
    name: `${GATEWAY} ${operation} ${merchantCode}`,
    what: `the gateway does not answer calls of account ${merchantCode} (${operation})`,
    meanwhile: `they are paused for up to 30 s at a time; meanwhile ${WAITS[operation]}`,
    look: 'GATEWAY_BASE_URL, the network to it, and whether the gateway reports a disturbance',
  }
}
