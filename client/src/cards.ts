import { parseDecimals } from './decimals.ts'
import { type Transport, writeSegment } from './http.ts'
import { makePages, type Page, type PageOptions, type Pages } from './lists.ts'
import type { CallOptions } from './options.ts'
import type {
  ListedCard as ListedByGateway,
  Queries,
  VirtualCard as ReadFromGateway,
} from './types.gen.ts'

/** The limits of a policy: numbers in the gateway's answer, exact decimal strings here. */
const AMOUNTS = ['cardLimit', 'minTransAmount', 'maxTransAmount'] as const
/** Some gateways write them as numbers, too long for JavaScript's. */
const IDENTIFIERS = ['requestId', 'virtualCardRequestId', 'merchantId', 'merchantCode'] as const

type Text = (typeof AMOUNTS | typeof IDENTIFIERS)[number]

/** An object of the gateway with exact texts for the numbers that JavaScript would round. */
type Exact<T> = T extends object
  ? { [Name in keyof T]: Name extends Text ? string | null | undefined : Exact<T[Name]> }
  : T

/** A virtual card in a list, as returned by the gateway: members may be missing, and there may be others. */
export type ListedCard = Exact<ListedByGateway>

/** A single virtual card. Its number and CVV are masked. */
export type VirtualCard = Exact<ReadFromGateway>

/** `limit` is at most the service's `GATEWAY_CARDS_MAX_PAGE_SIZE`, 100 unless it is set. Dates are `YYYY-MM-DD`. */
export type CardFilter = PageOptions &
  Omit<Queries['listCards'], 'pageIndex' | 'pageSize'> & {
    /** The service's `GATEWAY_CARDS_FIRST_PAGE`. Default 1. */
    firstPage?: 0 | 1 | undefined
  }

/** `language` selects the language of the gateway's messages. */
export type CardOptions = CallOptions & { language?: 'en' | 'vi' | undefined }

export type Cards = {
  /**
   * Returns a card.
   * @throws NotFoundError, UnavailableError; its `code` is `card_refused` if the gateway refused the read
   */
  get(virtualCardRequestId: string, options?: CardOptions): Promise<VirtualCard>
  /**
   * Lists cards in the gateway's order, to the last page. A gateway that gives no number of pages is asked until
   * a page is empty or the same as the one before.
   */
  list(filter?: CardFilter, options?: CardOptions): Pages<ListedCard>
}

const PATH = '/v2/vc/virtual-cards'
const parse = (text: string) => parseDecimals(text, [...AMOUNTS, ...IDENTIFIERS])

type CardPage = { docs: ListedCard[]; totalPages?: unknown }

/** Creates the methods of `client.cards`. */
export function createCards(transport: Transport): Cards {
  async function read<T>(path: string, query: object, options: CardOptions = {}): Promise<T> {
    const { language, ...limits } = options
    const headers = language === undefined ? {} : { 'accept-language': language }
    const request = { path, query: { ...query }, headers, parse }
    const { data } = await transport.request<{ data: T }>(request, limits)
    return data
  }

  return {
    get: (id, options) => read(`${PATH}/${writeSegment('virtualCardRequestId', id)}`, {}, options),
    list: ({ cursor: from, limit, firstPage = 1, ...filter } = {}, options) => {
      let before: { index: number; text: string } | undefined
      return makePages(async (cursor = String(firstPage)) => {
        const query = { ...filter, pageIndex: cursor, pageSize: limit }
        const page = await read<CardPage>(PATH, query, options)
        const index = Number(cursor)
        const next = { data: page.docs, nextCursor: String(index + 1) }
        const { totalPages } = page
        if (typeof totalPages === 'number') {
          return index - firstPage + 1 < totalPages ? next : end(page.docs)
        }
        const text = JSON.stringify(page.docs)
        // Some gateways answer with their last page whatever is asked for beyond it.
        if (before?.index === index - 1 && before.text === text) return end([])
        before = { index, text }
        return page.docs.length > 0 ? next : end([])
      }, from)
    },
  }
}

const end = (data: ListedCard[]): Page<ListedCard> => ({ data, nextCursor: null })
