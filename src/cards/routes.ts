import { createRoute, z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { parseAccept } from 'hono/utils/accept'
import { withScope } from '../access/authenticate.ts'
import type { Config } from '../config/config.ts'
import { invalidField } from '../errors.ts'
import { createRouter } from '../http/app.ts'
import { describeRefusals, describeTextResponse, GATEWAY_REFUSALS } from '../http/describe.ts'
import { Id, MerchantCode } from '../http/fields.ts'
import type { HttpEnv } from '../http/problems.ts'
import type { CardsContext } from './cache.ts'
import { type CardLanguage, type CardsWanted, readCards, resolveAccount } from './read-cards.ts'
import { CardEnvelope, CardListEnvelope } from './view.ts'

/** The specification (4.2) leaves open whether `pageIndex` starts at 0 or 1, and how large a page may be: both are settings. */
function refuseOutsideLimits(
  { GATEWAY_CARDS_FIRST_PAGE: firstPage, GATEWAY_CARDS_MAX_PAGE_SIZE: maxSize }: Config,
  { pageIndex, pageSize }: { pageIndex?: string | undefined; pageSize?: string | undefined },
): void {
  if (pageIndex !== undefined && Number(pageIndex) < firstPage) {
    throw invalidField('pageIndex', `must be a whole number of at least ${firstPage}`)
  }
  if (pageSize !== undefined && Number(pageSize) > maxSize) {
    throw invalidField('pageSize', `must be a whole number from 1 to ${maxSize}`)
  }
}

const shared = { tags: ['Virtual cards'], ...withScope('cards:read') }

/** Some servers decode escapes, and some treat a backslash as a slash: an id with either could change the path. */
const CardId = Id.refine((id) => !/[/\\]/.test(id), 'must not contain a slash or backslash')

const date = z.iso.date('must be a date, e.g. 2026-11-21').optional().openapi({
  description: 'Cards created from `dateFr` to `dateTo`, e.g. `2026-11-21`, both days included',
})

const filters = z
  .strictObject({
    pageIndex: z
      .string()
      .regex(/^(0|[1-9]\d{0,8})$/, 'must be a whole number')
      .optional()
      .openapi({
        type: 'integer',
        minimum: 0,
        maximum: 999_999_999,
        description: 'The page, from `GATEWAY_CARDS_FIRST_PAGE` (1 unless it is set)',
        example: 1,
      }),
    pageSize: z
      .string()
      .regex(/^[1-9]\d{0,4}$/, 'must be a whole number of at least 1')
      .optional()
      .openapi({
        type: 'integer',
        minimum: 1,
        maximum: 10_000,
        description: 'Cards per page, at most `GATEWAY_CARDS_MAX_PAGE_SIZE` (100 unless it is set)',
        example: 20,
      }),
    dateFr: date,
    dateTo: date,
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
    description: "The language of the gateway's messages. Passed on if it prefers `vi` or `en`",
  }),
})

const refusals = describeRefusals(
  ...GATEWAY_REFUSALS,
  ...(['card_not_found', 'card_refused', 'merchant_not_found'] as const),
  ...(['cards_token_shared', 'ambiguous_merchant', 'cards_not_configured'] as const),
)

const readOne = createRoute({
  method: 'get',
  path: '/v2/vc/virtual-cards/{virtualCardRequestId}',
  operationId: 'readCard',
  summary: 'Read one virtual card from the gateway, masked',
  ...shared,
  request: {
    params: z.object({ virtualCardRequestId: CardId }),
    query: z.strictObject({ merchantCode: MerchantCode }),
    headers,
  },
  responses: {
    200: describeTextResponse("The card in the gateway's envelope", CardEnvelope),
    ...refusals,
  },
})

const list = createRoute({
  method: 'get',
  path: '/v2/vc/virtual-cards',
  operationId: 'listCards',
  summary: 'List virtual cards from the gateway, masked',
  ...shared,
  request: { query: filters, headers },
  responses: {
    200: describeTextResponse("A page of cards in the gateway's envelope", CardListEnvelope),
    ...refusals,
  },
})

const RESPONSE_HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'private, no-store',
}

/** Serves virtual cards at the gateway's own paths, reading through to the gateway. */
export function cardRoutes(ctx: CardsContext) {
  const { config } = ctx
  async function read(
    c: HttpContext<HttpEnv>,
    merchantCode: string | undefined,
    wanted: CardsWanted,
  ): Promise<string> {
    const access = c.get('access')
    const account = resolveAccount(config, access, merchantCode)
    const language = pickLanguage(c.req.header('accept-language'))
    return await readCards(ctx, account, wanted, { language, requestId: access.requestId })
  }
  return createRouter()
    .openapi(readOne, async (c) => {
      const { merchantCode } = c.req.valid('query')
      const text = await read(c, merchantCode, c.req.valid('param'))
      return c.body(text, 200, RESPONSE_HEADERS)
    })
    .openapi(list, async (c) => {
      const { merchantCode, ...query } = c.req.valid('query')
      refuseOutsideLimits(config, query)
      return c.body(await read(c, merchantCode, { query }), 200, RESPONSE_HEADERS)
    })
}

/** The preferred language of the specification; undefined selects the gateway's default. */
function pickLanguage(header: string | undefined): CardLanguage {
  const wanted = parseAccept(header ?? '').filter(({ q }) => q > 0)
  const languages = wanted.map(({ type }) => type.toLowerCase().split('-')[0])
  return languages.find((language) => language === 'vi' || language === 'en')
}
