import { isLosslessNumber, LosslessNumber } from 'lossless-json'
import type { SandboxMerchant } from '../state.ts'
import type { SandboxCard } from '../types.ts'

type Members = Readonly<Record<string, unknown>>

/** Builds the JSON of a single card (specification 2.2). */
export function showCard({ merchantCode }: SandboxMerchant, card: SandboxCard): Members {
  const { raw, cardData, cardPolicy, requestId, virtualCardRequestId, ...rest } = card
  const shown = {
    requestId,
    virtualCardRequestId,
    merchantCode,
    cardData: { ...cardData, cardCVV: '***' },
    cardPolicy: { ...cardPolicy, ...writeLimits(cardPolicy) },
    ...rest,
  }
  return mergeDeep(shown, raw)
}

/**
 * Builds the JSON of a card in a list (specification 2.3): without number, expiry, CVV,
 * `activeOnCreate` and `supportedMccGroup`.
 */
export function showListedCard({ merchantCode }: SandboxMerchant, card: SandboxCard): Members {
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
  return mergeDeep(shown, raw)
}

function writeLimits({ cardLimit, minTransAmount, maxTransAmount }: SandboxCard['cardPolicy']) {
  return {
    cardLimit: new LosslessNumber(cardLimit),
    minTransAmount: new LosslessNumber(minTransAmount),
    maxTransAmount: new LosslessNumber(maxTransAmount),
  }
}

function mergeDeep(base: Members, overrides: Members): Members {
  const merged = Object.entries(overrides).map(([name, value]) => {
    const before = base[name]
    return [name, isMembers(before) && isMembers(value) ? mergeDeep(before, value) : value]
  })
  return { ...base, ...Object.fromEntries(merged) }
}

function isMembers(value: unknown): value is Members {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value)
  )
}
