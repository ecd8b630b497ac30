import { DomainError } from '../../errors.ts'
import { compareAmounts, exceedsDecimals, findLeastAmount } from '../../money.ts'

/** What a request asks for. Amounts are decimal strings, without one for all that is left. */
export type AskedAmount = {
  amount: string | undefined
  currency: string | null
  /** All that is left, or all of a surplus: may be refunded however small it is. */
  whole: readonly string[]
}

/**
 * Refuses an amount that its currency does not have: with too many decimals, or less than the smallest unit. Otherwise a
 * payment could be refunded in a million parts, each of them a call of the gateway.
 * @throws DomainError `invalid_request` on `amount`
 */
export function refuseAmount({ amount, currency, whole }: AskedAmount): void {
  if (amount === undefined) return
  if (currency !== null && exceedsDecimals(amount, currency)) {
    throw refuse(`has more decimals than ${currency} has`)
  }
  const least = findLeastAmount(currency)
  if (compareAmounts(amount, least) >= 0) return
  if (whole.some((all) => compareAmounts(amount, all) === 0)) return
  throw refuse(`must be at least ${least}, or all that is left`)
}

function refuse(message: string): DomainError {
  return new DomainError('invalid_request', `amount: ${message}`, {
    errors: [{ path: 'amount', message }],
  })
}
