import type { KeyLimits, KeyUses } from './access/key-use.ts'
import type { KeyCache } from './access/keys.ts'
import type { Config } from './config/config.ts'
import type { Database } from './db/client.ts'
import type { DataKeys } from './db/data-keys.ts'
import type { ReadDatabase, Reads } from './db/reads.ts'
import type { Breakers } from './gateway/breakers.ts'
import type { CardGateway } from './gateway/cards.ts'
import type { GatewayClient } from './gateway/client.ts'
import type { Metrics } from './metrics.ts'
import type { Log } from './platform/telemetry/log.ts'
import type { Tracing } from './platform/telemetry/tracing.ts'

export type Lifecycle = {
  /** The owner of this process's claims; new with every start. */
  processId: string
  /** `/readyz` is 200 only while it is `ready`, but requests before and after are served all the same. */
  phase: 'starting' | 'ready' | 'stopping'
  /** What the log and `/readyz` of a process that only serves HTTP say about workers. */
  isWithoutWorker: boolean
  /** Aborted when the process stops: no new work is accepted, and waiting readers are answered. */
  stopping: AbortSignal
  /** Aborted when the grace period is nearly over: calls in flight are aborted and their claims released. */
  givingUp: AbortSignal
}

/**
 * The shared state of a process. A function that takes it, or part of it, opens database transactions of its own or
 * calls the gateway. A folder with state of its own extends this type.
 */
export type Context = {
  config: Config
  log: Log
  metrics: Metrics
  tracing: Tracing
  db: Pick<Database, 'sql' | 'drizzle'> & {
    /** For look-ups of keys and reads by id: its session never waits for a commit, as others may wait for a standby. */
    lookups: ReadDatabase
    /** For lists, searches and exports. */
    reads: Reads
  }
  gateway: Omit<GatewayClient, 'close'> & Pick<CardGateway, 'readCards'> & { breakers: Breakers }
  encryption: DataKeys
  access: {
    keys: KeyCache
    uses: KeyUses
    limits: KeyLimits
    /** Every account that was ever configured: what a key for all accounts may read. */
    merchants: readonly string[]
  }
  lifecycle: Lifecycle
  /** Only for times that people see: schedules and leases use the database's clock. */
  now: () => Date
}
