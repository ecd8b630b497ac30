import { makePages, type Page, type Pages, type PageWish } from './listing.ts'
import type { CallOptions } from './options.ts'
import { parseDecimals } from './parse-decimals.ts'
import { type Transport, writeSegment } from './transport.ts'

/** A member of a gateway's object: it may be missing or null. */
type Given<T> = T | null | undefined
type ListedPolicy = {
  policyRequestId?: Given<string>
  policyRevision?: Given<number>
  cardCurrency?: Given<string>
  /** An exact decimal string, like the other limits. */
  cardLimit?: Given<string>
  minTransAmount?: Given<string>
  maxTransAmount?: Given<string>
  autoCloseCard?: Given<boolean>
}

/** A virtual card in a list, as returned by the gateway: members may be missing, and there may be others. */
export type ListedCard = {
  requestId?: Given<string>
  virtualCardRequestId?: Given<string>
  merchantId?: Given<string>
  /** As the gateway spells it. */
  merchantCode?: Given<string>
  merchantEmail?: Given<string>
  cardData?: Given<{ cardHolderName?: Given<string>; cardBrand?: Given<string> }>
  cardPolicy?: Given<ListedPolicy>
  status?: Given<string>
  extraInfo?: Given<Record<string, unknown>>
  createdAt?: Given<string>
  updatedAt?: Given<string>
}

/** A single virtual card. Its number and CVV are masked. */
export type VirtualCard = Omit<
  ListedCard,
  'cardData' | 'cardPolicy' | 'merchantId' | 'merchantEmail'
> & {
  cardData?: Given<{
    cardHolderName?: Given<string>
    cardBrand?: Given<string>
    cardNumber?: Given<string>
    /** `YYYY-MM` */
    cardExpiryDate?: Given<string>
    cardCVV?: Given<string>
  }>
  cardPolicy?: Given<
    ListedPolicy & { activeOnCreate?: Given<boolean>; supportedMccGroup?: Given<string[]> }
  >
}

/** `limit` is at most the service's `GATEWAY_CARDS_MAX_PAGE_SIZE`, 100 unless it is set. Dates are `YYYY-MM-DD`. */
export type CardFilter = PageWish & {
  /** The service's `GATEWAY_CARDS_FIRST_PAGE`. Default 1. */
  firstPage?: 0 | 1 | undefined
  dateFr?: string | undefined
  dateTo?: string | undefined
  requestId?: string | undefined
  status?: string | undefined
  cardBrand?: string | undefined
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
/** The limits of a policy. */
const AMOUNTS = ['cardLimit', 'minTransAmount', 'maxTransAmount']
/** Some gateways write them as numbers, too long for JavaScript's. */
const IDENTIFIERS = ['requestId', 'virtualCardRequestId', 'merchantId', 'merchantCode']
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
