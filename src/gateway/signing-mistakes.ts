import { createHash, createHmac } from 'node:crypto'
import { isLosslessNumber, stringify } from 'lossless-json'
import { parseAmount, shortenAmount } from '../money.ts'
import {
  computeSecureHash,
  listSignedParams,
  NotSignableError,
  type SignatureRule,
  type WireParams,
} from './signature.ts'

/** A signed message, and what its sender may have confused. */
export type SignedMessage = {
  params: WireParams
  rule: SignatureRule
  secret: string
  /** Other secrets that may have been used; `what` completes the sentence "The hash was computed …". */
  otherSecrets: readonly { what: string; secret: string }[]
  /** Values that every message of this kind carries, by name without prefix. */
  constants: Readonly<Record<string, string>>
  /** The values of a form before decoding, by wire name. */
  encoded: ReadonlyMap<string, string>
}

/** A mistake that senders make, and the hash that it leads to. `what` completes "The hash was computed …". */
type Mistake = { what: string; hash: () => string }

/**
 * Finds the one mistake with which a sender computed its hash; the most common ones are tried first.
 * @param hash 64 lower-case hexadecimal characters
 * @returns the mistake in words; undefined when none of them explains the hash
 */
export function explainHash(hash: string, message: SignedMessage): string | undefined {
  const mistakes = [
    ...listNameMistakes(message),
    ...listSecretMistakes(message),
    ...listValueMistakes(message),
    ...listAssemblyMistakes(message),
  ]
  return mistakes.find((mistake) => computes(mistake, hash))?.what
}

/** A mistake that leaves an object among the values leads to no hash. */
function computes(mistake: Mistake, hash: string): boolean {
  try {
    return mistake.hash() === hash
  } catch (error) {
    if (error instanceof NotSignableError) return false
    throw error
  }
}

function listNameMistakes({ params, rule, secret, constants }: SignedMessage): Mistake[] {
  const { prefix, exclude } = rule
  const wire = (name: string) => `${prefix}_${name}`
  const isPresent = (name: string) => Object.hasOwn(params, wire(name))
  const excluding = (names: readonly string[]) => () =>
    computeSecureHash(params, secret, { ...rule, exclude: names })
  const signed = Object.keys(params)
    .filter((name) => name.startsWith(wire('')))
    .map((name) => name.slice(prefix.length + 1))
    .filter((name) => name !== 'SecureHash' && !exclude.includes(name))
  return [
    ...exclude.filter(isPresent).map((name) => ({
      what: `with ${wire(name)} in the hash, although this kind of message excludes it`,
      hash: excluding(exclude.filter((one) => one !== name)),
    })),
    ...signed.map((name) => ({
      what: `without ${wire(name)}, although this kind of message includes it in the hash`,
      hash: excluding([...exclude, name]),
    })),
    ...Object.entries(constants)
      .filter(([name]) => !isPresent(name))
      .map(([name, value]) => ({
        what: `with ${wire(name)} "${value}", which is missing from the body`,
        hash: () => computeSecureHash({ ...params, [wire(name)]: value }, secret, rule),
      })),
    {
      what: `with the parameters that do not start with ${prefix}_`,
      hash: () =>
        hashEntries([...listUnprefixed(params, prefix), ...listSignedParams(params, rule)], secret),
    },
  ]
}

type Entry = { name: string; text: string }

const byName = (a: Entry, b: Entry) => (a.name < b.name ? -1 : 1)

function listUnprefixed(params: WireParams, prefix: string): Entry[] {
  return Object.entries(params)
    .filter(([name]) => !name.startsWith(`${prefix}_`))
    .map(([name, value]) => ({ name, text: String(value ?? '') }))
}

const hashEntries = (entries: Entry[], secret: string) =>
  sha256(
    entries
      .sort(byName)
      .map(({ text }) => text)
      .join('') + secret,
  )

function listSecretMistakes({ params, rule, secret, otherSecrets }: SignedMessage): Mistake[] {
  const bare = secret.trim()
  const others = [
    ...otherSecrets,
    { what: 'with the secret without the white space around it', secret: bare },
    {
      what: 'with the secret without the quotes around it',
      secret: bare.replace(/^(["'])(.*)\1$/s, '$2'),
    },
    { what: 'with a line break after the secret', secret: `${bare}\n` },
    { what: 'with a Windows line break after the secret', secret: `${bare}\r\n` },
    { what: 'without any secret', secret: '' },
  ]
  return others
    .filter((other) => other.secret !== secret)
    .map((other) => ({
      what: other.what,
      hash: () => computeSecureHash(params, other.secret, rule),
    }))
}

function listValueMistakes({ params, rule, secret, encoded }: SignedMessage): Mistake[] {
  const { prefix } = rule
  const change = (what: string, write: (value: unknown, name: string) => unknown) => ({
    what,
    hash: () => computeSecureHash(mapValues(params, prefix, write), secret, rule),
  })
  const onText = (write: (text: string) => string) => (value: unknown) =>
    typeof value === 'string' ? write(value) : value
  const isAmount = (name: string) => /^(Trans)?Amount$|^Fee$/.test(name.slice(prefix.length + 1))
  const onAmount = (write: (amount: string) => string) => (value: unknown, name: string) => {
    const text = isLosslessNumber(value) || typeof value === 'string' ? String(value) : ''
    const amount = isLosslessNumber(value) || isAmount(name) ? parseAmount(text) : undefined
    return amount === undefined ? value : write(amount)
  }
  return [
    change('with every number in its shortest form (10000.50 as 10000.5)', onAmount(shortenAmount)),
    change('with numbers written with two decimals (10000 as 10000.00)', onAmount(padDecimals)),
    change(
      'with the values as a form carries them, before decoding',
      (value, name) => encoded.get(name) ?? onText(encodeURIComponent)(value),
    ),
    change(
      'with every "+" of a form decoded to a space',
      onText((text) => text.replaceAll('+', ' ')),
    ),
    change(
      'without the white space around values',
      onText((text) => text.trim()),
    ),
    change('with null written as "null"', (value) => (value === null ? 'null' : value)),
    change('with objects as their JSON text', (value) =>
      typeof value === 'object' && value !== null && !isLosslessNumber(value)
        ? stringify(value)
        : value,
    ),
    ...(['NFC', 'NFD'] as const).map((form) =>
      change(
        `with strings in Unicode form ${form}`,
        onText((text) => text.normalize(form)),
      ),
    ),
  ]
}

function mapValues(
  params: WireParams,
  prefix: string,
  write: (value: unknown, name: string) => unknown,
): WireParams {
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      name.startsWith(`${prefix}_`) ? write(value, name) : value,
    ]),
  )
}

function padDecimals(amount: string): string {
  const [whole = '', part = ''] = amount.split('.')
  return `${whole}.${part.padEnd(2, '0')}`
}

/** The same values, put together otherwise: order, separators, names, position of the secret. */
function listAssemblyMistakes({ params, rule, secret }: SignedMessage): Mistake[] {
  const bodyOrder = Object.keys(params)
  const at = ({ name }: Entry) => bodyOrder.indexOf(name)
  const lower = ({ name }: Entry) => name.toLowerCase()
  const assemble = (what: string, join: (entries: Entry[]) => string): Mistake => ({
    what,
    hash: () => join([...listSignedParams(params, rule)]),
  })
  const values = (entries: Entry[], separator = '') =>
    entries.map(({ text }) => text).join(separator)
  const pairs = (entries: Entry[]) => entries.map(({ name, text }) => `${name}=${text}`).join('&')
  return [
    assemble('with the names in the order of the body', (entries) =>
      sha256(values(entries.sort((a, b) => at(a) - at(b))) + secret),
    ),
    assemble('with the names sorted without regard to case', (entries) =>
      sha256(values(entries.sort((a, b) => (lower(a) < lower(b) ? -1 : 1))) + secret),
    ),
    assemble('with values without separator, preceded by the secret', (entries) =>
      sha256(secret + values(entries)),
    ),
    assemble(
      'with values without separator, as HMAC-SHA256 with the secret as its key',
      (entries) => createHmac('sha256', secret).update(values(entries)).digest('hex'),
    ),
    ...['&', '|', ','].flatMap((separator) => [
      assemble(`with values joined by "${separator}", followed by the secret`, (entries) =>
        sha256(values(entries, separator) + secret),
      ),
      assemble(
        `with values joined by "${separator}", followed by one more separator and the secret`,
        (entries) => sha256(values(entries, separator) + separator + secret),
      ),
    ]),
    assemble('with name=value pairs joined by "&", followed by the secret', (entries) =>
      sha256(pairs(entries) + secret),
    ),
  ]
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
