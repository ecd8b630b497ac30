import type { Context } from '../context.ts'
import type { WebhookSender } from './sender.ts'

export type WebhooksContext = Context & {
  /** Sends events to webhook endpoints. */
  webhooks: WebhookSender
}
