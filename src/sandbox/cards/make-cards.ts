import { randomInt } from 'node:crypto'
import { z } from 'zod'
import { ControlError, decimalAmount, jsonNumber } from '../control-input.ts'
import { makePick, makeRandom, type PickNumber } from '../identifiers.ts'
import type { SandboxMerchant, SandboxState } from '../state.ts'
import type { SandboxCard } from '../types.ts'

/** The specification shows the first two (section 3); gateways of this family send the others too. */
export const CARD_STATUSES = [
  'ACTIVED',
  'INACTIVED',
  'INACTIVE',
  'ACTIVE',
  'EXPIRED',
  'LOCKED',
  'FAILED',
] as const

const BRANDS = [
  { cardBrand: 'visa', start: '411111' },
  { cardBrand: 'mastercard', start: '555555' },
  { cardBrand: 'jcb', start: '353011' },
] as const
const HOLDERS = ['NGUYEN VAN A', 'TRAN THI B', 'LE VAN C', 'PHAM THI D']
const GROUPS = ['ADVERTISING', 'TRAVEL', 'SOFTWARE', 'OFFICE']

/** The number of cards a new account has: two of each status. */
const CARDS_AT_START = 2 * CARD_STATUSES.length
const CARDS_IN_A_BATCH = 5
const FIRST_CARD_AT = Date.UTC(2026, 0, 1, 8)
const BETWEEN_CARDS_MS = 17 * 3_600_000

/** Adds generated cards to a merchant. A seed always gives the same cards; `name` is part of their ids. */
export function addCards(
  merchant: SandboxMerchant,
  { seed, name }: { seed: number; name: string },
): SandboxCard[] {
  const pick = makePick(makeRandom(seed))
  return Array.from({ length: CARDS_AT_START }, (_, index) => {
    const at = new Date(FIRST_CARD_AT + index * BETWEEN_CARDS_MS).toISOString()
    const card = {
      ...makeCard(merchant, at, { pick, index }),
      virtualCardRequestId: `VC-${name}-${String(index + 1).padStart(4, '0')}`,
      requestId: `BATCH-${name}-${Math.floor(index / CARDS_IN_A_BATCH) + 1}`,
    }
    merchant.cards.set(card.virtualCardRequestId, card)
    return card
  })
}

/** Generates a card created at `at`, without adding it to the merchant. */
export function makeCard(
  { merchantCode, cards }: SandboxMerchant,
  at: string,
  { pick = randomInt, index = cards.size }: { pick?: PickNumber; index?: number } = {},
): SandboxCard {
  const { cardBrand, start } = BRANDS[index % BRANDS.length] ?? BRANDS[0]
  const isVnd = index % 2 === 0
  const digits = (count: number) => String(pick(10 ** count)).padStart(count, '0')
  return {
    virtualCardRequestId: `VC-${merchantCode}-${digits(9)}`,
    requestId: `BATCH-${merchantCode}-NEW`,
    status: CARD_STATUSES[index % CARD_STATUSES.length] ?? 'ACTIVED',
    cardData: {
      cardHolderName: HOLDERS[pick(HOLDERS.length)] ?? 'NGUYEN VAN A',
      cardNumber: `${start}******${digits(4)}`,
      cardExpiryDate: `${2027 + pick(5)}-${String(1 + pick(12)).padStart(2, '0')}`,
      cardBrand,
    },
    cardPolicy: {
      policyRequestId: `POLICY-${merchantCode}-${1 + (index % 3)}`,
      policyRevision: 1 + pick(4),
      cardCurrency: isVnd ? 'VND' : 'USD',
      cardLimit: isVnd ? `${1 + pick(50)}000000` : `${100 + pick(900)}.50`,
      minTransAmount: isVnd ? '10000' : '0.01',
      maxTransAmount: isVnd ? '1000000' : '99.99',
      autoCloseCard: pick(2) === 0,
      activeOnCreate: pick(2) === 0,
      supportedMccGroup: GROUPS.slice(0, 1 + pick(GROUPS.length)),
    },
    extraInfo: pick(2) === 0 ? {} : { note: 'made by the sandbox' },
    createdAt: at,
    updatedAt: at,
    raw: {},
  }
}

const text = z.string().min(1)

const instant = z.iso
  .datetime({ offset: true, error: 'expected an ISO 8601 time' })
  .transform((given) => new Date(given).toISOString())

const cardData = z.strictObject({
  cardHolderName: z.string().exactOptional(),
  cardNumber: z
    .string()
    .regex(/^\d{6}\*+\d{4}$/, 'expected a masked number; use raw to send any other')
    .exactOptional(),
  cardExpiryDate: z
    .string()
    .regex(/^\d{4}-\d{2}$/, 'expected YYYY-MM')
    .exactOptional(),
  cardBrand: text.exactOptional(),
})

const cardPolicy = z.strictObject({
  policyRequestId: text.exactOptional(),
  policyRevision: jsonNumber.exactOptional(),
  cardCurrency: text.exactOptional(),
  cardLimit: decimalAmount.exactOptional(),
  minTransAmount: decimalAmount.exactOptional(),
  maxTransAmount: decimalAmount.exactOptional(),
  autoCloseCard: z.boolean().exactOptional(),
  activeOnCreate: z.boolean().exactOptional(),
  supportedMccGroup: z.array(z.string()).exactOptional(),
})

/**
 * The body of `POST /sandbox/cards`. `raw` is merged into the JSON sent to clients, member by member
 * and unchecked, to simulate a gateway that sends invalid or unmasked members.
 */
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

/**
 * Creates a card, or updates the one with the given id. Omitted members keep their value; those of a
 * new card are generated.
 * @throws ControlError 409 if another account has a card with this id
 */
export function putCard(
  { merchants }: Pick<SandboxState, 'merchants'>,
  merchant: SandboxMerchant,
  input: z.output<typeof cardInput>,
): { card: SandboxCard; isNew: boolean } {
  const { merchantCode: _, ...members } = input
  const id = input.virtualCardRequestId
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
    cardData: { ...before.cardData, ...input.cardData },
    cardPolicy: { ...before.cardPolicy, ...input.cardPolicy },
  }
  merchant.cards.set(card.virtualCardRequestId, card)
  return { card, isNew: known === undefined }
}
