import type { EventType } from './events.ts'
import type { CallOptions } from './options.ts'
import { type Listing, makeListing, type Page, type PageWish } from './pages.ts'
import { type Transport, writeSegment } from './transport.ts'

/** `types` left out means all that the key may read. */
export type WebhookWish = { url: string; types?: EventType[] | undefined }

/** The only answer that holds the secret, with which you check what arrives (Standard Webhooks). */
export type RegisteredWebhook = { id: string; url: string; types: string[]; secret: string }

/** An address of yours that events are sent to, and how it does. */
export type WebhookEndpoint = {
  id: string
  /** `*`: of every account. */
  merchantCode: string
  url: string
  types: string[]
  createdAt: string
  /** The first failure since it took one. */
  failingSince: string | null
  lastError: string | null
  disabledAt: string | null
  /** gone: it answered 410; failing: it took nothing for days. */
  disabledReason: 'gone' | 'failing' | null
  /** Events that wait for it. */
  pending: number
}

/** What came of a test event. */
export type WebhookTest = {
  delivered: boolean
  /** Of the receiver's answer, if there was one. */
  status: number | null
  durationMs: number
  error: string | null
}

export type WebhookEndpoints = {
  /** The secret is shown this once. */
  create(wish: WebhookWish, options?: CallOptions): Promise<RegisteredWebhook>
  /** Newest first. */
  list(wish?: PageWish, options?: CallOptions): Listing<WebhookEndpoint>
  delete(endpointId: string, options?: CallOptions): Promise<void>
  /** Has a signed test event sent there now. */
  test(endpointId: string, options?: CallOptions): Promise<WebhookTest>
  /** Goes on where it stopped, at once. */
  enable(endpointId: string, options?: CallOptions): Promise<WebhookEndpoint>
  /**
   * Sends everything after an event again, in order.
   * @param after the event's id, or `0`
   * @throws CursorExpiredError when events after it are not kept any more
   */
  replay(endpointId: string, after: string, options?: CallOptions): Promise<WebhookEndpoint>
}

const PATH = '/v1/webhook-endpoints'

/** The service itself waits so long for a receiver's answer to a test event, and a moment more (s). */
const TEST_S = 20

export function createWebhookEndpoints(transport: Transport): WebhookEndpoints {
  const locate = (id: string) => `${PATH}/${writeSegment('endpointId', id)}`
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
    test: (id, options) =>
      transport.ask({ method: 'POST', path: `${locate(id)}/test`, holdS: TEST_S }, options),
    enable: (id, options) =>
      transport.ask({ method: 'POST', path: `${locate(id)}/enable` }, options),
    replay: (id, after, options) =>
      transport.ask({ method: 'POST', path: `${locate(id)}/replay`, body: { after } }, options),
  }
}
