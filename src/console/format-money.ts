import { groupDigits } from '../platform/html/components.tsx'

/**
 * Formats an amount for reading: `250000` in VND is `250,000 VND`. Every digit stays.
 * @param amount decimal string
 * @param currency null where no notification named one
 */
export function formatMoney(amount: string, currency: string | null): string {
  return currency === null ? groupDigits(amount) : `${groupDigits(amount)} ${currency}`
}
