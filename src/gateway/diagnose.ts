import { type Attempt, computeAttempt, type Deviation } from './attempt.ts'
import { listDeviations, type Material } from './deviations.ts'
import { NotSignableError } from './signature.ts'

/** Beyond so many slips they are tried one by one only: pairs grow with the square. */
const PAIRS_UP_TO = 250

/** What is in the place of the hash: the hash itself, and what is odd about its form. */
export type GivenHash = { hash: string | undefined; oddity: string | undefined }

/** Reads a hash as generously as it can be understood: around it white space, and in Base64. */
export function readGivenHash(given: unknown): GivenHash {
  if (typeof given !== 'string') return { hash: undefined, oddity: 'it is not a text' }
  const bare = given.trim()
  if (/^[0-9a-f]{64}$/i.test(bare)) {
    const oddity = bare === given ? undefined : 'it has white space around it'
    return { hash: bare.toLowerCase(), oddity }
  }
  const bytes = Buffer.from(bare, 'base64')
  if (/^[\w+/-]{43}=?$/.test(bare) && bytes.length === 32) {
    return { hash: bytes.toString('hex'), oddity: 'it is Base64, not hexadecimal' }
  }
  const kind = /^[0-9a-f]+$/i.test(bare) ? HEX_LENGTHS.get(bare.length) : undefined
  const form = kind ? `as many as ${kind} has` : 'SHA-256 has 64, hexadecimal'
  return { hash: undefined, oddity: `it has ${bare.length} characters, ${form}` }
}

const HEX_LENGTHS = new Map([
  [32, 'MD5'],
  [40, 'SHA-1'],
  [96, 'SHA-384'],
  [128, 'SHA-512'],
])

/**
 * Finds how a sender may have come to its hash: no slip, one, or two together, the usual ones first.
 * @param hash 64 lower-case hexadecimal characters
 * @returns the slips in words, none when the hash is right; `undefined` when nothing tried explains it
 */
export function explainHash(hash: string, material: Material): string[] | undefined {
  const base: Attempt = {
    params: material.params,
    rule: material.rule,
    secret: material.secret,
  }
  if (matches(base, hash)) return []
  const slips = listDeviations(material)
  const single = slips.find((slip) => matches(slip.apply(base), hash))
  if (single) return [single.what]
  if (slips.length > PAIRS_UP_TO) return undefined
  return findPair(base, slips, hash)?.map(({ what }) => what)
}

function findPair(base: Attempt, slips: Deviation[], hash: string): Deviation[] | undefined {
  for (const [at, first] of slips.entries()) {
    const once = first.apply(base)
    const second = slips.slice(at + 1).find((slip) => matches(slip.apply(once), hash))
    if (second) return [first, second]
  }
  return undefined
}

function matches(attempt: Attempt, hash: string): boolean {
  try {
    return computeAttempt(attempt) === hash
  } catch (error) {
    if (error instanceof NotSignableError) return false
    throw error
  }
}
