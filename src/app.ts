import type { Hono } from 'hono'
import { auditRefusals } from './access/audit.ts'
import { authenticate } from './access/authenticate.ts'
import type { CardsContext } from './cards/cache.ts'
import { cardRoutes } from './cards/routes.ts'
import { mountConsole } from './console/app.tsx'
import type { ConsoleContext } from './console/env.ts'
import { refundDecisionRoutes } from './decisions/refund-routes.ts'
import { decisionRoutes, reviewRoutes } from './decisions/routes.ts'
import { discrepancyRoutes } from './discrepancies/routes.ts'
import { feedRoutes } from './feed/routes.ts'
import { healthRoutes } from './health/routes.ts'
import {
  createBaseApp,
  holdRefusals,
  paceRequests,
  requireValidHost,
  traceRequests,
} from './http/app.ts'
import { readJsonBody } from './http/body.ts'
import type { ApiInfo, ParameterTable } from './http/openapi.ts'
import type { HttpEnv } from './http/problems.ts'
import { openapiRoutes, type ReferenceContext } from './http/reference.ts'
import { describeIpnRoutes } from './ipn/openapi.ts'
import { paymentRoutes } from './payments/routes.ts'
import { requestRoutes } from './refunds/request-routes.ts'
import { refundRoutes } from './refunds/routes.ts'
import { searchRoutes } from './search.ts'
import { transactionRoutes } from './transactions/routes.ts'
import { deliveryRoutes, webhookRoutes } from './webhooks/routes.ts'

const NOT_FOUND_HINT = {
  all: '; see /docs for all paths',
  web: '; see /docs for all paths',
  worker: '; a worker serves only its health and metrics',
}

/** Paths that anybody may request. All others need a key or a session, or belong to the gateway. */
const WITHOUT_KEY = [
  '/healthz',
  '/readyz',
  '/metrics',
  '/openapi.json',
  '/docs/*',
  '/console/assets/*',
  '/console/sign-in/*',
]

const DESCRIPTION = `Reports the state of payments to order systems, and refunds payments.

* Every request under \`/v1\` and \`/v2\` carries \`Authorization: Bearer <API key>\`. A key has scopes and
  covers one merchant account or all of them; each operation names the scope that it requires.
* Amounts are exact decimals in strings; times are ISO 8601 in UTC.
* Lists are paginated: request the next page with \`cursor\` set to \`nextCursor\`, until it is null. A page may be short or
  empty before that: it ends after some thousand rows that its filter left out.
* Errors are problems (RFC 9457) of the schema \`Problem\`; each response names its codes. An unknown path is
  \`not_found\`; a wrong method is \`method_not_allowed\`, with \`Allow\`.
* Every response has \`X-Request-Id\`, which the log has too; with a key also \`RateLimit\` and \`RateLimit-Policy\`.`

const TAGS = [
  { name: 'Transactions', description: 'The state of a payment, and queries for it' },
  { name: 'Payments', description: 'The payments of transactions, as the gateway reports them' },
  { name: 'Refunds', description: 'Requests to return money, tracked until they succeed or fail' },
  { name: 'Events', description: 'All changes, as a feed to poll or to stream' },
  {
    name: 'Webhooks',
    description:
      'The same events, sent to your endpoint: signed, in order, and retried until accepted',
  },
  { name: 'Discrepancies', description: 'Disagreements between two sources, for operators' },
  { name: 'Search', description: 'Finding any of them' },
  { name: 'Virtual cards', description: 'Read from the gateway on each request, masked' },
  { name: 'Notifications', description: 'Called by the gateway' },
  { name: 'Operations', description: 'For orchestrators, Prometheus and developers' },
]

/** Parameters with shared schemas. Filters have no examples, because the reference would fill them in and hide rows. */
const PARAMETERS: ParameterTable = {
  transactionId: [
    "The id of the transaction, as the gateway's notification names it",
    '240830080146NDTISR',
  ],
  paymentId: ['The `id` of the payment, which the gateway assigned', '1439211'],
  virtualCardRequestId: [
    'The identifier of the card request, which names the card',
    'VC-DEMO-0001',
  ],
  'listRefunds.paymentId': 'Only refunds of the payment with this id',
  orderId: 'Only what belongs to this order of the shop, exactly as it is written',
  'listPayments.status':
    'Only payments with this status: `SUCCESS`, `FAILED`, `PROCESSING`, or one as it came',
  paymentMethod: 'Only payments made by this method: `QR`, `ATM` or `CC`',
  from: 'Only what was first seen at this time or later: ISO 8601 with an offset',
  to: 'Only what was first seen before this time: ISO 8601 with an offset',
  dateFr: 'Only cards created on this day or later, e.g. `2026-11-21`',
  dateTo: 'Only cards created on this day or earlier, e.g. `2026-11-21`',
  requestId: 'Only cards of the batch request with this identifier',
  'listCards.status': 'Only cards with this status, e.g. `ACTIVED`',
  cardBrand: 'Only cards of this network, in lower case, e.g. `visa`',
  after:
    'The `id` of the last event read, or `nextCursor`; without it the oldest event kept comes first',
  'Last-Event-Id': 'The `id` of the last event read, as a browser repeats it',
  'Idempotency-Key': [
    'A unique string of your own for each refund; required unless `dryRun=true`. Store it before you send the request',
    'order-DH1-return-1',
  ],
  target: ['Whether the account, a payment or a refund is held', 'payment'],
  'setHold.id': ['The merchant code, or the id of the payment or the refund, to hold', '1439211'],
  'releaseHold.id': [
    'The merchant code, or the id of the payment or the refund, that is held',
    '1439211',
  ],
}

const TITLE = 'IPN processor'
const API: ApiInfo = { title: TITLE, description: DESCRIPTION, tags: TAGS, parameters: PARAMETERS }

type AppContext = CardsContext & ConsoleContext & ReferenceContext

/** Serves everything but `/ipn`, which it only describes. A worker serves health and metrics alone. */
export function createApp(ctx: AppContext): Hono<HttpEnv> {
  const app = createBaseApp(ctx, NOT_FOUND_HINT[ctx.config.ROLE])
  const pace = paceRequests(ctx.config.TRUSTED_PROXIES)
  for (const path of WITHOUT_KEY) app.use(path, pace)
  app.route('/', healthRoutes(ctx, ctx.config.METRICS_PORT === undefined))
  if (ctx.config.ROLE === 'worker') return app

  app.route('/', openapiRoutes(ctx, app, API))
  const ipnRoutes = describeIpnRoutes(ctx.config.GATEWAY_FIELD_PREFIX)
  for (const route of ipnRoutes) app.openAPIRegistry.registerPath(route)
  const middleware = [
    holdRefusals(),
    authenticate(ctx),
    traceRequests(ctx),
    requireValidHost,
    auditRefusals(ctx),
    readJsonBody(ctx.config.bodyTimeoutMs),
  ] as const
  for (const path of ['/v1/*', '/v2/*']) app.use(path, ...middleware)
  app.route('/', transactionRoutes(ctx))
  app.route('/', paymentRoutes(ctx))
  app.route('/', requestRoutes(ctx))
  app.route('/', refundRoutes(ctx))
  app.route('/', refundDecisionRoutes(ctx))
  app.route('/', decisionRoutes(ctx))
  app.route('/', discrepancyRoutes(ctx))
  app.route('/', reviewRoutes(ctx))
  app.route('/', searchRoutes(ctx))
  app.route('/', feedRoutes(ctx))
  app.route('/', cardRoutes(ctx))
  app.route('/', webhookRoutes(ctx))
  app.route('/', deliveryRoutes(ctx))
  mountConsole(app, ctx)
  return app
}
