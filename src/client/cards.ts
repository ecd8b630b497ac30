import { type Listing, makeListing, type PageWish } from './listing.ts'
import type { CallOptions } from './options.ts'
import { parseDecimals } from './parse-decimals.ts'
import { type Transport, writeSegment } from './transport.ts'

/** A virtual card in a list, as returned by the gateway: members may be missing, and there may be others. */
export type ListedCard = {
  requestId?: string
  virtualCardRequestId?: string
  merchantId?: string
  merchantCode?: string
  merchantEmail?: string
  cardData?: { cardHolderName?: string; cardBrand?: string }
  cardPolicy?: {
    policyRequestId?: string
    policyRevision?: number
    cardCurrency?: string
    /** An exact decimal string, like the other limits. */
    cardLimit?: string
    minTransAmount?: string
    maxTransAmount?: string
    autoCloseCard?: boolean
    activeOnCreate?: boolean
    supportedMccGroup?: string[]
  }
  status?: string
  extraInfo?: Record<string, unknown>
  createdAt?: string
  updatedAt?: string
}

/** A single virtual card. Its number and CVV are masked. */
export type VirtualCard = Omit<ListedCard, 'cardData' | 'merchantId' | 'merchantEmail'> & {
  cardData?: ListedCard['cardData'] & {
    cardNumber?: string
    /** `YYYY-MM` */
    cardExpiryDate?: string
    cardCVV?: string
  }
}

/** `limit` is at most 100. Dates are `YYYY-MM-DD`. */
export type CardFilter = PageWish & {
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
   * @throws NotFoundError, UnavailableError
   */
  get(virtualCardRequestId: string, options?: CardOptions): Promise<VirtualCard>
  /** Lists cards in the gateway's order. */
  list(filter?: CardFilter, options?: CardOptions): Listing<ListedCard>
}

const PATH = '/v2/vc/virtual-cards'
/** The limits of a policy. All other numbers in the gateway's response are counts. */
const AMOUNTS = ['cardLimit', 'minTransAmount', 'maxTransAmount']
const parse = (text: string) => parseDecimals(text, AMOUNTS)

type CardPage = { docs: ListedCard[]; totalPages?: number }

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
    list: ({ cursor: from, limit, ...filter } = {}, options) =>
      makeListing(async (cursor = '1') => {
        const query = { ...filter, pageIndex: cursor, pageSize: limit }
        const { docs, totalPages = 0 } = await read<CardPage>(PATH, query, options)
        const next = Number(cursor) + 1
        return { data: docs, nextCursor: next <= totalPages ? String(next) : null }
      }, from),
  }
}
