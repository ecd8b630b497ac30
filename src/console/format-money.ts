import { useView } from './view.ts'

/**
 * Formats an amount for reading, with the separators of the reader's language: `250000` in VND is `250,000 VND`. Every
 * digit stays.
 * @param amount decimal string
 * @param currency null where no notification named one
 */
export function formatMoney(amount: string, currency: string | null): string {
  const { language } = useView()
  const parts = new Intl.NumberFormat(language).formatToParts(1_234_567.5)
  const find = (type: 'group' | 'decimal') => parts.find((part) => part.type === type)?.value ?? ''
  const [whole = '', fraction] = amount.split('.')
  const grouped = whole.replaceAll(/\B(?=(\d{3})+$)/g, find('group'))
  const number = fraction === undefined ? grouped : `${grouped}${find('decimal')}${fraction}`
  return currency === null ? number : `${number} ${currency}`
}
