import { InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'
import { type CapsByCurrency, SCOPES, type Scope } from '../access/keys.ts'
import { amountsByCurrency, parseCidr } from '../config/setting-types.ts'
import { compareAmounts, parseAmount } from '../money.ts'

/** A command that cannot run as it was typed; printed as one line, with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export type Json = { json?: true }

export const jsonOption = (what = 'as JSON, for programs') => new Option('--json', what)

/** Makes a function that parses an option or an argument. @param refusal says what to write instead */
export function readAs<T>(schema: z.ZodType<T, string>, refusal: string): (text: string) => T {
  return (text) => {
    const parsed = schema.safeParse(text)
    if (parsed.success) return parsed.data
    throw new InvalidArgumentError(refusal)
  }
}

const UNIT_S = new Map(Object.entries({ s: 1, m: 60, h: 3_600, d: 86_400 }))
const MAX_S = 3_650 * 86_400

/** Parses `90d`, `24h`, `30m`, `10s` or `0`. @returns seconds. @throws InvalidArgumentError */
export function readDuration(text: string): number {
  const [, digits = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const seconds = text === '0' ? 0 : Number(digits) * (UNIT_S.get(unit) ?? Number.NaN)
  if (seconds <= MAX_S) return seconds
  throw new InvalidArgumentError('Write a duration like 90d, 24h, 30m or 0, at most ten years.')
}

/** Parses a duration from now or a time in the future. @returns ISO 8601. @throws InvalidArgumentError */
export function readExpiry(text: string): string {
  const time = z.iso.datetime({ offset: true }).safeParse(text)
  const end = time.success ? Date.parse(time.data) : Date.now() + readDuration(text) * 1000
  if (end <= Date.now()) throw new InvalidArgumentError('The time is in the past.')
  return new Date(end).toISOString()
}

/** Parses `all`, or a comma-separated list of scopes. @throws InvalidArgumentError */
export function readScopes(text: string): Scope[] {
  if (text === 'all') return [...SCOPES]
  const names = text.split(',').map((name) => name.trim())
  const scopes = SCOPES.filter((scope) => names.includes(scope))
  if (scopes.length === new Set(names).size) return scopes
  throw new InvalidArgumentError(`Write all, or some of ${SCOPES.join(',')}.`)
}

/** A cap in any currency (decimal string), or one for each currency. */
export type Cap = string | CapsByCurrency

/** Parses an amount above 0, or several by currency. @throws InvalidArgumentError */
export function readCap(text: string): Cap {
  const several = amountsByCurrency().safeParse(text)
  if (!several.success) return readAmount(text)
  return Object.fromEntries(
    several.data.map(({ currency, amount }) => [currency, readAmount(amount)]),
  )
}

function readAmount(text: string): string {
  const amount = /^\d+(\.\d+)?$/.test(text) ? parseAmount(text) : undefined
  if (amount !== undefined && compareAmounts(amount, '0') > 0) return amount
  throw new InvalidArgumentError(
    'Write an amount like 500000 or 10000.50, or one for each currency like VND:500000,USD:20.',
  )
}

/** A whole number above 0. */
export const readCount = readAs(
  z
    .string()
    .regex(/^[1-9]\d{0,6}$/)
    .transform(Number),
  'Write a whole number from 1 to 9999999.',
)

/** Adds a network in CIDR notation, or an address, to those before it. @throws InvalidArgumentError */
export function readNetwork(text: string, before: readonly string[] = []): string[] {
  if (parseCidr(text) && !text.includes('%')) return [...before, text]
  throw new InvalidArgumentError('Write a network like 203.0.113.0/24 or 2001:db8::/32.')
}

const isText = (text: string) => !/\p{Cc}/u.test(text) && text.isWellFormed()

/** The name of a key. At every start the demo replaces the key of its own name. */
export const readName = readAs(
  z
    .string()
    .min(1)
    .max(64)
    .refine((text) => isText(text) && text === text.trim() && text !== 'demo'),
  'Write 1 to 64 printable characters, other than demo.',
)

/** The name or id of a person. */
export const readPerson = readAs(
  z.string().trim().normalize('NFC').min(1).max(140).refine(isText),
  'Write 1 to 140 printable characters.',
)

/** The id of a key. */
export const readId = readAs(z.guid(), 'Write the id of a key; see keys list.')
