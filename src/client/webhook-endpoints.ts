import type { EventType } from './events.ts'
import type { CallOptions } from './options.ts'
import { type Listing, makeListing, type Page, type PageWish } from './pages.ts'
import { type Transport, writeSegment } from './transport.ts'

/** An address of yours that events are delivered to (Standard Webhooks). */
export type WebhookEndpoint = { id: string; url: string; types: EventType[] }

export type WebhookEndpoints = {
  /** `types` left out means all that the key may read. The secret is shown this once. */
  create(
    wish: { url: string; types?: readonly EventType[] | undefined },
    options?: CallOptions,
  ): Promise<WebhookEndpoint & { secret: string }>
  list(wish?: PageWish, options?: CallOptions): Listing<WebhookEndpoint>
  delete(id: string, options?: CallOptions): Promise<void>
  /** Has a delivery made now. */
  test(id: string, options?: CallOptions): Promise<void>
  /** Revives one that was disabled. */
  enable(id: string, options?: CallOptions): Promise<void>
  /** Delivers again what came after a cursor of the feed. */
  replay(id: string, after: string, options?: CallOptions): Promise<void>
}

const PATH = '/v1/webhook-endpoints'

export function createWebhookEndpoints(transport: Transport): WebhookEndpoints {
  const locate = (id: string) => `${PATH}/${writeSegment('id', id)}`
  const post = async (path: string, body: object, options?: CallOptions) => {
    await transport.call({ method: 'POST', path, body }, options)
  }
  return {
    create: (body, options) => transport.ask({ method: 'POST', path: PATH, body }, options),
    list: ({ cursor: from, ...wish } = {}, options) =>
      makeListing((cursor) => {
        const query = { ...wish, cursor }
        return transport.ask<Page<WebhookEndpoint>>({ path: PATH, query }, options)
      }, from),
    delete: async (id, options) => {
      await transport.call({ method: 'DELETE', path: locate(id) }, options)
    },
    test: (id, options) => post(`${locate(id)}/test`, {}, options),
    enable: (id, options) => post(`${locate(id)}/enable`, {}, options),
    replay: (id, after, options) => post(`${locate(id)}/replay`, { after }, options),
  }
}
