import { type RouteConfig, z } from '@hono/zod-openapi'
import { describeResponse, type HeaderName } from '../http/describe.ts'

const Received = z
  .strictObject({ respcode: z.literal(0), respmsg: z.string() })
  .openapi('Received', { example: { respcode: 0, respmsg: 'received' } })

const NotReceived = z
  .strictObject({ respcode: z.literal(1), respmsg: z.string().describe('The reason') })
  .openapi('NotReceived', { example: { respcode: 1, respmsg: 'the body is not valid JSON' } })

const refuse = (description: string, ...headers: HeaderName[]) =>
  describeResponse(description, NotReceived, ...headers)

const shared = {
  200: describeResponse('Committed; never sent before the commit', Received),
  400: refuse(
    'The notification cannot be parsed, has more than 64 members, or names no transaction',
  ),
  401: refuse('The signature is wrong or missing'),
  403: refuse('The address is outside `IPN_ALLOW_CIDRS`'),
  404: refuse('No such merchant account'),
  429: refuse('Too many malformed or wrongly signed ones from this network', 'Retry-After'),
  500: refuse('Storing it failed: send it again', 'Retry-After'),
  503: refuse('Too many of this network were refused, or the database is behind', 'Retry-After'),
}

/** Only documents the routes: the handler validates requests itself and answers in the gateway's format. */
export function describeIpnRoutes(prefix: string): RouteConfig[] {
  const schema = describeNotification(prefix)
  const common = { path: '/ipn', tags: ['Notifications'], security: [] }
  const content = {
    'application/json': { schema },
    'application/x-www-form-urlencoded': { schema },
  }
  return [
    {
      ...common,
      method: 'get',
      operationId: 'receiveNotificationByGet',
      summary: 'Receive a notification as query parameters, if `IPN_ACCEPT_GET` is set',
      description: 'Answers 405 unless `IPN_ACCEPT_GET` is set.',
      request: { query: schema },
      responses: { ...shared, 405: refuse('`IPN_ACCEPT_GET` is not set', 'Allow') },
    },
    {
      ...common,
      method: 'post',
      operationId: 'receiveNotification',
      summary: 'Receive a notification from the gateway',
      description:
        'At most 64 KiB. Send every notification again that is not answered 200 with `respcode` 0.',
      request: { body: { required: true, content } },
      responses: {
        ...shared,
        408: refuse('The body did not arrive in time'),
        413: refuse('The body is larger than 64 KiB'),
        415: refuse('The content type is neither JSON nor a form, or the body is compressed'),
      },
    },
  ]
}

/** A notification (specification 6). Other members are accepted, because the signature covers them. */
function describeNotification(prefix: string) {
  const id = z.union([z.string().min(1).max(128), z.number()]).optional()
  const word = z.union([z.string(), z.number()]).nullable().optional()
  const command = z.string().nullable().optional()
  const hint = (what: string) =>
    word.describe(`${what}: a hint, never trusted by itself; of another type it is ignored`)
  const members = {
    Command: command.describe('`REFUND` for the result of a refund; any other value for a payment'),
    MerchantCode: word.describe('May be omitted if there is only one merchant account'),
    TransactionID: id.describe('Required in the notification of a payment'),
    RequestID: id.describe('Required in the notification of a refund: the id of the refund'),
    PaymentID: hint('The payment that was refunded'),
    OrderID: hint('The order of the shop'),
    MerchantTxnID: hint('The id that the merchant gave the transaction'),
    Currency: hint('The currency of the amount'),
    Amount: hint('The amount of the payment or the refund'),
    ResponseCode: hint("The gateway's result, of which 0 is a success"),
    SecureHash: z
      .string()
      .optional()
      .describe('The signature, computed by the rules of the gateway'),
  }
  const example = {
    ...{ Command: 'PAY', MerchantCode: 'UFLIYL', TransactionID: '240830080146NDTISR' },
    ...{ OrderID: 'DH1', Amount: 20000000, Currency: 'VND' },
    SecureHash: '8be17a1cc403dd26d7a175aac42e04f5e173849a3507c6f6e2cf4a70600c276b',
  }
  return z.looseObject(addPrefix(prefix, members)).meta({ examples: [addPrefix(prefix, example)] })
}

function addPrefix<T>(prefix: string, members: Readonly<Record<string, T>>): Record<string, T> {
  const entries = Object.entries(members)
  return Object.fromEntries(entries.map(([name, member]) => [`${prefix}_${name}`, member]))
}
