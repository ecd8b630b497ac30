import { createRoute, z } from '@hono/zod-openapi'
import { withScope } from '../access/authenticate.ts'
import type { RefusalCode } from '../errors.ts'
import { Endpoint } from '../events/webhook-endpoint.ts'
import {
  BODY_REFUSALS,
  describeEmptyResponse,
  describeRefusals,
  describeResponse,
} from '../http/describe.ts'
import { MerchantCode } from '../http/fields.ts'
import { describePage, pageParameters } from '../http/list.ts'
import { ENDPOINT_PATH, ENDPOINTS_PATH } from './changes.ts'
import {
  Delivery,
  DeliveryReplay,
  EndpointChange,
  NewEndpoint,
  RegisteredEndpoint,
  Replay,
  RotatedSecret,
  SecretRotation,
  TestResult,
} from './schemas.ts'

const shared = { tags: ['Webhooks'], ...withScope('webhooks:write') }

const params = z.object({
  endpointId: z.string().openapi({
    description: 'The `id` of the endpoint; anything but a UUID is answered 404',
    example: '5f0c2f0e-2b0d-4f7a-9d2e-0f6f0a8f3c55',
  }),
})
const query = z.strictObject({ merchantCode: MerchantCode })
const ofEndpoint = { ...shared, request: { params, query } }
function takes<T extends z.ZodType>(schema: T, required = true) {
  return { body: { content: { 'application/json': { schema } }, required } }
}
const refuse = (...own: RefusalCode[]) =>
  describeRefusals(...BODY_REFUSALS, 'webhook_endpoint_not_found', ...own)
const refusals = refuse()
const changed = {
  200: describeResponse('The endpoint after the change', Endpoint),
  ...refusals,
}

export const register = createRoute({
  method: 'post',
  path: ENDPOINTS_PATH,
  operationId: 'registerWebhookEndpoint',
  summary: 'Register an address to send events to from now on',
  description:
    'The endpoint belongs to the key, with the keys it is rotated to, and ends with it. It gets what that key may read: payments with `payments:read`, refunds with `refunds:read`. Without `types` it is every type that the key may read now.',
  ...shared,
  request: { query, ...takes(NewEndpoint) },
  responses: {
    201: describeResponse('Registered; the secret is shown only once', RegisteredEndpoint),
    ...describeRefusals(...BODY_REFUSALS, 'merchant_not_found', 'too_many_webhook_endpoints'),
  },
})

export const list = createRoute({
  method: 'get',
  path: ENDPOINTS_PATH,
  operationId: 'listWebhookEndpoints',
  summary: 'List registered endpoints and their condition, newest first',
  ...shared,
  request: { query: z.strictObject({ merchantCode: MerchantCode, ...pageParameters }) },
  responses: { 200: describePage(Endpoint), ...describeRefusals('cursor_expired') },
})

export const remove = createRoute({
  method: 'delete',
  path: ENDPOINT_PATH,
  operationId: 'deleteWebhookEndpoint',
  summary: 'Delete an endpoint, its secret and its pending deliveries',
  ...ofEndpoint,
  responses: { 204: describeEmptyResponse('Deleted'), ...refusals },
})

export const test = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/test`,
  operationId: 'testWebhookEndpoint',
  summary: 'Send a signed test event now',
  description:
    'At most 20 a minute and account. A receiver that sends no HTTP answer within 5 s is reported after 5 s, whatever the reason.',
  ...ofEndpoint,
  responses: { 200: describeResponse('The result of the test', TestResult), ...refusals },
})

export const enable = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/enable`,
  operationId: 'enableWebhookEndpoint',
  summary: 'Enable an endpoint: deliveries continue at once where they stopped',
  description:
    'The key has to be able to read what the endpoint gets. If the key or the person that it belonged to has no access any more, it belongs to this key from now on.',
  ...ofEndpoint,
  responses: changed,
})

export const replay = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/replay`,
  operationId: 'replayEvents',
  summary: 'Send every event after a given one (again), in order',
  ...shared,
  request: { params, query, ...takes(Replay) },
  responses: {
    202: describeResponse('The endpoint; its events are sent in the background', Endpoint),
    ...refuse('cursor_expired'),
  },
})

export const update = createRoute({
  method: 'patch',
  path: ENDPOINT_PATH,
  operationId: 'updateWebhookEndpoint',
  summary: 'Change the address or the types of an endpoint',
  description:
    'Other types apply to every event that was not sent yet; what waits is sent to the new address. The key has to be able to read all types that the endpoint gets.',
  ...shared,
  request: { params, query, ...takes(EndpointChange) },
  responses: changed,
})

export const rotate = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/rotate-secret`,
  operationId: 'rotateWebhookSecret',
  summary: 'Give an endpoint a new secret, beside which the one before stays valid for a while',
  description:
    'Until `previousSecretValidUntil`, webhooks have two signatures, separated by a space. While two secrets are valid, `keep` is required.',
  ...shared,
  request: { params, query, ...takes(SecretRotation, false) },
  responses: {
    200: describeResponse('The new secret is shown only once', RotatedSecret),
    ...refuse('secret_rotating'),
  },
})

export const listDeliveries = createRoute({
  method: 'get',
  path: `${ENDPOINT_PATH}/deliveries`,
  operationId: 'listWebhookDeliveries',
  summary: 'List the attempts to deliver events to an endpoint, newest first',
  description: 'Attempts are kept for 30 days, or `RETENTION_DAYS` if that is less.',
  ...shared,
  request: {
    params,
    query: z.strictObject({
      outcome: z.enum(['delivered', 'failed']).optional().openapi({
        description: 'Only attempts that were accepted, or only those that were not',
      }),
      merchantCode: MerchantCode,
      ...pageParameters,
    }),
  },
  responses: {
    200: describePage(Delivery),
    ...describeRefusals('webhook_endpoint_not_found', 'cursor_expired'),
  },
})

export const replayOne = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/deliveries/{eventId}/replay`,
  operationId: 'replayWebhookDelivery',
  summary: 'Send one event to an endpoint (again)',
  ...shared,
  request: {
    params: params.extend({
      eventId: z.string().openapi({
        description: 'The `eventId` of a delivery, which is the id of the event in the feed',
        example: '5310',
      }),
    }),
    query,
  },
  responses: {
    202: describeResponse('The event is sent in the background', DeliveryReplay),
    ...refuse('webhook_delivery_not_found', 'webhook_endpoint_disabled'),
  },
})

export const replayAllFailed = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/deliveries/replay`,
  operationId: 'replayFailedWebhookDeliveries',
  summary: 'Send every event that has failed and was not accepted since, at once',
  ...ofEndpoint,
  responses: {
    202: describeResponse('The events are sent in the background', DeliveryReplay),
    ...refuse('webhook_endpoint_disabled'),
  },
})
