import type { Database, Server } from './database.ts'
import { type Load, startLoad } from './load-client.ts'
import { type Started, startBaseline, startGateway, startService } from './processes.ts'

/** A gateway across the town: what its calls take where that matters (ms). */
export const GATEWAY_MS = 20

/** How long it measures. */
export type Effort = {
  rounds: number
  roundMs: number
  /** Transactions of a round of the sync, and refunds of a round. */
  synced: number
  refunded: number
  /** Notifications of each part of the memory's measure. */
  notified: number
}

/** Everything that is measured, or measured against, as processes of their own on one Postgres. */
export type Stage = {
  effort: Effort
  /** The folder where processes of the service leave CPU profiles. */
  profiles: string | undefined
  server: Server
  /** The service's database and the baselines', on the same server. */
  database: Database
  beside: Database
  load: Load
  /** Gateways that answer at once, and after `GATEWAY_MS`. */
  gateway: Started
  slowGateway: Started
  /** The service with `ROLE=web`. */
  web: Started
  bare: Started
  naive: Started
  batched: Started
  stop(): Promise<void>
}

export async function startStage(
  server: Server,
  beside: Database,
  effort: Effort,
  profiles: string | undefined,
): Promise<Stage> {
  const started: Started[] = []
  const keep = async (starting: Promise<Started>) => {
    const one = await starting
    started.push(one)
    return one
  }
  const load = startLoad()
  const stop = async () => {
    load.stop()
    await Promise.all(started.map((one) => one.stop()))
  }
  try {
    const gateway = await keep(startGateway(0))
    const baseline = (name: string) => keep(startBaseline(name, beside.url, gateway.url))
    return {
      effort,
      profiles,
      server,
      database: server.main,
      beside,
      load,
      gateway,
      slowGateway: await keep(startGateway(GATEWAY_MS)),
      web: await keep(startService(server.main.url, gateway.url, 'web', profiles)),
      bare: await baseline('bare'),
      naive: await baseline('naive'),
      batched: await baseline('batched'),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** What earlier measures left due is not in the figures of the next. */
export async function settleAll({ database, beside }: Stage): Promise<void> {
  await database.sql`
    update transactions set due_at = null, lease_id = null, claimed = want where due_at is not null`
  await beside.sql`update transactions set due_at = null, lease_id = null where due_at is not null`
  for (const { sql } of [database, beside]) {
    // No life has such an update; clearing up behind it would run into what is measured next.
    await sql`vacuum analyze transactions`
    await sql`checkpoint`
  }
}
