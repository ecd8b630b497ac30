import type { HttpBindings } from '@hono/node-server'
import type { Context as HttpContext } from 'hono'
import type { Access } from '../access/types.ts'
import type { FeedContext } from '../feed/open-stream.ts'
import type { HealthContext } from '../health/gauges.ts'
import type { HttpEnv } from '../http/problems.ts'
import type { IpnContext } from '../ipn/inbox.ts'
import type { SyncContext } from '../sync/types.ts'
import type { TransactionsContext } from '../transactions/types.ts'
import type { WebhooksContext } from '../webhooks/send.ts'

export type ConsoleEnv = {
  Bindings: HttpBindings
  Variables: HttpEnv['Variables'] & {
    access: Access
    /** Whether the person may still do what the request was allowed for. Long answers ask again. */
    isStillAllowed: () => Promise<boolean>
    form: FormFields | undefined
  }
}

/** The fields of a form by name, with the last value of a repeated one. */
export type FormFields = Readonly<Record<string, string>>

export type ConsoleRequest = HttpContext<ConsoleEnv>

export type ConsoleContext = FeedContext &
  HealthContext &
  IpnContext &
  SyncContext &
  TransactionsContext &
  WebhooksContext
