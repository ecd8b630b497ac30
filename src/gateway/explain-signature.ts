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
type SignedMessage = {
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

/** A mistake that senders make: words that complete "The hash was computed …", and the hash that it leads to. */
type Mistake = readonly [what: string, hash: (message: SignedMessage) => string]

/**
 * Finds the one mistake with which a sender computed its hash; the most common ones are tried first.
 * @param hash 64 lower-case hexadecimal characters
 * @returns the mistake in words; undefined when none of them explains the hash
 */
export function explainHash(hash: string, message: SignedMessage): string | undefined {
  const mistakes = [...listNames(message), ...listSecrets(message), ...VALUES, ...ASSEMBLY]
  return mistakes.find((mistake) => leadsTo(hash, mistake, message))?.[0]
}

/** A mistake that leaves an object among the values leads to no hash. */
function leadsTo(hash: string, [, compute]: Mistake, message: SignedMessage): boolean {
  try {
    return compute(message) === hash
  } catch (error) {
    if (error instanceof NotSignableError) return false
    throw error
  }
}

/** Members that are in the hash and should not be, or should be and are not. */
function listNames({ params, rule, constants }: SignedMessage): Mistake[] {
  const { prefix, exclude } = rule
  const wire = (name: string) => `${prefix}_${name}`
  const isPresent = (name: string) => Object.hasOwn(params, wire(name))
  const excluding = (names: readonly string[]): Mistake[1] => {
    return ({ secret }) => computeSecureHash(params, secret, { prefix, exclude: names })
  }
  const signed = Object.keys(params)
    .filter((name) => name.startsWith(wire('')))
    .map((name) => name.slice(prefix.length + 1))
    .filter((name) => name !== 'SecureHash' && !exclude.includes(name))
  return [
    ...exclude.filter(isPresent).map((name): Mistake => {
      const what = `with ${wire(name)} in the hash, although this kind of message excludes it`
      return [what, excluding(exclude.filter((one) => one !== name))]
    }),
    ...signed.map((name): Mistake => {
      const what = `without ${wire(name)}, although this kind of message includes it in the hash`
      return [what, excluding([...exclude, name])]
    }),
    ...Object.entries(constants).flatMap(([name, value]): Mistake[] => {
      if (isPresent(name)) return []
      const what = `with ${wire(name)} "${value}", which is missing from the body`
      const completed = { ...params, [wire(name)]: value }
      return [[what, ({ secret }) => computeSecureHash(completed, secret, rule)]]
    }),
    [`with the parameters that do not start with ${prefix}_`, hashWithUnprefixed],
  ]
}

type Entry = { name: string; text: string }

function hashWithUnprefixed({ params, rule, secret }: SignedMessage): string {
  const others = Object.entries(params)
    .filter(([name]) => !name.startsWith(`${rule.prefix}_`))
    .map(([name, value]) => ({ name, text: String(value ?? '') }))
  const all = [...others, ...listSignedParams(params, rule)]
  return sha256(join(all.sort((a, b) => (a.name < b.name ? -1 : 1))) + secret)
}

function listSecrets({ secret, otherSecrets }: SignedMessage): Mistake[] {
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
    .map((other) => [
      other.what,
      ({ params, rule }) => computeSecureHash(params, other.secret, rule),
    ])
}

type Write = (value: unknown, name: string, message: SignedMessage) => unknown

/** The values are written otherwise before they are joined. */
const VALUES: readonly Mistake[] = [
  change('with every number in its shortest form (10000.50 as 10000.5)', onAmount(shortenAmount)),
  change('with numbers written with two decimals (10000 as 10000.00)', onAmount(padDecimals)),
  change(
    'with the values as a form carries them, before decoding',
    (value, name, { encoded }) =>
      encoded.get(name) ?? (typeof value === 'string' ? encodeURIComponent(value) : value),
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
    isNested(value) ? stringify(value) : value,
  ),
  change(
    'with strings in Unicode form NFC',
    onText((text) => text.normalize('NFC')),
  ),
  change(
    'with strings in Unicode form NFD',
    onText((text) => text.normalize('NFD')),
  ),
]

function change(what: string, write: Write): Mistake {
  return [
    what,
    (message) => {
      const { params, rule, secret } = message
      const written = Object.entries(params).map(([name, value]) => [
        name,
        name.startsWith(`${rule.prefix}_`) ? write(value, name, message) : value,
      ])
      return computeSecureHash(Object.fromEntries(written), secret, rule)
    },
  ]
}

function onText(write: (text: string) => string): Write {
  return (value) => (typeof value === 'string' ? write(value) : value)
}

/** Numbers, and the texts of members that are amounts. */
function onAmount(write: (amount: string) => string): Write {
  return (value, name, { rule }) => {
    const isAmount = /^(Trans)?Amount$|^Fee$/.test(name.slice(rule.prefix.length + 1))
    if (!isLosslessNumber(value) && !(typeof value === 'string' && isAmount)) return value
    const amount = parseAmount(String(value))
    return amount === undefined ? value : write(amount)
  }
}

function padDecimals(amount: string): string {
  const [whole = '', part = ''] = amount.split('.')
  return `${whole}.${part.padEnd(2, '0')}`
}

function isNested(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !isLosslessNumber(value)
}

/** The same values, put together otherwise: order, separators, names, position of the secret. */
const ASSEMBLY: readonly Mistake[] = [
  assemble('with the names in the order of the body', (entries, { params, secret }) => {
    const order = Object.keys(params)
    const at = ({ name }: Entry) => order.indexOf(name)
    return sha256(join(entries.sort((a, b) => at(a) - at(b))) + secret)
  }),
  assemble('with the names sorted without regard to case', (entries, { secret }) => {
    const lower = ({ name }: Entry) => name.toLowerCase()
    return sha256(join(entries.sort((a, b) => (lower(a) < lower(b) ? -1 : 1))) + secret)
  }),
  assemble('with values without separator, preceded by the secret', (entries, { secret }) =>
    sha256(secret + join(entries)),
  ),
  assemble(
    'with values without separator, as HMAC-SHA256 with the secret as its key',
    (entries, { secret }) => createHmac('sha256', secret).update(join(entries)).digest('hex'),
  ),
  ...['&', '|', ','].flatMap((separator) => [
    assemble(
      `with values joined by "${separator}", followed by the secret`,
      (entries, { secret }) => sha256(join(entries, separator) + secret),
    ),
    assemble(
      `with values joined by "${separator}", followed by one more separator and the secret`,
      (entries, { secret }) => sha256(join(entries, separator) + separator + secret),
    ),
  ]),
  assemble('with name=value pairs joined by "&", followed by the secret', (entries, { secret }) =>
    sha256(entries.map(({ name, text }) => `${name}=${text}`).join('&') + secret),
  ),
]

function assemble(
  what: string,
  hash: (entries: Entry[], message: SignedMessage) => string,
): Mistake {
  return [what, (message) => hash([...listSignedParams(message.params, message.rule)], message)]
}

function join(entries: readonly Entry[], separator = ''): string {
  return entries.map(({ text }) => text).join(separator)
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
