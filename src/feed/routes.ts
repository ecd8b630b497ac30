import { createRoute, z } from '@hono/zod-openapi'
import { requireScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { writeEvent } from '../events/event.ts'
import { answersText, createRouter, expiredCursor, refusals, WaitParameter } from '../http/input.ts'
import { DEFAULT_LIMIT, pageParameters } from '../http/page.ts'
import { chooseEvents } from './choose.ts'
import { readNext } from './follow.ts'
import { EventPage, TypesParameter } from './view.ts'

/** A place in the feed, as it was given. */
const Cursor = z
  .string()
  .regex(/^\d{1,18}$/, 'is not a cursor this feed gave')
  .transform(Number)
  .optional()
  .openapi({ type: 'string', example: '1024' })

const query = {
  after: Cursor,
  types: TypesParameter,
  merchantCode: z.string().optional(),
}

const list = createRoute({
  method: 'get',
  path: '/v1/events',
  summary: 'The change feed, oldest first; ask again with `nextCursor`',
  middleware: requireScope('payments:read'),
  request: {
    query: z.strictObject({ ...query, limit: pageParameters.limit, wait: WaitParameter }),
  },
  responses: { 200: answersText('A page', EventPage), ...refusals, ...expiredCursor },
})

/** The merchants' route on the change feed. */
export function feedRoutes(ctx: Context) {
  return createRouter().openapi(list, async (c) => {
    const { after, limit = DEFAULT_LIMIT, wait = 0, ...chosen } = c.req.valid('query')
    const filter = chooseEvents(c.get('access'), chosen)
    const end = AbortSignal.any([c.req.raw.signal, ctx.stopping])
    const { events, next } = await readNext(ctx, { filter, after, limit }, wait * 1000, end)
    const data = events.map((event) => writeEvent(ctx.sealer, event)).join(',')
    return c.body(`{"data":[${data}],"nextCursor":"${next}"}`, 200, {
      'content-type': 'application/json',
    })
  })
}
