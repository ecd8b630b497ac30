import { createHmac, hash } from 'node:crypto'
import { isLosslessNumber, stringify } from 'lossless-json'
import { parseAmount, shortenAmount } from '../money.ts'
import {
  computeSecureHash,
  ifSignable,
  joinTexts,
  listSignedParams,
  type SignatureRule,
  type SignedMember,
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

/** Words that complete "The hash was computed …", and the hash that this mistake leads to. */
type Mistake = readonly [what: string, hash: () => string]

/**
 * Finds the one mistake with which a sender computed its hash; the most common ones are tried first. A mistake that
 * leaves an object among the values leads to no hash.
 * @param given 64 lower-case hexadecimal characters
 * @returns the mistake in words; undefined when none of them explains the hash
 */
export function explainHash(given: string, message: SignedMessage): string | undefined {
  const { params, rule, secret } = message
  const mistakes: Mistake[] = [
    ...listNames(message),
    ...listSecrets(message),
    ...Object.entries(VALUES).map(([what, write]): Mistake => {
      const writeEach = ([name, value]: [string, unknown]) =>
        [name, name.startsWith(`${rule.prefix}_`) ? write(value, name, message) : value] as const
      const written = () => Object.fromEntries(Object.entries(params).map(writeEach))
      return [what, () => computeSecureHash(written(), secret, rule)]
    }),
    ...Object.entries(ASSEMBLY).map(([what, assemble]): Mistake => {
      return [what, () => assemble(listSignedParams(params, rule), secret, Object.keys(params))]
    }),
  ]
  return mistakes.find(([, compute]) => ifSignable(compute) === given)?.[0]
}

/** Members that are in the hash and should not be, or should be and are not. */
function listNames({ params, rule, constants, secret }: SignedMessage): Mistake[] {
  const { prefix, exclude } = rule
  const wire = (name: string) => `${prefix}_${name}`
  const isPresent = (name: string) => Object.hasOwn(params, wire(name))
  const excluding = (names: readonly string[]) => () =>
    computeSecureHash(params, secret, { prefix, exclude: names })
  const signed = Object.keys(params)
    .filter((name) => name.startsWith(wire('')))
    .map((name) => name.slice(prefix.length + 1))
    .filter((name) => name !== 'SecureHash' && !exclude.includes(name))
  const missing = Object.entries(constants).filter(([name]) => !isPresent(name))
  return [
    ...exclude.filter(isPresent).map((name): Mistake => {
      const what = `with ${wire(name)} in the hash, although this kind of message excludes it`
      return [what, excluding(exclude.filter((one) => one !== name))]
    }),
    ...signed.map((name): Mistake => {
      const what = `without ${wire(name)}, although this kind of message includes it in the hash`
      return [what, excluding([...exclude, name])]
    }),
    ...missing.map(([name, value]): Mistake => {
      const what = `with ${wire(name)} "${value}", which is missing from the body`
      return [what, () => computeSecureHash({ ...params, [wire(name)]: value }, secret, rule)]
    }),
    [
      `with the parameters that do not start with ${prefix}_`,
      () => {
        const others = Object.entries(params)
          .filter(([name]) => !name.startsWith(wire('')))
          .map(([name, value]) => ({ name, text: String(value ?? '') }))
        const all = [...others, ...listSignedParams(params, rule)]
        return sha256(joinTexts(all.sort((a, b) => (a.name < b.name ? -1 : 1))) + secret)
      },
    ],
  ]
}

function listSecrets({ params, rule, secret, otherSecrets }: SignedMessage): Mistake[] {
  const bare = secret.trim()
  const others = [
    ...otherSecrets.map((other) => [other.what, other.secret] as const),
    ['with the secret without the white space around it', bare],
    ['with the secret without the quotes around it', bare.replace(/^(["'])(.*)\1$/s, '$2')],
    ['with a line break after the secret', `${bare}\n`],
    ['with a Windows line break after the secret', `${bare}\r\n`],
    ['without any secret', ''],
  ] as const
  return others
    .filter(([, other]) => other !== secret)
    .map(([what, other]) => [what, () => computeSecureHash(params, other, rule)])
}

type Write = (value: unknown, name: string, message: SignedMessage) => unknown

/** The values are written otherwise before they are joined. */
const VALUES: Readonly<Record<string, Write>> = {
  'with every number in its shortest form (10000.50 as 10000.5)': onAmount(shortenAmount),
  'with numbers written with two decimals (10000 as 10000.00)': onAmount(padDecimals),
  'with the values as a form carries them, before decoding': (value, name, { encoded }) =>
    encoded.get(name) ?? (typeof value === 'string' ? encodeURIComponent(value) : value),
  'with every "+" of a form decoded to a space': onText((text) => text.replaceAll('+', ' ')),
  'without the white space around values': onText((text) => text.trim()),
  'with null written as "null"': (value) => (value === null ? 'null' : value),
  'with objects as their JSON text': (value) =>
    typeof value === 'object' && value !== null && !isLosslessNumber(value)
      ? stringify(value)
      : value,
  'with strings in Unicode form NFC': onText((text) => text.normalize('NFC')),
  'with strings in Unicode form NFD': onText((text) => text.normalize('NFD')),
}

function onText(write: (text: string) => string): Write {
  return (value) => (typeof value === 'string' ? write(value) : value)
}

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

type Assemble = (members: SignedMember[], secret: string, names: readonly string[]) => string

const joinBy = (members: readonly SignedMember[], separator: string) =>
  members.map(({ text }) => text).join(separator)

/** The same values, put together otherwise: order, separators, names, position of the secret. */
const ASSEMBLY: Readonly<Record<string, Assemble>> = {
  'with the names in the order of the body': (members, secret, names) => {
    const at = ({ name }: SignedMember) => names.indexOf(name)
    return sha256(joinTexts(members.sort((a, b) => at(a) - at(b))) + secret)
  },
  'with the names sorted without regard to case': (members, secret) => {
    const lower = ({ name }: SignedMember) => name.toLowerCase()
    return sha256(joinTexts(members.sort((a, b) => (lower(a) < lower(b) ? -1 : 1))) + secret)
  },
  'with values without separator, preceded by the secret': (members, secret) =>
    sha256(secret + joinTexts(members)),
  'with values without separator, as HMAC-SHA256 with the secret as its key': (members, secret) =>
    createHmac('sha256', secret).update(joinTexts(members)).digest('hex'),
  ...Object.fromEntries(
    ['&', '|', ','].flatMap((separator): [string, Assemble][] => [
      [
        `with values joined by "${separator}", followed by the secret`,
        (members, secret) => sha256(joinBy(members, separator) + secret),
      ],
      [
        `with values joined by "${separator}", followed by one more separator and the secret`,
        (members, secret) => sha256(joinBy(members, separator) + separator + secret),
      ],
    ]),
  ),
  'with name=value pairs joined by "&", followed by the secret': (members, secret) =>
    sha256(members.map(({ name, text }) => `${name}=${text}`).join('&') + secret),
}

function sha256(text: string): string {
  return hash('sha256', text)
}
