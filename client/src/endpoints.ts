import { type Transport, writeSegment } from './http.ts'
import { type Listing, listRoute } from './lists.ts'
import type { CallOptions } from './options.ts'
import type {
  NewWebhookEndpoint,
  Queries,
  RegisteredWebhookEndpoint,
  RotatedWebhookSecret,
  WebhookDelivery,
  WebhookDeliveryReplay,
  WebhookEndpoint,
  WebhookEndpointChange,
  WebhookSecretRotation,
  WebhookTest,
} from './types.gen.ts'

export type WebhookEndpoints = {
  /** Registers an endpoint. Its secret verifies the deliveries (Standard Webhooks) and is returned only once. */
  create(endpoint: NewWebhookEndpoint, options?: CallOptions): Promise<RegisteredWebhookEndpoint>
  /** Lists endpoints, newest first. */
  list(page?: Queries['listWebhookEndpoints'], options?: CallOptions): Listing<WebhookEndpoint>
  /**
   * Changes the address or the types of an endpoint.
   * @throws ForbiddenError (`scope_missing`) if the key may not read all types that the endpoint gets
   */
  update(
    endpointId: string,
    change: WebhookEndpointChange,
    options?: CallOptions,
  ): Promise<WebhookEndpoint>
  /**
   * Gives the endpoint a new secret, beside which the one before stays valid for a while.
   * @throws ConflictError (`secret_rotating`) while two secrets are valid, unless `keep` names one
   */
  rotateSecret(
    endpointId: string,
    rotation?: WebhookSecretRotation,
    options?: CallOptions,
  ): Promise<RotatedWebhookSecret>
  /** Lists the attempts to deliver events to an endpoint, newest first. */
  deliveries(
    endpointId: string,
    filter?: Queries['listWebhookDeliveries'],
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
  ): Promise<WebhookDeliveryReplay>
  /** Deletes an endpoint. */
  delete(endpointId: string, options?: CallOptions): Promise<void>
  /** Sends a signed test event to the endpoint immediately. */
  test(endpointId: string, options?: CallOptions): Promise<WebhookTest>
  /** Enables the endpoint; its deliveries resume immediately where they stopped. */
  enable(endpointId: string, options?: CallOptions): Promise<WebhookEndpoint>
  /**
   * Sends all events after an event again, in order.
   * @param after the event's id, or `0` to begin with the oldest event that is kept
   * @throws CursorExpiredError if events after it have been deleted, or are from before a restore of the database
   */
  replay(endpointId: string, after: string, options?: CallOptions): Promise<WebhookEndpoint>
}

const PATH = '/v1/webhook-endpoints'

/** How long the service waits for the endpoint's response to a test event, plus a margin (s). */
const TEST_HOLD_S = 20

/** Creates the methods of `client.webhookEndpoints`. */
export function createWebhookEndpoints(transport: Transport): WebhookEndpoints {
  const { post } = transport
  const locate = (id: string) => `${PATH}/${writeSegment('endpointId', id)}`
  return {
    create: (body, options) => post(PATH, body, options),
    list: (page = {}, options) => listRoute<WebhookEndpoint>(transport, PATH, page, options),
    update: (id, body, options) =>
      transport.request({ method: 'PATCH', path: locate(id), body }, options),
    rotateSecret: (id, body = {}, options) => post(`${locate(id)}/rotate-secret`, body, options),
    deliveries: (id, filter = {}, options) =>
      listRoute<WebhookDelivery>(transport, `${locate(id)}/deliveries`, filter, options),
    redeliver: (id, eventId, options) => {
      const one = eventId === undefined ? '' : `/${writeSegment('eventId', eventId)}`
      return post(`${locate(id)}/deliveries${one}/replay`, undefined, options)
    },
    delete: async (id, options) => {
      await transport.send({ method: 'DELETE', path: locate(id) }, options)
    },
    test: (id, options) => {
      const request = { method: 'POST', path: `${locate(id)}/test`, holdS: TEST_HOLD_S } as const
      return transport.request(request, options)
    },
    enable: (id, options) => post(`${locate(id)}/enable`, undefined, options),
    replay: (id, after, options) => post(`${locate(id)}/replay`, { after }, options),
  }
}
