import type { LimitFunction } from 'p-limit'
import type { KnownKeys } from './access/known-keys.ts'
import type { CardCache } from './cards/cache.ts'
import type { Config } from './config.ts'
import type { Database } from './db/client.ts'
import type { FeedPage } from './feed/read.ts'
import type { Breakers } from './gateway/breakers.ts'
import type { CardGateway } from './gateway/cards.ts'
import type { GatewayClient } from './gateway/client.ts'
import type { Group } from './group.ts'
import type { Streams } from './http/streams.ts'
import type { Waiters } from './http/wait.ts'
import type { Inbox } from './ipn/inbox.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { EndedRefunds } from './refunds/count.ts'
import type { Sealer } from './seal.ts'
import type { Slots } from './slots.ts'
import type { Answered } from './sync/lease.ts'
import type { Ending } from './sync/settle.ts'
import type { Tracing } from './trace.ts'
import type { TransactionWithPayments, Wanted } from './transactions/find.ts'
import type { Sender } from './webhooks/send.ts'

/** What every part of the service works with. A function that takes it talks to the database or the gateway. */
export type Context = {
  config: Config
  log: Log
  metrics: Metrics
  tracing: Tracing
  sql: Database['sql']
  db: Database['db']
  gateway: GatewayClient
  /** The gateway's card operations, with their tokens. */
  cards: CardGateway
  cardCache: CardCache
  /** Calls the receivers of webhooks. */
  webhooks: Sender
  /** Which calls pause, because the gateway does not answer them. */
  breakers: Breakers
  /** Transactions this process may work on at once: each makes one call to the gateway at a time. */
  slots: Slots
  /** Answers that are settled in shared commits. */
  settling: Group<Answered, Ending>
  /** Encrypts what must not be readable in the database. */
  sealer: Sealer
  inbox: Inbox
  keys: KnownKeys
  /** Look-ups that come while one is on its way share the next: a statement for all of them. */
  lookUps: { transactions: Group<Wanted, TransactionWithPayments[]> }
  /** How many refunds have ended, for the metrics. */
  countEndedRefunds: () => Promise<EndedRefunds>
  /** Readers that wait for a transaction to change. */
  waiters: Waiters<TransactionWithPayments>
  /** Readers and streams that wait for the feed to go on, by the cursor they stand at. */
  followers: Waiters<FeedPage>
  /** Reads of the feed wait here for their turn: the other connections are for who cannot wait. */
  feedReads: LimitFunction
  /** Streams that are open, and what bounds them. */
  streams: Streams
  /** Every merchant account ever configured: what a key for all of them may read. */
  merchants: readonly string[]
  /** The process stops: no new work, waiting readers are answered. */
  stopping: AbortSignal
  /** The time for stopping is nearly over: calls in flight are broken off and handed back. */
  givingUp: AbortSignal
  /** Only for what people are shown: schedules and leases use the database's clock. */
  now: () => Date
}
