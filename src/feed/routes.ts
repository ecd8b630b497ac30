import { createRoute, z } from '@hono/zod-openapi'
import { withScope } from '../access/authenticate.ts'
import { serializeEvent } from '../events/event.ts'
import { createRouter } from '../http/app.ts'
import { describeEventStream, describeRefusals } from '../http/describe.ts'
import { MerchantCode, WaitParameter } from '../http/fields.ts'
import {
  DEFAULT_LIMIT,
  describeTextPage,
  pageParameters,
  prefersCsv,
  respondCsv,
  writeCsv,
} from '../http/list.ts'
import { withEitherSignal } from '../platform/concurrency/timing.ts'
import { type FeedContext, openStream } from './open-stream.ts'
import { filterByScope, longPoll, readEnd } from './read-feed.ts'
import { After, CsvEvent, Cursor, Event, EventPage, TypesParameter } from './view.ts'

const shared = { tags: ['Events'], ...withScope('payments:read') }

const query = { after: After, types: TypesParameter, merchantCode: MerchantCode }

const SCOPES =
  'Refund events need the scope `refunds:read` as well, and so do discrepancies that name a refund.'

const list = createRoute({
  method: 'get',
  path: '/v1/events',
  operationId: 'listEvents',
  summary: 'Read the change feed, oldest event first; continue with `nextCursor`',
  description: SCOPES,
  ...shared,
  request: {
    query: z.strictObject({ ...query, limit: pageParameters.limit, wait: WaitParameter }),
  },
  responses: {
    200: describeTextPage(EventPage),
    ...describeRefusals('cursor_expired'),
  },
})

const follow = createRoute({
  method: 'get',
  path: '/v1/events/stream',
  operationId: 'followEvents',
  summary: 'Follow the change feed as server-sent events',
  description: SCOPES,
  ...shared,
  request: { query: z.strictObject(query), headers: z.object({ 'last-event-id': Cursor }) },
  responses: {
    200: describeEventStream(
      '`id` is the cursor, `event` the type, `data` the event as JSON',
      Event,
    ),
    ...describeRefusals('cursor_expired'),
  },
})

const STREAM_PAGE = 100

export function feedRoutes(ctx: FeedContext) {
  return createRouter()
    .openapi(list, async (c) => {
      const { after: from, limit = DEFAULT_LIMIT, wait = 0, ...requested } = c.req.valid('query')
      const filter = filterByScope(c.get('access'), requested)
      const after = from === 'latest' ? await readEnd(ctx) : from
      const { events, next } = await withEitherSignal(
        [c.req.raw.signal, ctx.lifecycle.stopping],
        (end) => longPoll(ctx, { filter, after, limit }, wait * 1000, end),
      )
      const data = events.map((event) => serializeEvent(ctx.encryption, event))
      if (prefersCsv(c)) {
        const rows = data.map((text): object => JSON.parse(text))
        return respondCsv(c, writeCsv(CsvEvent, rows), String(next), 'after')
      }
      return c.body(`{"data":[${data.join(',')}],"nextCursor":"${next}"}`, 200, {
        'content-type': 'application/json',
      })
    })
    .openapi(follow, async (c) => {
      const { after, ...requested } = c.req.valid('query')
      const filter = filterByScope(c.get('access'), requested)
      // A response to HEAD has no body, so nothing would ever end the stream.
      if (c.req.method === 'HEAD') {
        return c.body(null, 200, { 'content-type': 'text/event-stream' })
      }
      const last = c.req.valid('header')['last-event-id']
      const from = last ?? (after === 'latest' ? await readEnd(ctx) : after)
      const feedQuery = { filter, after: from, limit: STREAM_PAGE }
      return await openStream(ctx, c, feedQuery, last === undefined ? 'after' : 'last-event-id')
    })
}
