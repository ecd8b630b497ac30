import { isLosslessNumber, parse, stringify } from 'lossless-json'
import { maskAccount } from '../receiver.ts'

/**
 * Masks an account number in every text and number of a stored answer.
 * @param json as `src/gateway/format-received.ts` writes it; it stays JSON
 */
export function maskAccountIn(json: string, accountNumber: string): string {
  if (accountNumber === '') return json
  return stringify(maskValue(parse(json), accountNumber)) ?? json
}

function maskValue(value: unknown, accountNumber: string): unknown {
  const mask = (text: string) => text.replaceAll(accountNumber, () => maskAccount(accountNumber))
  if (typeof value === 'string') return mask(value)
  if (isLosslessNumber(value)) {
    return value.value.includes(accountNumber) ? mask(value.value) : value
  }
  if (Array.isArray(value)) return value.map((one) => maskValue(one, accountNumber))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      name === 'omittedBytes' ? one : maskValue(one, accountNumber),
    ]),
  )
}
