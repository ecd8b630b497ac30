import { z } from 'zod'
import type { Book } from '../state.ts'
import { answerCards, type CardAnswer } from './answers.ts'
import { type SandboxCard, showListedCard } from './card.ts'

const MAX_PAGE_SIZE = 100

const day = z.iso.date('must be a day, YYYY-MM-DD')

/** The query parameters (specification 4.2); defaults and limits are the sandbox's own. */
const cardListQuery = z
  .object({
    pageIndex: readWhole(1_000_000).default(1),
    pageSize: readWhole(MAX_PAGE_SIZE).default(10),
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
type Given = Readonly<Record<string, readonly string[]>>
type Found = { book: Book; card: SandboxCard }

/** The known parameters, each once; an empty one counts as left out. What repeats is joined by commas. */
export function readCardParameters(given: Given): Record<string, string> {
  const known = Object.entries(given).filter(([name]) => Object.hasOwn(cardListQuery.shape, name))
  const written = known.map(([name, values]): [string, string] => [name, values.join(',')])
  return Object.fromEntries(written.filter(([, value]) => value !== ''))
}

/** The list (specification 4.2), or a refusal that names the first parameter that is wrong. */
export function answerCardList(books: readonly Book[], given: Given): CardAnswer {
  const twice = Object.keys(cardListQuery.shape).find((name) => (given[name]?.length ?? 0) > 1)
  if (twice !== undefined) {
    return answerCards('badParameter', { detail: `${twice} is given more than once` })
  }
  const { data: query, error } = cardListQuery.safeParse(readCardParameters(given))
  if (error === undefined) return listCards(books, query)
  const [issue] = error.issues
  return answerCards('badParameter', { detail: `${issue?.path.join('.')} ${issue?.message}` })
}

/** Newest first; what was created at the same moment goes by its id. */
function listCards(books: readonly Book[], query: CardListQuery): CardAnswer {
  const found = books
    .flatMap((book) => [...book.cards.values()].map((card) => ({ book, card })))
    .filter(({ card }) => matches(card, query))
    .sort(compareNewestFirst)
  const start = (query.pageIndex - 1) * query.pageSize
  const page = found.slice(start, start + query.pageSize)
  const data = {
    docs: page.map(({ book, card }) => showListedCard(book, card)),
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

function compareNewestFirst({ card: a }: Found, { card: b }: Found): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1
  return a.virtualCardRequestId < b.virtualCardRequestId ? 1 : -1
}

function readWhole(max: number) {
  const message = `must be a whole number from 1 to ${max}`
  return z
    .string()
    .regex(/^[1-9]\d{0,6}$/, message)
    .transform(Number)
    .refine((value) => value <= max, message)
}
