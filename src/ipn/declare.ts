import { type RouteConfig, z } from '@hono/zod-openapi'
import { describeNotification } from '../gateway/describe-notification.ts'
import type { HeaderName } from '../http/headers.ts'
import { answers } from '../http/input.ts'

const Received = z
  .strictObject({ respcode: z.literal(0), respmsg: z.string() })
  .openapi('Received', { example: { respcode: 0, respmsg: 'received' } })

const NotReceived = z
  .strictObject({ respcode: z.literal(1), respmsg: z.string().openapi({ description: 'Why' }) })
  .openapi('NotReceived', { example: { respcode: 1, respmsg: 'the body is not valid JSON' } })

const refuse = (description: string, ...headers: HeaderName[]) =>
  answers(description, NotReceived, ...headers)

const shared = {
  200: answers('Stored: said only after the commit', Received),
  401: refuse('The signature is wrong or missing'),
  403: refuse('Not from an address of `IPN_ALLOW_CIDRS`'),
  404: refuse('No such merchant account'),
  429: refuse('Too many wrong signatures from this address', 'Retry-After'),
  500: refuse('The store failed: it has to be sent again'),
  503: refuse('More than the database takes: it has to be sent again', 'Retry-After'),
}

/** The one answer to a host that is none, which no route is asked about, beside the gateway's own. */
const unreadable = {
  400: {
    ...refuse('It cannot be read, or names no transaction; or the address cannot be read'),
    content: {
      'application/json': { schema: NotReceived },
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/InvalidAddressProblem' },
      },
    },
  },
}

/**
 * The gateway's side, for the API's document: the handler reads the request by itself, because what is
 * wrong with it is answered in the gateway's own form.
 */
export function declareNotifications(prefix: string): RouteConfig[] {
  const notification = describeNotification(prefix)
  const common = { path: '/ipn', tags: ['Notifications'], security: [] }
  return [
    {
      ...common,
      method: 'get',
      operationId: 'receiveNotificationByGet',
      summary: 'The same with the parameters in the address, where `IPN_ACCEPT_GET` is set',
      description: 'Without the setting it is 405.',
      request: { query: notification },
      responses: {
        ...shared,
        ...unreadable,
        405: refuse('`IPN_ACCEPT_GET` is not set', 'Allow'),
      },
    },
    {
      ...common,
      method: 'post',
      operationId: 'receiveNotification',
      summary: 'Takes in a notification of the gateway',
      description: 'At most 64 KiB. Whatever is not answered 200 with `respcode` 0 is sent again.',
      request: {
        body: {
          required: true,
          content: {
            'application/json': { schema: notification },
            'application/x-www-form-urlencoded': { schema: notification },
          },
        },
      },
      responses: {
        ...shared,
        ...unreadable,
        408: refuse('The body did not arrive in time'),
        413: refuse('The body is larger than 64 KiB'),
        415: refuse('Neither JSON nor a form'),
      },
    },
  ]
}
