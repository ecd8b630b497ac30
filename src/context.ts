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

/** The life of a process. */
export type Lifecycle = {
  /** New with every start: the owner of this process's claims. */
  processId: string
  /** Only while it is `ready` does `/readyz` ask for requests; what reaches it before or after is served all the same. */
  phase: 'starting' | 'ready' | 'stopping'
  /** Aborted when the process stops: accept no new work, and answer waiting readers. */
  stopping: AbortSignal
  /** Aborted when the grace period for stopping is nearly over: abort calls in flight and release their claims. */
  givingUp: AbortSignal
}

/**
 * The shared state of a process. A function that takes it, or part of it, opens its own database transaction or
 * calls the gateway. A folder with state of its own extends this type.
 */
export type Context = {
  config: Config
  log: Log
  metrics: Metrics
  tracing: Tracing
  db: Pick<Database, 'sql' | 'drizzle'> & {
    /** For look-ups of keys and reads by id: a session that never waits for a commit, as all others may for a standby. */
    lookups: ReadDatabase
    /** For lists, searches and exports: everything that is neither a write nor a look-up by key. */
    reads: Reads
  }
  gateway: Omit<GatewayClient, 'close'> & Pick<CardGateway, 'readCards'> & { breakers: Breakers }
  encryption: DataKeys
  access: {
    keys: KeyCache
    /** Remembers when and from where API keys were last used. */
    uses: KeyUses
    limits: KeyLimits
    /** Every merchant account ever configured: the accounts that a key for all may read. */
    merchants: readonly string[]
  }
  lifecycle: Lifecycle
  /** Only for times shown to people: schedules and leases use the database's clock. */
  now: () => Date
}
