import { createRoute, z } from '@hono/zod-openapi'
import { withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { writeEvent } from '../events/event.ts'
import {
  answersStream,
  answersText,
  createRouter,
  MerchantCode,
  WaitParameter,
} from '../http/input.ts'
import { DEFAULT_LIMIT, pageParameters } from '../http/page.ts'
import { refuses } from '../http/refusals.ts'
import { workUnder } from '../http/wait.ts'
import { chooseEvents } from './choose.ts'
import { readNext } from './follow.ts'
import { openStream } from './stream.ts'
import { Event, EventPage, TypesParameter } from './view.ts'

/** A place in the feed, as it was given. */
const Cursor = z
  .string()
  .regex(/^\d{1,18}$/, 'is not a cursor this feed gave')
  .transform(Number)
  .optional()
  .openapi({
    type: 'string',
    pattern: '^\\d{1,18}$',
    description: 'What was read last: an `id`, or `nextCursor`; left out, from the oldest kept',
  })

const shared = { tags: ['Events'], ...withScope('payments:read') }

const query = {
  after: Cursor,
  types: TypesParameter,
  merchantCode: MerchantCode,
}

const READING = 'Events of refunds are for keys that have the scope `refunds:read`, too.'

const list = createRoute({
  method: 'get',
  path: '/v1/events',
  operationId: 'listEvents',
  summary: 'The change feed, oldest first; ask again with `nextCursor`',
  description: READING,
  ...shared,
  request: {
    query: z.strictObject({ ...query, limit: pageParameters.limit, wait: WaitParameter }),
  },
  responses: { 200: answersText('A page', EventPage), ...refuses('cursor_expired') },
})

const follow = createRoute({
  method: 'get',
  path: '/v1/events/stream',
  operationId: 'followEvents',
  summary: 'The change feed as server-sent events',
  description: READING,
  ...shared,
  request: { query: z.strictObject(query), headers: z.object({ 'last-event-id': Cursor }) },
  responses: {
    200: answersStream('`id` is the cursor, `event` the type, `data` an event as above', Event),
    ...refuses('cursor_expired'),
  },
})

/** Events of one message to a stream. */
const STREAMED = 100

/** The merchants' routes on the change feed. */
export function feedRoutes(ctx: Context) {
  return createRouter()
    .openapi(list, async (c) => {
      const { after, limit = DEFAULT_LIMIT, wait = 0, ...chosen } = c.req.valid('query')
      const filter = chooseEvents(c.get('access'), chosen)
      const { events, next } = await workUnder([c.req.raw.signal, ctx.stopping], (end) =>
        readNext(ctx, { filter, after, limit }, wait * 1000, end),
      )
      const data = events.map((event) => writeEvent(ctx.sealer, event)).join(',')
      return c.body(`{"data":[${data}],"nextCursor":"${next}"}`, 200, {
        'content-type': 'application/json',
      })
    })
    .openapi(follow, async (c) => {
      const { after, ...chosen } = c.req.valid('query')
      const filter = chooseEvents(c.get('access'), chosen)
      // Its answer has no body: nothing would ever end the stream.
      if (c.req.method === 'HEAD') {
        return c.body(null, 200, { 'content-type': 'text/event-stream' })
      }
      const last = c.req.valid('header')['last-event-id']
      const follower = { filter, after: last ?? after, limit: STREAMED }
      return await openStream(ctx, c, follower, last === undefined ? 'after' : 'last-event-id')
    })
}
