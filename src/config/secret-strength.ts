import type { MerchantAccount } from './accounts.ts'

/** What random bytes of a secret should at least make: less can be guessed one day. */
export const STRONG_BITS = 128

/** A character of a text in words is worth about this much (Shannon, 1951: 0.6 to 1.3; more for odd spellings). */
const BITS_IN_WORDS = 2

/**
 * Estimates the bits of a secret from its length, its alphabet and its variety. It is never sure: what looks random may
 * have been chosen by a person, so only a low estimate means something.
 */
export function estimateBits(text: string): number {
  const isWords = /^[A-Z]?[a-z]+([-_ .]?[A-Z][a-z]+|[-_ .][a-z]+)*[-_ .]?\d{0,4}$/.test(text)
  if (!isWords || isHex(text)) return measureVariety(text)
  return Math.floor(countUnforeseen(text) * BITS_IN_WORDS)
}

/** The same without regard to words: what it would have if it were random. */
export function measureVariety(text: string): number {
  const length = countUnforeseen(text.slice(0, findPeriod(text)))
  // Random text shows at least a quarter of its alphabet: fewer characters mean a smaller one.
  const distinct = new Set(text).size
  return Math.floor(length * Math.log2(Math.min(measureAlphabet(text), 4 * distinct)))
}

/** A signing secret that may be guessed; `setting` names the current or the previous one. */
export type WeakSecret = { merchantCode: string; which: 'secret' | 'previousSecret'; bits: number }

/** Finds the signing secrets of less than 128 bits. */
export function findWeakSecrets(accounts: readonly MerchantAccount[]): WeakSecret[] {
  return accounts.flatMap((account) =>
    (['secret', 'previousSecret'] as const).flatMap((which) => {
      const secret = account[which]
      const bits = secret === undefined ? STRONG_BITS : estimateBits(secret)
      return bits < STRONG_BITS ? [{ merchantCode: account.merchantCode, which, bits }] : []
    }),
  )
}

const isHex = (text: string) => /^([\da-f]+|[\dA-F]+)$/.test(text)

function measureAlphabet(text: string): number {
  if (/^\d+$/.test(text)) return 10
  if (isHex(text)) return 16
  const classes = [
    [/[a-z]/, 26],
    [/[A-Z]/, 26],
    [/\d/, 10],
    [/[^a-zA-Z\d]/, 2],
  ] as const
  return classes.reduce((sum, [form, size]) => sum + (form.test(text) ? size : 0), 0)
}

/** Finds the length of the part whose repetition is the text; the text's own if it repeats nothing. */
function findPeriod(text: string): number {
  const at = `${text}${text}`.indexOf(text, 1)
  return text.length % at === 0 ? at : text.length
}

/** Counts the characters but those that go on with four equal steps, as in `aaaaa` or `12345`. */
function countUnforeseen(text: string): number {
  const codes = [...text].map((one) => one.codePointAt(0) ?? 0)
  const step = (at: number) => (codes[at] ?? 0) - (codes[at - 1] ?? 0)
  return codes.filter((_, at) => at < 4 || new Set([0, 1, 2, 3].map((n) => step(at - n))).size > 1)
    .length
}
