import type { EventType } from './events.ts'
import { type Listing, listRoute, type PageWish } from './listing.ts'
import type { CallOptions } from './options.ts'
import { type Transport, writeSegment } from './transport.ts'

/** An endpoint to register. `types` defaults to all types the key may read. */
export type WebhookWish = { url: string; types?: EventType[] | undefined }

/** A new endpoint. Its secret verifies the deliveries (Standard Webhooks) and is returned only once. */
export type RegisteredWebhook = { id: string; url: string; types: string[]; secret: string }

/** A URL to which events are sent, and the state of its deliveries. */
export type WebhookEndpoint = {
  id: string
  /** `*` for all accounts. */
  merchantCode: string
  url: string
  types: string[]
  createdAt: string
  /** The first failure since the last successful delivery. */
  failingSince: string | null
  lastError: string | null
  disabledAt: string | null
  /** `gone`: it answered 410; `failing`: all deliveries failed for days. */
  disabledReason: 'gone' | 'failing' | null
  /** Number of events waiting to be delivered. */
  pending: number
}

/** The outcome of a test event. */
export type WebhookTest = {
  delivered: boolean
  /** HTTP status of the endpoint's response, if any. */
  status: number | null
  durationMs: number
  error: string | null
}

export type WebhookEndpoints = {
  /** Registers an endpoint. Its secret is returned only once. */
  create(endpoint: WebhookWish, options?: CallOptions): Promise<RegisteredWebhook>
  /** Lists endpoints, newest first. */
  list(page?: PageWish, options?: CallOptions): Listing<WebhookEndpoint>
  /** Deletes an endpoint. */
  delete(endpointId: string, options?: CallOptions): Promise<void>
  /** Sends a signed test event to the endpoint immediately. */
  test(endpointId: string, options?: CallOptions): Promise<WebhookTest>
  /** Enables the endpoint; its deliveries resume immediately where they stopped. */
  enable(endpointId: string, options?: CallOptions): Promise<WebhookEndpoint>
  /**
   * Sends all events after an event again, in order.
   * @param after the event's id, or `0`
   * @throws CursorExpiredError if events after it have been deleted
   */
  replay(endpointId: string, after: string, options?: CallOptions): Promise<WebhookEndpoint>
}

const PATH = '/v1/webhook-endpoints'

/** How long the service waits for the endpoint's response to a test event, plus a margin (s). */
const TEST_HOLD_S = 20

/** Creates the methods of `client.webhookEndpoints`. */
export function createWebhookEndpoints(transport: Transport): WebhookEndpoints {
  const locate = (id: string) => `${PATH}/${writeSegment('endpointId', id)}`
  return {
    create: (body, options) => transport.request({ method: 'POST', path: PATH, body }, options),
    list: (page = {}, options) => listRoute<WebhookEndpoint>(transport, PATH, page, options),
    delete: async (id, options) => {
      await transport.send({ method: 'DELETE', path: locate(id) }, options)
    },
    test: (id, options) =>
      transport.request(
        { method: 'POST', path: `${locate(id)}/test`, holdS: TEST_HOLD_S },
        options,
      ),
    enable: (id, options) =>
      transport.request({ method: 'POST', path: `${locate(id)}/enable` }, options),
    replay: (id, after, options) =>
      transport.request({ method: 'POST', path: `${locate(id)}/replay`, body: { after } }, options),
  }
}
