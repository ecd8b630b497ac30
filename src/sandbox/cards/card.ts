import { isLosslessNumber, LosslessNumber } from 'lossless-json'
import { z } from 'zod'
import { ControlError, readAmount, readNumber } from '../input.ts'
import type { Book } from '../state.ts'
import { makeCard } from './make.ts'

const text = z.string().min(1)

const instant = z.iso
  .datetime({ offset: true, error: 'expected an ISO 8601 time' })
  .transform((given) => new Date(given).toISOString())

const cardData = z.strictObject({
  cardHolderName: z.string().exactOptional(),
  cardNumber: z
    .string()
    .regex(/^\d{6}\*+\d{4}$/, 'expected a masked number; raw sends any')
    .exactOptional(),
  cardExpiryDate: z
    .string()
    .regex(/^\d{4}-\d{2}$/, 'expected YYYY-MM')
    .exactOptional(),
  cardBrand: text.exactOptional(),
})

const cardPolicy = z.strictObject({
  policyRequestId: text.exactOptional(),
  policyRevision: readNumber.exactOptional(),
  cardCurrency: text.exactOptional(),
  cardLimit: readAmount.exactOptional(),
  minTransAmount: readAmount.exactOptional(),
  maxTransAmount: readAmount.exactOptional(),
  autoCloseCard: z.boolean().exactOptional(),
  activeOnCreate: z.boolean().exactOptional(),
  supportedMccGroup: z.array(z.string()).exactOptional(),
})

/** `raw` is laid over what is sent, member by member and unchecked: a careless gateway. */
export const cardInput = z.strictObject({
  merchantCode: text.optional(),
  virtualCardRequestId: text.max(128).exactOptional(),
  requestId: text.exactOptional(),
  status: text.exactOptional(),
  cardData: cardData.default({}),
  cardPolicy: cardPolicy.default({}),
  extraInfo: z.record(z.string(), z.unknown()).exactOptional(),
  createdAt: instant.exactOptional(),
  updatedAt: instant.exactOptional(),
  raw: z.record(z.string(), z.unknown()).exactOptional(),
})

/** A virtual card (specification 2.2, 2.3). Amounts are decimal strings, the number is masked. */
export type SandboxCard = {
  virtualCardRequestId: string
  requestId: string
  status: string
  cardData: {
    cardHolderName: string
    cardNumber: string
    cardExpiryDate: string
    cardBrand: string
  }
  cardPolicy: {
    policyRequestId: string
    policyRevision: number
    cardCurrency: string
    cardLimit: string
    minTransAmount: string
    maxTransAmount: string
    autoCloseCard: boolean
    activeOnCreate: boolean
    supportedMccGroup: string[]
  }
  extraInfo: Readonly<Record<string, unknown>>
  createdAt: string
  updatedAt: string
  raw: Readonly<Record<string, unknown>>
}

type Members = Readonly<Record<string, unknown>>

/**
 * Makes a card, or changes the one of that id; what is left out stays, or is made up.
 * @throws ControlError 409 when another account has the id
 */
export function putCard(
  { books }: { books: ReadonlyMap<string, Book> },
  book: Book,
  input: z.output<typeof cardInput>,
): { card: SandboxCard; isNew: boolean } {
  const { merchantCode: _, ...members } = input
  const id = input.virtualCardRequestId
  const holder = [...books.values()].find((one) => id !== undefined && one.cards.has(id))
  if (holder !== undefined && holder !== book) {
    throw new ControlError(409, 'virtualCardRequestId', 'another account has this card')
  }
  const known = id === undefined ? undefined : book.cards.get(id)
  const now = new Date().toISOString()
  const before = known ?? makeCard(book, now)
  const card: SandboxCard = {
    ...before,
    updatedAt: now,
    ...members,
    cardData: { ...before.cardData, ...input.cardData },
    cardPolicy: { ...before.cardPolicy, ...input.cardPolicy },
  }
  book.cards.set(card.virtualCardRequestId, card)
  return { card, isNew: known === undefined }
}

/** The detail form (specification 2.2). */
export function showCard({ merchantCode }: Book, card: SandboxCard): Members {
  const { raw, cardData, cardPolicy, requestId, virtualCardRequestId, ...rest } = card
  const shown = {
    requestId,
    virtualCardRequestId,
    merchantCode,
    cardData: { ...cardData, cardCVV: '***' },
    cardPolicy: { ...cardPolicy, ...writeLimits(cardPolicy) },
    ...rest,
  }
  return layOver(shown, raw)
}

/** The list form (specification 2.3): no number, expiry or CVV, no `activeOnCreate`, no groups. */
export function showListedCard({ merchantCode }: Book, card: SandboxCard): Members {
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
  return layOver(shown, raw)
}

function writeLimits({ cardLimit, minTransAmount, maxTransAmount }: SandboxCard['cardPolicy']) {
  return {
    cardLimit: new LosslessNumber(cardLimit),
    minTransAmount: new LosslessNumber(minTransAmount),
    maxTransAmount: new LosslessNumber(maxTransAmount),
  }
}

function layOver(base: Members, over: Members): Members {
  const laid = Object.entries(over).map(([name, value]) => {
    const under = base[name]
    return [name, isMembers(under) && isMembers(value) ? layOver(under, value) : value]
  })
  return { ...base, ...Object.fromEntries(laid) }
}

function isMembers(value: unknown): value is Members {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value)
  )
}
