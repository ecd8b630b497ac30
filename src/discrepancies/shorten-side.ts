import { createHash } from 'node:crypto'

/** Both sides of a discrepancy are part of an index, whose rows are at most 2,700 bytes long. */
const MAX_SIDE = 200

/** Shortens the text of a side of a discrepancy; two that differ stay different. */
export function shortenSide(text: string): string {
  if (text.length <= MAX_SIDE) return text
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `${text.slice(0, MAX_SIDE).toWellFormed()}… (SHA-256 ${digest}…)`
}
