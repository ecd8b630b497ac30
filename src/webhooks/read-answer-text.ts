import { maskCardText } from '../platform/crypto/masking.ts'

/** Bytes of an answer that are kept. */
export const KEPT_ANSWER_BYTES = 1_024

/**
 * Returns the beginning of an endpoint's answer as text for people: what is not UTF-8 or not printable is replaced, and
 * card data is masked.
 */
export function readAnswerText(body: Buffer): string {
  // Masked before it is cut, so that no number is cut in a way that hides it from the masking.
  const text = new TextDecoder().decode(body).replace(/[^\P{Cc}\n\t]/gu, '\ufffd')
  const bytes = Buffer.from(maskCardText(text)).subarray(0, KEPT_ANSWER_BYTES)
  // As a stream, so that a character that was cut in two is left out.
  return new TextDecoder().decode(bytes, { stream: true })
}
