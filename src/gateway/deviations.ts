import { isLosslessNumber, stringify } from 'lossless-json'
import { parseAmount, shortenAmount } from '../money.ts'
import { deviateAssembly } from './assemblies.ts'
import type { Attempt, Deviation, Entry } from './attempt.ts'
import type { SignatureRule, WireParams } from './signature.ts'

/** What the slips of one message are made of. */
export type Material = {
  params: WireParams
  rule: SignatureRule
  secret: string
  /** Other secrets it could have been signed with, each with the words for it. */
  otherSecrets: readonly { what: string; secret: string }[]
  /** Values that every message of the kind carries, by name without prefix. */
  constants: Readonly<Record<string, string>>
  /** Of a form: the values before decoding, by wire name. */
  encoded: ReadonlyMap<string, string>
}

/** The slips worth trying, the usual ones first. */
export function listDeviations(material: Material): Deviation[] {
  return [
    ...deviateNames(material),
    ...deviateSecret(material),
    ...deviateValues(material),
    ...deviateAssembly(material.params, material.rule),
  ]
}

function deviateNames({ params, rule, constants }: Material): Deviation[] {
  const { prefix, exclude } = rule
  const wire = (name: string) => `${prefix}_${name}`
  const present = (name: string) => Object.hasOwn(params, wire(name))
  const include = exclude.filter(present).map((name) => ({
    what: `with ${wire(name)} in the hash, which this kind leaves out`,
    apply: (attempt: Attempt) =>
      setExclude(attempt, (names) => names.filter((one) => one !== name)),
  }))
  const known = ['RequestID', 'TransAmount', 'ExtData']
  const signed = Object.keys(params)
    .filter((name) => name.startsWith(`${prefix}_`))
    .map((name) => name.slice(prefix.length + 1))
    .filter((name) => name !== 'SecureHash' && !exclude.includes(name))
    .sort((a, b) => Number(known.includes(b)) - Number(known.includes(a)))
  const leaveOut = signed.map((name) => ({
    what: `without ${wire(name)}, which this kind puts into the hash`,
    apply: (attempt: Attempt) => setExclude(attempt, (names) => [...names, name]),
  }))
  const missing = Object.entries(constants).filter(([name]) => !present(name))
  const add = missing.map(([name, value]) => ({
    what: `with ${wire(name)} "${value}", which is missing from the body`,
    apply: (attempt: Attempt) => ({
      ...attempt,
      params: { ...attempt.params, [wire(name)]: value },
    }),
  }))
  const foreign = {
    what: `with the parameters that do not start with ${prefix}_`,
    apply: (attempt: Attempt) => ({ ...attempt, order: addForeign(attempt) }),
  }
  return [...include, ...leaveOut, ...add, foreign]
}

function setExclude(
  attempt: Attempt,
  change: (names: readonly string[]) => readonly string[],
): Attempt {
  return { ...attempt, rule: { ...attempt.rule, exclude: change(attempt.rule.exclude) } }
}

function addForeign({ params, rule: { prefix } }: Attempt): (entries: Entry[]) => Entry[] {
  const foreign = Object.entries(params).filter(([name]) => !name.startsWith(`${prefix}_`))
  return (entries) =>
    [...entries, ...foreign.map(([name, value]) => ({ name, text: String(value ?? '') }))].sort(
      (a, b) => (a.name < b.name ? -1 : 1),
    )
}

function deviateSecret({ secret, otherSecrets }: Material): Deviation[] {
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
  return others.map(({ what, secret }) => ({ what, apply: (attempt) => ({ ...attempt, secret }) }))
}

function deviateValues({ rule: { prefix }, encoded }: Material): Deviation[] {
  const change = (what: string, write: (value: unknown, name: string) => unknown) => ({
    what,
    apply: (attempt: Attempt) => ({ ...attempt, params: mapValues(attempt, write) }),
  })
  const onText = (write: (text: string) => string) => (value: unknown) =>
    typeof value === 'string' ? write(value) : value
  const isAmount = (name: string) => /^(Trans)?Amount$|^Fee$/.test(name.slice(prefix.length + 1))
  const rewrite = (write: (amount: string) => string) => (value: unknown, name: string) => {
    const text = isLosslessNumber(value) || typeof value === 'string' ? String(value) : ''
    const amount = isLosslessNumber(value) || isAmount(name) ? parseAmount(text) : undefined
    return amount === undefined ? value : write(amount)
  }
  return [
    change('with every number in its shortest form (10000.50 as 10000.5)', rewrite(shortenAmount)),
    change('with whole numbers written with one decimal (10000 as 10000.0)', rewrite(padTo(1))),
    change('with numbers written with two decimals (10000 as 10000.00)', rewrite(padTo(2))),
    change(
      'with the values as a form carries them, before decoding',
      (value, name) => encoded.get(name) ?? onText(encodeURIComponent)(value),
    ),
    change(
      'with every "+" of a form taken for a space',
      onText((text) => text.replaceAll('+', ' ')),
    ),
    change(
      'with every space as "+"',
      onText((text) => text.replaceAll(' ', '+')),
    ),
    change(
      'without the white space around values',
      onText((text) => text.trim()),
    ),
    change('with null written as a word', (value) => (value === null ? 'null' : value)),
    change('with objects as their JSON text', (value) =>
      typeof value === 'object' && value !== null && !isLosslessNumber(value)
        ? stringify(value)
        : value,
    ),
    change(
      'with texts in Unicode form NFC',
      onText((text) => text.normalize('NFC')),
    ),
    change(
      'with texts in Unicode form NFD',
      onText((text) => text.normalize('NFD')),
    ),
  ]
}

function mapValues(
  { params, rule: { prefix } }: Attempt,
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
