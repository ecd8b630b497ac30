import { isLosslessNumber, LosslessNumber } from 'lossless-json'
import { z } from 'zod'
import type { CardRules, SandboxMerchant } from '../state.ts'
import type { SandboxCard } from '../types.ts'
import { answerCards, type CardAnswer } from './card-answers.ts'

type Members = Readonly<Record<string, unknown>>

/** Builds the JSON of a single card (specification 2.2). */
export function showCard({ merchantCode }: SandboxMerchant, card: SandboxCard): Members {
  const { raw, cardData, cardPolicy, requestId, virtualCardRequestId, ...rest } = card
  const shown = {
    requestId,
    virtualCardRequestId,
    merchantCode,
    cardData: { ...cardData, cardCVV: '***' },
    cardPolicy: { ...cardPolicy, ...writeLimits(cardPolicy) },
    ...rest,
  }
  return mergeDeep(shown, raw)
}

/**
 * Builds the JSON of a card in a list (specification 2.3): without number, expiry, CVV,
 * `activeOnCreate` and `supportedMccGroup`.
 */
export function showListedCard({ merchantCode }: SandboxMerchant, card: SandboxCard): Members {
  const { raw, cardData, cardPolicy, requestId, virtualCardRequestId, ...rest } = card
  const { activeOnCreate: _, supportedMccGroup: __, ...policy } = cardPolicy
  const shown = {
    requestId,
    virtualCardRequestId,
    merchantId: `M-${merchantCode}`,
    merchantCode,
    merchantEmail: `cards@${merchantCode.toLowerCase().replaceAll(/[^a-z0-9]/g, '-')}.example`,
    cardData: { cardHolderName: cardData.cardHolderName, cardBrand: cardData.cardBrand },
    cardPolicy: { ...policy, ...writeLimits(cardPolicy) },
    ...rest,
  }
  return mergeDeep(shown, raw)
}

function writeLimits({ cardLimit, minTransAmount, maxTransAmount }: SandboxCard['cardPolicy']) {
  return {
    cardLimit: new LosslessNumber(cardLimit),
    minTransAmount: new LosslessNumber(minTransAmount),
    maxTransAmount: new LosslessNumber(maxTransAmount),
  }
}

function mergeDeep(base: Members, overrides: Members): Members {
  const merged = Object.entries(overrides).map(([name, value]) => {
    const before = base[name]
    return [name, isMembers(before) && isMembers(value) ? mergeDeep(before, value) : value]
  })
  return { ...base, ...Object.fromEntries(merged) }
}

function isMembers(value: unknown): value is Members {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value)
  )
}

const day = z.iso.date('must be a day, YYYY-MM-DD')

/** The query parameters (specification 4.2). Defaults and limits are the sandbox's own. */
const cardFilters = z.object({
  dateFr: day.optional(),
  dateTo: day.optional(),
  requestId: z.string().optional(),
  status: z.string().optional(),
  cardBrand: z.string().optional(),
})

const NAMES = ['pageIndex', 'pageSize', ...Object.keys(cardFilters.shape)]

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

type CardListQuery = z.output<ReturnType<typeof makeListQuery>>
type GivenParameters = Readonly<Record<string, readonly string[]>>
type OwnedCard = { merchant: SandboxMerchant; card: SandboxCard }

/** Returns the known parameters that are not empty. Repeated values are joined by commas. */
export function readCardParameters(given: GivenParameters): Record<string, string> {
  const known = Object.entries(given).filter(([name]) => NAMES.includes(name))
  const joined = known.map(([name, values]): [string, string] => [name, values.join(',')])
  return Object.fromEntries(joined.filter(([, value]) => value !== ''))
}

/** Answers a list request (specification 4.2), or refuses it naming the first invalid parameter. */
export function answerCardList(
  merchants: readonly SandboxMerchant[],
  given: GivenParameters,
  rules: CardRules,
): CardAnswer {
  const repeated = NAMES.find((name) => (given[name]?.length ?? 0) > 1)
  if (repeated !== undefined) {
    return answerCards('badParameter', { detail: `${repeated} is given more than once` })
  }
  const { data: query, error } = makeListQuery(rules).safeParse(readCardParameters(given))
  if (error === undefined) return listCards(merchants, query, rules)
  const [issue] = error.issues
  return answerCards('badParameter', { detail: `${issue?.path.join('.')} ${issue?.message}` })
}

/** Lists cards newest first; cards created at the same time are ordered by id. */
function listCards(
  merchants: readonly SandboxMerchant[],
  query: CardListQuery,
  { firstPage }: CardRules,
): CardAnswer {
  const found = merchants
    .flatMap((merchant) => [...merchant.cards.values()].map((card) => ({ merchant, card })))
    .filter(({ card }) => matches(card, query))
    .sort(compareNewestFirst)
  const start = (query.pageIndex - firstPage) * query.pageSize
  const page = found.slice(start, start + query.pageSize)
  const data = {
    docs: page.map(({ merchant, card }) => showListedCard(merchant, card)),
    totalDocs: found.length,
    totalPages: Math.ceil(found.length / query.pageSize),
  }
  return answerCards('success', { data })
}

function matches(card: SandboxCard, query: CardListQuery): boolean {
  const createdOn = card.createdAt.slice(0, 10)
  return (
    (query.dateFr === undefined || createdOn >= query.dateFr) &&
    (query.dateTo === undefined || createdOn <= query.dateTo) &&
    (query.requestId === undefined || card.requestId === query.requestId) &&
    (query.status === undefined || card.status === query.status) &&
    (query.cardBrand === undefined || card.cardData.cardBrand === query.cardBrand)
  )
}

function compareNewestFirst({ card: a }: OwnedCard, { card: b }: OwnedCard): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1
  return a.virtualCardRequestId < b.virtualCardRequestId ? 1 : -1
}

function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`
  return z
    .string()
    .regex(/^(0|[1-9]\d{0,6})$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
}
