import { isLosslessNumber, stringify } from 'lossless-json'
import { parseAmount, shortenAmount } from '../money.ts'
import { listAssemblyMistakes } from './assembly-mistakes.ts'
import type { HashVariant, SignedEntry, SigningMistake } from './hash-variant.ts'
import type { SignatureRule, WireParams } from './signature.ts'

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

/** Lists the mistakes worth trying, the most common first. */
export function listSigningMistakes(message: SignedMessage): SigningMistake[] {
  return [
    ...listNameMistakes(message),
    ...listSecretMistakes(message),
    ...listValueMistakes(message),
    ...listAssemblyMistakes(message.params, message.rule),
  ]
}

function listNameMistakes({ params, rule, constants }: SignedMessage): SigningMistake[] {
  const { prefix, exclude } = rule
  const wire = (name: string) => `${prefix}_${name}`
  const isPresent = (name: string) => Object.hasOwn(params, wire(name))
  const included = exclude.filter(isPresent).map((name) => ({
    what: `with ${wire(name)} in the hash, although this kind of message excludes it`,
    apply: (variant: HashVariant) =>
      changeExclude(variant, (names) => names.filter((one) => one !== name)),
  }))
  const oftenExcluded = ['RequestID', 'TransAmount', 'ExtData']
  const signed = Object.keys(params)
    .filter((name) => name.startsWith(`${prefix}_`))
    .map((name) => name.slice(prefix.length + 1))
    .filter((name) => name !== 'SecureHash' && !exclude.includes(name))
    .sort((a, b) => Number(oftenExcluded.includes(b)) - Number(oftenExcluded.includes(a)))
  const excluded = signed.map((name) => ({
    what: `without ${wire(name)}, although this kind of message includes it in the hash`,
    apply: (variant: HashVariant) => changeExclude(variant, (names) => [...names, name]),
  }))
  const missing = Object.entries(constants).filter(([name]) => !isPresent(name))
  const added = missing.map(([name, value]) => ({
    what: `with ${wire(name)} "${value}", which is missing from the body`,
    apply: (variant: HashVariant) => ({
      ...variant,
      params: { ...variant.params, [wire(name)]: value },
    }),
  }))
  const unprefixed = {
    what: `with the parameters that do not start with ${prefix}_`,
    apply: (variant: HashVariant) => ({ ...variant, order: addUnprefixed(variant) }),
  }
  return [...included, ...excluded, ...added, unprefixed]
}

function changeExclude(
  variant: HashVariant,
  change: (names: readonly string[]) => readonly string[],
): HashVariant {
  return { ...variant, rule: { ...variant.rule, exclude: change(variant.rule.exclude) } }
}

function addUnprefixed({
  params,
  rule: { prefix },
}: HashVariant): (entries: SignedEntry[]) => SignedEntry[] {
  const unprefixed = Object.entries(params)
    .filter(([name]) => !name.startsWith(`${prefix}_`))
    .map(([name, value]) => ({ name, text: String(value ?? '') }))
  return (entries) => [...entries, ...unprefixed].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function listSecretMistakes({ secret, otherSecrets }: SignedMessage): SigningMistake[] {
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
    { what: 'with a space after the secret', secret: `${bare} ` },
    { what: 'with the secret in upper case', secret: secret.toUpperCase() },
    { what: 'with the secret in lower case', secret: secret.toLowerCase() },
    { what: 'without any secret', secret: '' },
  ]
  return others.map(({ what, secret }) => ({ what, apply: (variant) => ({ ...variant, secret }) }))
}

function listValueMistakes({ rule: { prefix }, encoded }: SignedMessage): SigningMistake[] {
  const change = (what: string, write: (value: unknown, name: string) => unknown) => ({
    what,
    apply: (variant: HashVariant) => ({ ...variant, params: mapValues(variant, write) }),
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
    change('with whole numbers written with one decimal (10000 as 10000.0)', onAmount(padTo(1))),
    change('with numbers written with two decimals (10000 as 10000.00)', onAmount(padTo(2))),
    change(
      'with the values as a form carries them, before decoding',
      (value, name) => encoded.get(name) ?? onText(encodeURIComponent)(value),
    ),
    change(
      'with every "+" of a form decoded to a space',
      onText((text) => text.replaceAll('+', ' ')),
    ),
    change(
      'with every space written as "+"',
      onText((text) => text.replaceAll(' ', '+')),
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
    change(
      'with strings in Unicode form NFC',
      onText((text) => text.normalize('NFC')),
    ),
    change(
      'with strings in Unicode form NFD',
      onText((text) => text.normalize('NFD')),
    ),
  ]
}

function mapValues(
  { params, rule: { prefix } }: HashVariant,
  write: (value: unknown, name: string) => unknown,
): WireParams {
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      name.startsWith(`${prefix}_`) ? write(value, name) : value,
    ]),
  )
}

function padTo(decimals: number): (amount: string) => string {
  return (amount) => {
    const [whole = '', part = ''] = amount.split('.')
    return `${whole}.${part.padEnd(decimals, '0')}`
  }
}
