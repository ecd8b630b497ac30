import { randomInt } from 'node:crypto'
import { makePick, makeRandom, type Pick } from '../random.ts'
import type { SandboxMerchant } from '../state.ts'
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
  { pick = randomInt, index = cards.size }: { pick?: Pick; index?: number } = {},
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
