import { createRoute, z } from '@hono/zod-openapi'
import { answers } from './input.ts'
import { refusesAnyone } from './refusals.ts'

const tags = ['Operations']

export const liveness = createRoute({
  method: 'get',
  path: '/healthz',
  operationId: 'checkLiveness',
  summary: 'Whether the process lives',
  description: 'Asks nothing of the database.',
  tags,
  security: [],
  responses: {
    200: answers('It does', z.strictObject({ status: z.literal('ok') }).openapi('Liveness')),
    ...refusesAnyone(),
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
          waitMs: z.number().openapi({ description: 'Until the next call (ms)' }),
        }),
      )
      .optional()
      .openapi({ description: 'Calls to the gateway that pause, because it does not answer them' }),
  })
  .openapi('Readiness')

const NotReady = z
  .strictObject({ status: z.literal('not ready'), why: z.string() })
  .openapi('NoReadiness')

export const readiness = createRoute({
  method: 'get',
  path: '/readyz',
  operationId: 'checkReadiness',
  summary: 'Whether the database is reachable and its schema current',
  description:
    'A gateway that does not answer is no reason to send requests elsewhere; it is named.',
  tags,
  security: [],
  responses: {
    200: answers('Ready for requests', Ready),
    ...refusesAnyone(),
    503: answers('Not ready: no request should be sent here', NotReady),
  },
})

export const metrics = createRoute({
  method: 'get',
  path: '/metrics',
  operationId: 'readMetrics',
  summary: 'Measurements for Prometheus',
  description: 'Every process has its own.',
  tags,
  security: [],
  responses: {
    200: {
      description: 'The text format of Prometheus',
      content: { 'text/plain': { schema: z.string().openapi({ example: 'sync_due 0\n' }) } },
    },
    ...refusesAnyone(),
  },
})
