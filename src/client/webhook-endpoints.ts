import type { WebhookEndpoint } from './api-types.ts'
import type { EventType } from './events.ts'
import { type Listing, listRoute, type PageWish } from './listing.ts'
import type { CallOptions } from './options.ts'
import { type Transport, writeSegment } from './transport.ts'

/** An endpoint to register. `types` defaults to all types the key may read. */
export type WebhookWish = { url: string; types?: EventType[] | undefined }

/** A new endpoint. Its secret verifies the deliveries (Standard Webhooks) and is returned only once. */
export type RegisteredWebhook = { id: string; url: string; types: string[]; secret: string }

/** What to change of an endpoint; at least one member. */
export type WebhookChange = { url?: string | undefined; types?: EventType[] | undefined }

/** How to rotate a secret. */
export type WebhookRotation = {
  /** How long the secret before stays valid (s). Default 86,400, a day; 0 ends it at once. */
  previousValidForS?: number | undefined
  /** Only while two secrets are valid: which of them stays valid beside the new one. */
  keep?: 'current' | 'previous' | undefined
}

/** A new secret, returned only once. */
export type RotatedWebhookSecret = {
  id: string
  secret: string
  /** Until then webhooks are also signed with the secret before. */
  previousSecretValidUntil: string | null
}

/** An attempt to deliver an event. */
export type WebhookDelivery = {
  id: string
  eventId: string
  type: string
  transactionId: string
  /** Counts the attempts since the event was first sent or replayed, from 1. */
  attempt: number
  outcome: 'delivered' | 'failed'
  sentAt: string
  /** Null without a response. */
  durationMs: number | null
  /** HTTP status of the endpoint's response, if any. */
  status: number | null
  error: string | null
  /** The first KiB of the response, masked. */
  answer: string | null
  /** When the event is sent again; null when it was delivered. */
  nextAttemptAt: string | null
}

export type WebhookDeliveryFilter = PageWish & { outcome?: 'delivered' | 'failed' | undefined }

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
  /**
   * Changes the address or the types of an endpoint.
   * @throws ForbiddenError (`scope_missing`) if the key may not read all types that the endpoint gets
   */
  update(endpointId: string, change: WebhookChange, options?: CallOptions): Promise<WebhookEndpoint>
  /**
   * Gives the endpoint a new secret, beside which the one before stays valid for a while.
   * @throws ConflictError (`secret_rotating`) while two secrets are valid, unless `keep` names one
   */
  rotateSecret(
    endpointId: string,
    rotation?: WebhookRotation,
    options?: CallOptions,
  ): Promise<RotatedWebhookSecret>
  /** Lists the attempts to deliver events to an endpoint, newest first. */
  deliveries(
    endpointId: string,
    filter?: WebhookDeliveryFilter,
    options?: CallOptions,
  ): Listing<WebhookDelivery>
  /**
   * Sends an event to the endpoint again, or without `eventId` every event that has failed and was not accepted since.
   * @throws NotFoundError (`webhook_delivery_not_found`), ConflictError (`webhook_endpoint_disabled`)
   */
  redeliver(
    endpointId: string,
    eventId?: string,
    options?: CallOptions,
  ): Promise<{ replayed: number }>
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
    update: (id, body, options) =>
      transport.request({ method: 'PATCH', path: locate(id), body }, options),
    rotateSecret: (id, body = {}, options) =>
      transport.request({ method: 'POST', path: `${locate(id)}/rotate-secret`, body }, options),
    deliveries: (id, filter = {}, options) =>
      listRoute<WebhookDelivery>(transport, `${locate(id)}/deliveries`, filter, options),
    redeliver: (id, eventId, options) => {
      const one = eventId === undefined ? '' : `/${writeSegment('eventId', eventId)}`
      const path = `${locate(id)}/deliveries${one}/replay`
      return transport.request({ method: 'POST', path }, options)
    },
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
