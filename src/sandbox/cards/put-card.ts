import { z } from 'zod'
import { ControlError, decimalAmount, jsonNumber } from '../control-input.ts'
import type { SandboxMerchant, SandboxState } from '../state.ts'
import type { SandboxCard } from '../types.ts'
import { makeCard } from './make-cards.ts'

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
