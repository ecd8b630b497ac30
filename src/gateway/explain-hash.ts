import { computeVariant, type HashVariant, type SigningMistake } from './hash-variant.ts'
import { NotSignableError } from './signature.ts'
import { listSigningMistakes, type SignedMessage } from './signing-mistakes.ts'

/** With more mistakes than this only single ones are tried: the number of pairs grows quadratically. */
const MAX_PAIRED = 250

/** The hash that a value can be read as, and how its form deviates from the specification. */
export type GivenHash = { hash: string | undefined; oddity: string | undefined }

const HEX_LENGTHS = new Map([
  [32, 'MD5'],
  [40, 'SHA-1'],
  [96, 'SHA-384'],
  [128, 'SHA-512'],
])

/** Reads a hash leniently: white space around it, either letter case, and Base64 are accepted. */
export function readGivenHash(given: unknown): GivenHash {
  if (typeof given !== 'string') return { hash: undefined, oddity: 'it is not a string' }
  const bare = given.trim()
  if (/^[0-9a-f]{64}$/i.test(bare)) {
    const oddity = bare === given ? undefined : 'it has white space around it'
    return { hash: bare.toLowerCase(), oddity }
  }
  const bytes = Buffer.from(bare, 'base64')
  if (/^[\w+/-]{43}=?$/.test(bare) && bytes.length === 32) {
    return { hash: bytes.toString('hex'), oddity: 'it is Base64, not hexadecimal' }
  }
  const algorithm = /^[0-9a-f]+$/i.test(bare) ? HEX_LENGTHS.get(bare.length) : undefined
  const form = algorithm ? `the length of ${algorithm}` : 'SHA-256 has 64 hexadecimal ones'
  return { hash: undefined, oddity: `it has ${bare.length} characters, ${form}` }
}

/**
 * Finds how a sender may have computed its hash: correctly, with one mistake, or with two. The most common
 * mistakes are tried first.
 * @param hash 64 lower-case hexadecimal characters
 * @returns the mistakes in words, none when the hash is correct; `undefined` when nothing tried explains it
 */
export function explainHash(hash: string, message: SignedMessage): string[] | undefined {
  const correct: HashVariant = {
    params: message.params,
    rule: message.rule,
    secret: message.secret,
  }
  if (matches(correct, hash)) return []
  const mistakes = listSigningMistakes(message)
  const single = mistakes.find((mistake) => matches(mistake.apply(correct), hash))
  if (single) return [single.what]
  if (mistakes.length > MAX_PAIRED) return undefined
  return findPair(correct, mistakes, hash)?.map(({ what }) => what)
}

function findPair(
  correct: HashVariant,
  mistakes: SigningMistake[],
  hash: string,
): SigningMistake[] | undefined {
  for (const [at, first] of mistakes.entries()) {
    const once = first.apply(correct)
    const second = mistakes.slice(at + 1).find((mistake) => matches(mistake.apply(once), hash))
    if (second) return [first, second]
  }
  return undefined
}

function matches(variant: HashVariant, hash: string): boolean {
  try {
    return computeVariant(variant) === hash
  } catch (error) {
    if (error instanceof NotSignableError) return false
    throw error
  }
}
