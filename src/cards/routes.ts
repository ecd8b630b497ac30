import { createRoute, z } from '@hono/zod-openapi'
import { parseAccept } from 'hono/utils/accept'
import { withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { answersText, createRouter, Id, MerchantCode } from '../http/input.ts'
import { GATEWAY_REFUSALS, refuses } from '../http/refusals.ts'
import { chooseAccount } from './choose-account.ts'
import { type CardLanguage, listCards, readCard } from './read.ts'

const shared = { tags: ['Virtual cards'], ...withScope('cards:read') }

/** As the gateway gave it (specification 2.1 to 2.3), members that no table names included. */
const Envelope = z
  .looseObject({
    code: z.number(),
    state: z.number().optional(),
    data: z.looseObject({}),
    message: z.string().optional(),
  })
  .openapi('CardEnvelope')

/** Some servers decode what is escaped, and some take a backslash for a slash: neither may leave its place. */
const CardId = Id.refine((id) => !/[/\\]/.test(id), 'holds a slash')

const NO_DAY = 'must be a day like 2026-11-21'
const day = z.iso.date(NO_DAY).optional().openapi({
  description:
    'Cards made from (`dateFr`) to (`dateTo`) these days, e.g. `2026-11-21`, both included',
})

const filters = z
  .strictObject({
    pageIndex: z
      .string()
      .regex(/^[1-9]\d{0,8}$/, 'must be a whole number of at least 1')
      .optional()
      .openapi({ type: 'integer', minimum: 1, maximum: 999_999_999, description: 'From 1' }),
    pageSize: z
      .string()
      .regex(/^([1-9]\d?|100)$/, 'must be a whole number from 1 to 100')
      .optional()
      .openapi({ type: 'integer', minimum: 1, maximum: 100, description: 'Cards on a page' }),
    dateFr: day,
    dateTo: day,
    requestId: Id.optional(),
    status: Id.optional(),
    cardBrand: Id.optional(),
    merchantCode: MerchantCode,
  })
  .refine(({ dateFr = '', dateTo }) => dateTo === undefined || dateFr <= dateTo, {
    path: ['dateTo'],
    message: 'must not be before dateFr',
  })

const headers = z.object({
  'accept-language': z.string().optional().openapi({
    description: 'Passed on where it prefers `vi` or `en`: the language of what the gateway says',
  }),
})

const refusals = refuses(
  ...GATEWAY_REFUSALS,
  'card_not_found',
  'merchant_not_found',
  'cards_token_shared',
  'ambiguous_merchant',
  'cards_not_configured',
)

const readOne = createRoute({
  method: 'get',
  path: '/v2/vc/virtual-cards/{virtualCardRequestId}',
  operationId: 'readCard',
  summary: 'One virtual card, read from the gateway and masked',
  ...shared,
  request: {
    params: z.object({ virtualCardRequestId: CardId }),
    query: z.strictObject({ merchantCode: MerchantCode }),
    headers,
  },
  responses: {
    200: answersText('The card, as the gateway gave it', Envelope),
    ...refusals,
  },
})

const list = createRoute({
  method: 'get',
  path: '/v2/vc/virtual-cards',
  operationId: 'listCards',
  summary: 'Virtual cards, read from the gateway and masked',
  ...shared,
  request: { query: filters, headers },
  responses: {
    200: answersText('A page, as the gateway gave it', Envelope),
    ...refusals,
  },
})

/** For the asker alone, and for now. */
const ANSWER_HEADERS = { 'content-type': 'application/json', 'cache-control': 'private, no-store' }

/** The merchants' routes on virtual cards: the gateway's own paths, read through. */
export function cardRoutes(ctx: Context) {
  return createRouter()
    .openapi(readOne, async (c) => {
      const { merchantCode } = c.req.valid('query')
      const account = chooseAccount(ctx.config, c.get('access'), merchantCode)
      const { virtualCardRequestId } = c.req.valid('param')
      const language = chooseLanguage(c.req.valid('header')['accept-language'])
      const { requestId } = c.get('access')
      const text = await readCard(ctx, account, virtualCardRequestId, { language, requestId })
      return c.body(text, 200, ANSWER_HEADERS)
    })
    .openapi(list, async (c) => {
      const { merchantCode, ...query } = c.req.valid('query')
      const account = chooseAccount(ctx.config, c.get('access'), merchantCode)
      const language = chooseLanguage(c.req.valid('header')['accept-language'])
      const { requestId } = c.get('access')
      const text = await listCards(ctx, account, query, { language, requestId })
      return c.body(text, 200, ANSWER_HEADERS)
    })
}

/** The first of the asker's languages that the specification knows; without one the gateway's default. */
function chooseLanguage(header: string | undefined): CardLanguage {
  const wanted = parseAccept(header ?? '').filter(({ q }) => q > 0)
  for (const { type } of wanted) {
    const [language] = type.toLowerCase().split('-')
    if (language === 'vi' || language === 'en') return language
  }
  return undefined
}
