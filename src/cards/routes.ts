import { createRoute, z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { parseAccept } from 'hono/utils/accept'
import { withScope } from '../access/authenticate.ts'
import type { Config } from '../config/config.ts'
import type { CardRequest } from '../gateway/cards.ts'
import { createRouter } from '../http/app.ts'
import { describeRefusals, describeTextResponse, GATEWAY_REFUSALS } from '../http/describe.ts'
import { Id, MerchantCode } from '../http/fields.ts'
import type { HttpEnv } from '../http/problems.ts'
import type { CardsContext } from './cache.ts'
import { readCards, resolveAccount } from './read-cards.ts'
import { CardEnvelope, CardListEnvelope } from './view.ts'

const shared = { tags: ['Virtual cards'], ...withScope('cards:read') }

/** Some servers decode escapes and take a backslash for a slash, so an id with either could change the path. */
const CardId = Id.refine((id) => !/[/\\]/.test(id), 'must not contain a slash or backslash')

const date = z.iso
  .date('must be a date, e.g. 2026-11-21')
  .optional()
  .describe('Cards created from `dateFr` to `dateTo`, e.g. `2026-11-21`, both days included')

/** A whole number, passed on as it is written. */
function number([minimum, maximum]: [number, number], description: string) {
  const isOne = (text: string) =>
    /^(0|[1-9]\d{0,8})$/.test(text) && Number(text) >= minimum && Number(text) <= maximum
  return z
    .string()
    .refine(isOne, `must be a whole number from ${minimum} to ${maximum}`)
    .optional()
    .openapi({ type: 'integer', minimum, maximum, description })
}

/** The first page and the largest page size are settings, because the specification (4.2) leaves them open. */
function describeFilters(config: Config) {
  const { GATEWAY_CARDS_FIRST_PAGE: firstPage, GATEWAY_CARDS_MAX_PAGE_SIZE: maxSize } = config
  return z
    .strictObject({
      pageIndex: number([firstPage, 999_999_999], 'The page, from `GATEWAY_CARDS_FIRST_PAGE`'),
      pageSize: number([1, maxSize], 'Cards per page, at most `GATEWAY_CARDS_MAX_PAGE_SIZE`'),
      ...{ dateFr: date, dateTo: date, requestId: Id.optional(), status: Id.optional() },
      ...{ cardBrand: Id.optional(), merchantCode: MerchantCode },
    })
    .refine(({ dateFr = '', dateTo }) => dateTo === undefined || dateFr <= dateTo, {
      path: ['dateTo'],
      message: 'must not be before dateFr',
    })
}

const headers = z.object({
  'accept-language': z
    .string()
    .optional()
    .describe("The language of the gateway's messages. Passed on if it prefers `vi` or `en`"),
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

const describeList = (config: Config) =>
  createRoute({
    method: 'get',
    path: '/v2/vc/virtual-cards',
    operationId: 'listCards',
    summary: 'List virtual cards from the gateway, masked',
    ...shared,
    request: { query: describeFilters(config), headers },
    responses: {
      200: describeTextResponse("A page of cards in the gateway's envelope", CardListEnvelope),
      ...refusals,
    },
  })

const RESPONSE_HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'private, no-store',
}

/** Serves virtual cards at the gateway's own paths. */
export function cardRoutes(ctx: CardsContext) {
  async function answer(
    c: HttpContext<HttpEnv>,
    merchantCode: string | undefined,
    wanted: Pick<CardRequest, 'virtualCardRequestId' | 'query'>,
  ) {
    const access = c.get('access')
    const account = resolveAccount(ctx.config, access, merchantCode)
    const request = { ...wanted, language: pickLanguage(c.req.header('accept-language')) }
    return c.body(await readCards(ctx, account, request, access.requestId), 200, RESPONSE_HEADERS)
  }
  return createRouter()
    .openapi(readOne, (c) => answer(c, c.req.valid('query').merchantCode, c.req.valid('param')))
    .openapi(describeList(ctx.config), (c) => {
      const { merchantCode, ...query } = c.req.valid('query')
      return answer(c, merchantCode, { query })
    })
}

/** Undefined stands for the gateway's default. */
function pickLanguage(header: string | undefined): CardRequest['language'] {
  const wanted = parseAccept(header ?? '').filter(({ q }) => q > 0)
  const languages = wanted.map(({ type }) => type.toLowerCase().split('-')[0])
  return languages.find((language) => language === 'vi' || language === 'en')
}
