import type { FeedContext } from '../feed/context.ts'
import type { HealthContext } from '../health/gauges.ts'
import type { IpnContext } from '../ipn/inbox.ts'
import type { SyncContext } from '../sync/types.ts'
import type { TransactionsContext } from '../transactions/types.ts'
import type { WebhooksContext } from '../webhooks/send.ts'

/** The state that the pages need: that of the folders whose functions they call. */
export type ConsoleContext = FeedContext &
  HealthContext &
  IpnContext &
  SyncContext &
  TransactionsContext &
  WebhooksContext
