import { createRoute, z } from '@hono/zod-openapi'
import { describePublicRefusals } from '../platform/http/refusals.ts'
import { describeResponse } from '../platform/http/responses.ts'

const tags = ['Operations']

export const liveness = createRoute({
  method: 'get',
  path: '/healthz',
  operationId: 'checkLiveness',
  summary: 'Check that the process is running',
  description: 'Does not access the database.',
  tags,
  security: [],
  responses: {
    200: describeResponse(
      'The process is running',
      z.strictObject({ status: z.literal('ok') }).openapi('Liveness'),
    ),
    ...describePublicRefusals('rate_limited'),
  },
})

const Ready = z
  .strictObject({
    status: z.literal('ready'),
    paused: z
      .array(
        z.strictObject({
          merchantCode: z.string(),
          operation: z.enum(['query', 'refund', 'cards']),
          state: z.enum(['closed', 'half-open', 'open']),
          waitMs: z.number().openapi({ description: 'Time until the next call (ms)' }),
        }),
      )
      .optional()
      .openapi({
        description: 'Gateway calls that are paused because the gateway does not answer',
      }),
  })
  .openapi('Readiness')

const NotReady = z
  .strictObject({ status: z.literal('not ready'), why: z.string() })
  .openapi('NoReadiness')

export const readiness = createRoute({
  method: 'get',
  path: '/readyz',
  operationId: 'checkReadiness',
  summary: 'Check that the process can take requests',
  description:
    '200 once everything has started, until the process is asked to stop, while the database accepts writes and its schema is current. A gateway that does not answer does not make the process unready; it is listed in `paused`.',
  tags,
  security: [],
  responses: {
    200: describeResponse('The process can take requests', Ready),
    ...describePublicRefusals('rate_limited'),
    503: describeResponse('Not ready: route requests to another process', NotReady),
  },
})

export const metrics = createRoute({
  method: 'get',
  path: '/metrics',
  operationId: 'readMetrics',
  summary: 'Read the metrics',
  description:
    'Each process reports its own values, at most a second old. With `METRICS_PORT` they are served there, and here is nothing.',
  tags,
  security: [],
  responses: {
    200: {
      description: 'The metrics in Prometheus text format',
      content: { 'text/plain': { schema: z.string().openapi({ example: 'sync_due 0\n' }) } },
    },
    ...describePublicRefusals('not_found', 'rate_limited'),
  },
})
