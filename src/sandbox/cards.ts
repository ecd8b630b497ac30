import { randomUUID } from 'node:crypto'
import { accepts } from 'hono/accepts'
import { z } from 'zod'
import { type Answer, exchange, type GatewayContext, isErrorStatus } from './exchange.ts'
import { type CardInput, ControlError, type SandboxCard } from './input.ts'
import { makeCard } from './seed.ts'
import type { CardRules, SandboxMerchant, SandboxState } from './state.ts'
import { checkBearer } from './tokens.ts'
import { type Fields, isMembers, writeJson } from './wire.ts'

/** The HTTP status of a refusal, and what its envelope holds. `detail` is always in English. */
type Refusal = { status: number; code: number; en: string; vi: string; detail?: string }

const UNAUTHORISED = {
  status: 401,
  code: 401,
  en: 'The access token is missing, unknown or expired',
  vi: 'Mã truy cập bị thiếu, không hợp lệ hoặc đã hết hạn',
}
const UNKNOWN_CARD = {
  status: 404,
  code: 404,
  en: 'No such virtual card',
  vi: 'Không tìm thấy thẻ ảo',
}
const BAD_PARAMETER = {
  status: 422,
  code: 422,
  en: 'Invalid parameter',
  vi: 'Tham số không hợp lệ',
}

/**
 * Answers a request for one card or, without an id, for a list (specification 4.1, 4.2). It checks the token, the
 * parameters and the card, in this order. A token gives access to the cards of its accounts only.
 */
export function serveCards(
  state: SandboxState,
  c: GatewayContext,
  virtualCardRequestId: string | null,
): Promise<Response> {
  const { verdict, merchantCodes } = checkBearer(state.tokens, c.req.header('authorization'))
  const merchants = [...state.merchants.values()].filter(({ merchantCode }) =>
    merchantCodes.includes(merchantCode),
  )
  const read = () => {
    if (verdict !== 'accepted') return UNAUTHORISED
    if (virtualCardRequestId === null) {
      return listCards(merchants, c.req.queries(), state.settings.cards)
    }
    const owner = merchants.find(({ cards }) => cards.has(virtualCardRequestId))
    const card = owner?.cards.get(virtualCardRequestId)
    return owner && card ? { data: showCard(owner, card) } : UNKNOWN_CARD
  }
  const language = accepts(c, { header: 'Accept-Language', supports: ['en', 'vi'], default: 'en' })
  return exchange(state, c, {
    entry: {
      command: 'cards',
      operation: virtualCardRequestId === null ? 'list' : 'detail',
      status: null,
      code: null,
      workCode: null,
      token: verdict,
      virtualCardRequestId,
      query: readParameters(c.req.queries()),
      language: c.req.header('accept-language') ?? null,
    },
    work: () => writeEnvelope(state, read(), language),
    refuse: (code) => writeEnvelope(state, refuseWithCode(code), language),
  })
}

function refuseWithCode(code: number): Refusal {
  if (code === 401) return UNAUTHORISED
  return { status: isErrorStatus(code) ? code : 200, code, en: 'Failed', vi: 'Thất bại' }
}

/** Writes the envelope of the specification (2.1). A success has `state` 2, and a `code` that no failure has. */
function writeEnvelope(
  { settings: { fieldPrefix, cards } }: SandboxState,
  answer: { data: unknown } | Refusal,
  language: string,
): Answer {
  const isSuccess = 'data' in answer
  const failure = cards.successCode === 0 ? 1 : 0
  const { status, code, en, vi, detail }: Refusal = isSuccess
    ? { status: 200, code: cards.successCode, en: 'Successful', vi: 'Thành công' }
    : { ...answer, code: answer.code === cards.successCode ? failure : answer.code }
  const text = language === 'vi' ? vi : en
  const envelope = {
    code,
    state: isSuccess ? 2 : 0,
    data: isSuccess ? answer.data : null,
    message: detail === undefined ? text : `${text}: ${detail}`,
    [`${fieldPrefix}ResponseId`]: randomUUID(),
  }
  const headers = {
    'content-language': language,
    ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
  }
  return { status, code, body: writeJson(envelope), headers }
}

export function showCard({ merchantCode }: SandboxMerchant, card: SandboxCard): Fields {
  const { raw, cardData, ...rest } = card
  return mergeDeep({ merchantCode, ...rest, cardData: { ...cardData, cardCVV: '***' } }, raw)
}

/** A card in a list (specification 2.3) lacks its number, expiry, CVV, `activeOnCreate` and `supportedMccGroup`. */
function showListedCard({ merchantCode }: SandboxMerchant, card: SandboxCard): Fields {
  const { raw, cardData, cardPolicy, ...rest } = card
  const { activeOnCreate: _, supportedMccGroup: __, ...policy } = cardPolicy
  const shown = {
    merchantId: `M-${merchantCode}`,
    merchantCode,
    merchantEmail: `cards@${merchantCode.toLowerCase().replaceAll(/[^a-z0-9]/g, '-')}.example`,
    ...rest,
    cardData: { cardHolderName: cardData.cardHolderName, cardBrand: cardData.cardBrand },
    cardPolicy: policy,
  }
  return mergeDeep(shown, raw)
}

function mergeDeep(base: Fields, overrides: Fields): Fields {
  const merged = Object.entries(overrides).map(([name, value]) => {
    const before = base[name]
    return [name, isMembers(before) && isMembers(value) ? mergeDeep(before, value) : value]
  })
  return { ...base, ...Object.fromEntries(merged) }
}

const day = z.iso.date('must be a day, YYYY-MM-DD')

/** The filters of a list (specification 4.2). The defaults and limits of pages are the sandbox's own. */
const cardFilters = z.object({
  dateFr: day.optional(),
  dateTo: day.optional(),
  requestId: z.string().optional(),
  status: z.string().optional(),
  cardBrand: z.string().optional(),
})

const PARAMETERS = ['pageIndex', 'pageSize', ...Object.keys(cardFilters.shape)]

function makeListQuery({ firstPage, maxPageSize }: CardRules) {
  return cardFilters
    .extend({
      pageIndex: wholeNumber(firstPage, 1_000_000).default(firstPage),
      pageSize: wholeNumber(1, maxPageSize).default(Math.min(10, maxPageSize)),
    })
    .refine(({ dateFr = '', dateTo = '9999' }) => dateFr <= dateTo, {
      path: ['dateFr'],
      message: 'must not be after dateTo',
    })
}

function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`
  return z
    .string()
    .regex(/^(0|[1-9]\d{0,6})$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
}

type GivenParameters = Readonly<Record<string, readonly string[]>>

function readParameters(given: GivenParameters): Record<string, string> {
  const joined = Object.entries(given)
    .filter(([name]) => PARAMETERS.includes(name))
    .map(([name, values]): [string, string] => [name, values.join(',')])
  return Object.fromEntries(joined.filter(([, value]) => value !== ''))
}

/** Lists cards, the newest first and by id where times are equal, or names the first invalid parameter. */
function listCards(
  merchants: readonly SandboxMerchant[],
  given: GivenParameters,
  rules: CardRules,
): { data: unknown } | Refusal {
  const repeated = PARAMETERS.find((name) => (given[name]?.length ?? 0) > 1)
  if (repeated !== undefined) {
    return { ...BAD_PARAMETER, detail: `${repeated} is given more than once` }
  }
  const { data: query, error } = makeListQuery(rules).safeParse(readParameters(given))
  if (error !== undefined) {
    const [issue] = error.issues
    return { ...BAD_PARAMETER, detail: `${issue?.path.join('.')} ${issue?.message}` }
  }
  const found = merchants
    .flatMap((merchant) => [...merchant.cards.values()].map((card) => ({ merchant, card })))
    .filter(({ card }) => matches(card, query))
    .sort(({ card: a }, { card: b }) => (sortKey(a) < sortKey(b) ? 1 : -1))
  const start = (query.pageIndex - rules.firstPage) * query.pageSize
  const page = found.slice(start, start + query.pageSize)
  const data = {
    docs: page.map(({ merchant, card }) => showListedCard(merchant, card)),
    totalDocs: found.length,
    totalPages: Math.ceil(found.length / query.pageSize),
  }
  return { data }
}

function sortKey({ createdAt, virtualCardRequestId }: SandboxCard): string {
  return `${createdAt} ${virtualCardRequestId}`
}

function matches(card: SandboxCard, query: z.output<typeof cardFilters>): boolean {
  const createdOn = card.createdAt.slice(0, 10)
  const { dateFr = '', dateTo, requestId, status, cardBrand } = query
  return (
    createdOn >= dateFr &&
    (dateTo === undefined || createdOn <= dateTo) &&
    (requestId === undefined || card.requestId === requestId) &&
    (status === undefined || card.status === status) &&
    (cardBrand === undefined || card.cardData.cardBrand === cardBrand)
  )
}

/**
 * Creates a card, or updates the one with this id. Omitted members keep their value, or are generated for a new card.
 * @throws ControlError 409 if another account has a card with this id
 */
export function putCard(
  { merchants }: SandboxState,
  merchant: SandboxMerchant,
  { merchantCode: _, ...members }: CardInput,
): { card: SandboxCard; isNew: boolean } {
  const id = members.virtualCardRequestId
  const owner = [...merchants.values()].find(({ cards }) => id !== undefined && cards.has(id))
  if (owner !== undefined && owner !== merchant) {
    throw new ControlError(409, 'virtualCardRequestId', 'another account has this card')
  }
  const known = id === undefined ? undefined : merchant.cards.get(id)
  const now = new Date().toISOString()
  const before = known ?? makeCard(merchant, now)
  const card: SandboxCard = {
    ...before,
    updatedAt: now,
    ...members,
    cardData: { ...before.cardData, ...members.cardData },
    cardPolicy: { ...before.cardPolicy, ...members.cardPolicy },
  }
  merchant.cards.set(card.virtualCardRequestId, card)
  return { card, isNew: known === undefined }
}
