import { z } from 'zod'
import type { SandboxMerchant } from '../state.ts'
import type { SandboxCard } from '../types.ts'
import { answerCards, type CardAnswer } from './card-answers.ts'
import { showListedCard } from './show-card.ts'

const MAX_PAGE_SIZE = 100

const day = z.iso.date('must be a day, YYYY-MM-DD')

/** The query parameters (specification 4.2). Defaults and limits are the sandbox's own. */
const cardListQuery = z
  .object({
    pageIndex: positiveInteger(1_000_000).default(1),
    pageSize: positiveInteger(MAX_PAGE_SIZE).default(10),
    dateFr: day.optional(),
    dateTo: day.optional(),
    requestId: z.string().optional(),
    status: z.string().optional(),
    cardBrand: z.string().optional(),
  })
  .refine(({ dateFr = '', dateTo = '9999' }) => dateFr <= dateTo, {
    path: ['dateFr'],
    message: 'must not be after dateTo',
  })

type CardListQuery = z.output<typeof cardListQuery>
type GivenParameters = Readonly<Record<string, readonly string[]>>
type OwnedCard = { merchant: SandboxMerchant; card: SandboxCard }

/** Returns the known parameters that are not empty. Repeated values are joined by commas. */
export function readCardParameters(given: GivenParameters): Record<string, string> {
  const known = Object.entries(given).filter(([name]) => Object.hasOwn(cardListQuery.shape, name))
  const joined = known.map(([name, values]): [string, string] => [name, values.join(',')])
  return Object.fromEntries(joined.filter(([, value]) => value !== ''))
}

/** Answers a list request (specification 4.2), or refuses it naming the first invalid parameter. */
export function answerCardList(
  merchants: readonly SandboxMerchant[],
  given: GivenParameters,
): CardAnswer {
  const repeated = Object.keys(cardListQuery.shape).find((name) => (given[name]?.length ?? 0) > 1)
  if (repeated !== undefined) {
    return answerCards('badParameter', { detail: `${repeated} is given more than once` })
  }
  const { data: query, error } = cardListQuery.safeParse(readCardParameters(given))
  if (error === undefined) return listCards(merchants, query)
  const [issue] = error.issues
  return answerCards('badParameter', { detail: `${issue?.path.join('.')} ${issue?.message}` })
}

/** Lists cards newest first; cards created at the same time are ordered by id. */
function listCards(merchants: readonly SandboxMerchant[], query: CardListQuery): CardAnswer {
  const found = merchants
    .flatMap((merchant) => [...merchant.cards.values()].map((card) => ({ merchant, card })))
    .filter(({ card }) => matches(card, query))
    .sort(compareNewestFirst)
  const start = (query.pageIndex - 1) * query.pageSize
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

function positiveInteger(max: number) {
  const message = `must be a whole number from 1 to ${max}`
  return z
    .string()
    .regex(/^[1-9]\d{0,6}$/, message)
    .transform(Number)
    .refine((value) => value <= max, message)
}
