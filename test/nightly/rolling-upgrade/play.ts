import type { TestDatabase } from '../../support/database.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { audit, type Finding } from '../audit/audit.ts'
import { findRepeated, type Ledgers } from '../audit/ledgers.ts'
import { type Followers, followFeeds } from '../chaos/feed.ts'
import { DEFAULT_MODE, makeLedgerLag } from '../chaos/gateway-moves.ts'
import { type Load, startLoad } from '../chaos/load.ts'
import type { Member } from '../chaos/processes.ts'
import { type Receivers, startReceivers } from '../chaos/receiver.ts'
import { awaitRest } from '../chaos/run.ts'
import { countAcknowledged } from './refused.ts'
import type { Stage } from './stage.ts'

/** New customers per second, of one account or of both. */
const PER_S = 4
/** With so many requests in flight no further customer comes: what is refused then is not the upgrade's doing. */
const BUSY = 4
/** How long order systems wait for their answers, and everything may take to become idle (ms). */
const PATIENCE_MS = 25_000
const REST_MS = 60_000
const SERVED_WITHIN_MS = 120_000

/** Customers, order systems, readers of the feed and webhook receivers, which go on through all phases. */
export type Traffic = {
  load: Load
  followers: Followers
  receivers: Receivers
  stop(): Promise<void>
}

/** Starts the traffic of the chaos suite, without its faults. */
export async function startTraffic({ gateway, balancer }: Stage, seed: number): Promise<Traffic> {
  await gateway.send('POST', '/seed', { seed, transactions: 0 })
  await gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
  const receivers = await startReceivers(balancer.url)
  const followers = followFeeds(balancer.url)
  const lag = makeLedgerLag(gateway)
  const isBusy = () => balancer.countPending() > BUSY
  const load = startLoad({ seed, perS: PER_S, gateway, lag, apiUrl: balancer.url, isBusy })
  return {
    load,
    followers,
    receivers,
    async stop() {
      await load.finish(0)
      await followers.stop()
      await receivers.stop()
    },
  }
}

/** Sends requests to these processes, until each has acknowledged so many notifications in this phase. */
export async function serve(
  { balancer }: Stage,
  phase: string,
  members: readonly Member[],
  least: number,
): Promise<void> {
  balancer.begin(phase)
  balancer.pointTo(members)
  await untilServed(balancer, phase, members, least)
}

async function untilServed(
  { exchanges }: Stage['balancer'],
  phase: string,
  members: readonly Member[],
  least: number,
): Promise<void> {
  const isServed = () =>
    members.every(({ name }) => countAcknowledged(exchanges, phase, name) >= least)
  const what = `each process acknowledges ${least} notifications: ${phase}`
  await waitUntil(isServed, { what, everyMs: 50, timeoutMs: SERVED_WITHIN_MS })
}

/**
 * Migrates while the processes serve. Nothing that waits for the transactions before it, as the build of an index beside
 * writers does, ends before each process has acknowledged so many notifications.
 * @returns whether the migration was under way until then
 */
export async function migrateBeside(
  { balancer, database }: Stage,
  phase: string,
  members: readonly Member[],
  least: number,
  migrate: () => Promise<void>,
): Promise<boolean> {
  balancer.begin(phase)
  const release = await holdSnapshot(database)
  let isUnderWay = true
  const migrated = migrate().finally(() => {
    isUnderWay = false
  })
  try {
    const served = untilServed(balancer, phase, members, least)
    // A migration that fails ends the wait.
    await Promise.race([served, migrated.then(() => served)])
    return isUnderWay
  } finally {
    await release()
    await migrated
  }
}

/** Opens a transaction that has a snapshot, and holds no lock of a table. Returns how to end it. */
async function holdSnapshot({ sql }: TestDatabase): Promise<() => Promise<void>> {
  const session = await sql.reserve()
  await session`begin isolation level repeatable read`
  await session`select txid_current_snapshot()`
  return async () => {
    await session`commit`
    session.release()
  }
}

/** The status of each process's `/readyz`. */
export async function listReadiness(members: readonly Member[]): Promise<number[]> {
  return await Promise.all(members.map(async ({ url }) => (await fetch(`${url}/readyz`)).status))
}

/** What is wrong at rest, and the ledgers it was found in. */
export type Audited = {
  problems: Finding[]
  refusals: string[]
  doubled: string[]
  ledgers: Ledgers
}

/** Ends the traffic, waits until everything is idle, and audits it. */
export async function auditAtRest(
  { gateway, balancer, database }: Stage,
  { load, followers, receivers }: Traffic,
): Promise<Audited> {
  await load.finish(PATIENCE_MS)
  const sources = {
    ...{ load, followers, receivers, gateway, failed: [], setBack: undefined },
    ...{ databaseUrl: database.url, apiUrl: balancer.url },
  }
  const ledgers = await awaitRest(sources, performance.now(), REST_MS, console.info)
  // Nothing ended without its answer, so no webhook had to be repeated.
  const doubled = findRepeated(receivers.taken.map(({ event }) => event.id))
  return { problems: audit(ledgers), refusals: load.log.refusals, doubled, ledgers }
}
