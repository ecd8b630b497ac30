import type { FeedContext } from '../feed/context.ts'
import type { IpnContext } from '../ipn/context.ts'
import type { SyncContext } from '../sync/context.ts'
import type { TransactionsContext } from '../transactions/context.ts'
import type { EndedRefunds } from './count-ended-refunds.ts'
import type { Lifecycle } from './lifecycle.ts'

export type HealthContext = FeedContext &
  IpnContext &
  SyncContext &
  TransactionsContext & {
    /** Counts succeeded and failed refunds, for the metrics. */
    countEndedRefunds: () => Promise<EndedRefunds>
    lifecycle: Lifecycle
  }
