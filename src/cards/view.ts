import { z } from '@hono/zod-openapi'
import { CARD_ENVELOPE } from '../gateway/card-answers.ts'

// The gateway's objects (specification 2.1 to 2.3), passed on as they come: members may be missing, null or unknown.

/** Some gateways write identifiers as numbers. */
const Identifier = z.union([z.string(), z.number()]).nullish()
const Text = z.string().nullish()
const Flag = z.boolean().nullish()
const Time = Text.openapi({ description: 'ISO 8601', example: '2026-11-20T09:33:03.254Z' })
const Limit = (description: string) =>
  z
    .number()
    .nullish()
    .openapi({ description: `${description}, in \`cardCurrency\``, example: 10000.5 })

const ListedPolicy = z.looseObject({
  policyRequestId: Text.describe('The identifier of the policy request'),
  policyRevision: z.number().nullish().describe('The revision of the policy'),
  cardCurrency: Text.openapi({ description: 'The currency of the card', example: 'VND' }),
  cardLimit: Limit('The limit of the card'),
  minTransAmount: Limit('The least amount of a transaction'),
  maxTransAmount: Limit('The largest amount of a transaction'),
  autoCloseCard: Flag.describe('Whether the card closes automatically'),
})

const Policy = ListedPolicy.extend({
  activeOnCreate: Flag.describe('Whether the card is active when it is created'),
  supportedMccGroup: z
    .array(z.string())
    .nullish()
    .describe('The groups of merchant category codes it can be used for'),
})

const holderAndBrand = {
  cardHolderName: Text.describe('The name on the card'),
  cardBrand: Text.openapi({ description: 'The card network, in lower case', example: 'visa' }),
}

const CardData = z.looseObject({
  ...holderAndBrand,
  cardNumber: Text.openapi({
    description: 'At most the first six and the last four digits',
    example: '411111******5274',
  }),
  cardExpiryDate: Text.openapi({ description: '`YYYY-MM`', example: '2031-12' }),
  cardCVV: Text.openapi({ description: 'Always hidden', example: '***' }),
})

const identifiers = {
  requestId: Identifier.describe('The identifier of the batch request'),
  virtualCardRequestId: Identifier.openapi({
    description: 'The identifier of the card request, by which the card is read',
    example: 'VC-DEMO-0001',
  }),
  merchantCode: Identifier.describe('The merchant account, as the gateway spells it'),
}

const states = {
  status: Text.describe('`ACTIVED`, `INACTIVED`, or another of the gateway'),
  extraInfo: z.looseObject({}).nullish().describe('Whatever the gateway adds'),
  createdAt: Time,
  updatedAt: Time,
}

/** A single card (specification 2.2). */
export const VirtualCard = z
  .looseObject({
    ...identifiers,
    cardData: CardData.nullish(),
    cardPolicy: Policy.nullish(),
    ...states,
  })
  .openapi('VirtualCard')

/** A card in a list (specification 2.3). */
export const ListedCard = z
  .looseObject({
    ...identifiers,
    merchantId: Identifier.describe('The unique identifier of the merchant'),
    merchantEmail: Text.describe('The e-mail address of the merchant'),
    cardData: z.looseObject(holderAndBrand).nullish(),
    cardPolicy: ListedPolicy.nullish(),
    ...states,
  })
  .openapi('ListedCard')

const CardPage = z.looseObject({
  docs: z.array(ListedCard),
  totalDocs: z.number().nullish().describe('How many cards match, over all pages'),
  totalPages: z.number().nullish().describe('How many pages there are'),
})

export const CardEnvelope = z
  .looseObject({ ...CARD_ENVELOPE, data: VirtualCard })
  .openapi('CardEnvelope')

/** The gateway's envelope (specification 2.1). */
export const CardListEnvelope = z
  .looseObject({ ...CARD_ENVELOPE, data: CardPage })
  .openapi('CardListEnvelope')
