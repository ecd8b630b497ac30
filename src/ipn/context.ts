import type { Context } from '../context.ts'
import type { Inbox } from './inbox.ts'

export type IpnContext = Context & {
  /** Queues notifications for the next commit. */
  inbox: Inbox
}
