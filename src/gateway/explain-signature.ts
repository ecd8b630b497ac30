import { createHmac, hash } from 'node:crypto'
import { isLosslessNumber, stringify } from 'lossless-json'
import { parseAmount, shortenAmount } from '../money.ts'
import type { SignatureRule, SignedMember, WireParams } from './signature.ts'
import { computeSecureHash, ifSignable, joinTexts, listSignedParams } from './signature.ts'

type SignedMessage = {
  params: WireParams
  rule: SignatureRule
  secret: string
  /** Other secrets that the sender may have used; `what` completes "The hash was computed …". */
  otherSecrets: readonly { what: string; secret: string }[]
  /** Values that every message of this kind has, by name without prefix. */
  constants: Readonly<Record<string, string>>
}

/** `what` completes "The hash was computed …"; `hash` computes the hash with this mistake. */
type Mistake = readonly [what: string, hash: () => string]

/**
 * Finds the one mistake that leads to the given hash, and describes it. Common mistakes are tried first.
 * @param given 64 lower-case hexadecimal characters
 */
export function explainHash(given: string, message: SignedMessage): string | undefined {
  const lists = [listNames, listSecrets, listValues, listAssemblies]
  const mistakes = lists.flatMap((list) => [...list(message)])
  return mistakes.find(([, compute]) => ifSignable(compute) === given)?.[0]
}

function* listNames({ params, rule, constants, secret }: SignedMessage): Generator<Mistake> {
  const { prefix, exclude } = rule
  const excluding = (names: readonly string[], given = params) => {
    return () => computeSecureHash(given, secret, { prefix, exclude: names })
  }
  for (const name of exclude) {
    const what = `with ${prefix}_${name} in the hash, although this kind of message excludes it`
    yield [what, excluding(exclude.filter((one) => one !== name))]
  }
  const own = Object.keys(params).filter((name) => name.startsWith(`${prefix}_`))
  for (const name of own) {
    const what = `without ${name}, although this kind of message includes it in the hash`
    yield [what, excluding([...exclude, name.slice(prefix.length + 1)])]
  }
  for (const [name, value] of Object.entries(constants)) {
    const what = `with ${prefix}_${name} "${value}", which is missing from the body`
    yield [what, excluding(exclude, { [`${prefix}_${name}`]: value, ...params })]
  }
  const others = Object.entries(params).filter(([name]) => !own.includes(name))
  const hashAll = () => {
    const foreign = others.map(([name, value]) => ({ name, text: String(value ?? '') }))
    const all = [...foreign, ...listSignedParams(params, rule)]
    return sha256(joinTexts(all.sort((a, b) => (a.name < b.name ? -1 : 1))) + secret)
  }
  yield [`with the parameters that do not start with ${prefix}_`, hashAll]
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
  return others.map(([what, other]) => [what, () => computeSecureHash(params, other, rule)])
}

type Write = (value: unknown, name: string, message: SignedMessage) => unknown

const VALUES: Readonly<Record<string, Write>> = {
  'with every number in its shortest form (10000.50 as 10000.5)': onAmount(shortenAmount),
  'with numbers written with two decimals (10000 as 10000.00)': onAmount(padDecimals),
  'with the values as a form carries them, before decoding': onText((text) =>
    new URLSearchParams({ text }).toString().slice('text='.length),
  ),
  'with the values as an address carries them, before decoding': onText(encodeURIComponent),
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

function listValues(message: SignedMessage): Mistake[] {
  const { params, rule, secret } = message
  return Object.entries(VALUES).map(([what, write]) => {
    const writeEach = ([name, value]: [string, unknown]) =>
      [name, name.startsWith(`${rule.prefix}_`) ? write(value, name, message) : value] as const
    const written = () => Object.fromEntries(Object.entries(params).map(writeEach))
    return [what, () => computeSecureHash(written(), secret, rule)]
  })
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

const ASSEMBLIES: Readonly<Record<string, Assemble>> = {
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
  'with name=value pairs joined by "&", followed by the secret': (members, secret) =>
    sha256(members.map(({ name, text }) => `${name}=${text}`).join('&') + secret),
}

function* listAssemblies({ params, rule, secret }: SignedMessage): Generator<Mistake> {
  const signed = () => listSignedParams(params, rule)
  for (const [what, assemble] of Object.entries(ASSEMBLIES)) {
    yield [what, () => assemble(signed(), secret, Object.keys(params))]
  }
  for (const separator of ['&', '|', ',']) {
    const what = `with values joined by "${separator}", followed by`
    const join = () =>
      signed()
        .map(({ text }) => text)
        .join(separator)
    const hashWith = (end: string) => () => sha256(join() + end + secret)
    yield [`${what} the secret`, hashWith('')]
    yield [`${what} one more separator and the secret`, hashWith(separator)]
  }
}

const sha256 = (text: string) => hash('sha256', text)
