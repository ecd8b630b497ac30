import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context as HttpContext } from 'hono'
import { parseAccept } from 'hono/utils/accept'
import type { Scope } from '../access/keys.ts'
import type { Access, Role } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { countShownDecimals } from '../money.ts'
import type { ConsoleRequest } from './env.ts'
import type { KeptForm, Notice } from './kept.ts'
import { sayStored } from './texts/sentences.ts'
import {
  type CountKey,
  findText,
  type Given,
  type Language,
  listKeys,
  type TextKey,
} from './texts/text.ts'

type View = {
  language: Language
  /** A name of the IANA database: `Asia/Ho_Chi_Minh`. */
  zone: string
  /** Whether amounts are written as in the API. */
  plainAmounts?: true
  person?: Person
  kept?: KeptForm | undefined
  notice?: Notice | undefined
}

type Person = {
  id: string
  name: string
  sessionId: string
  roles: readonly Role[]
  access: Access
  makeFormToken: () => string
  page: string
  countTasks?: () => Promise<string | undefined>
}

export function chooseLanguage(c: HttpContext): Language {
  const wanted = parseAccept(c.req.header('accept-language') ?? '').map(({ type }) => type)
  const first = wanted.find((one) => /^(en|vi)(-|$)/i.test(one))
  return first?.toLowerCase().startsWith('vi') ? 'vi' : 'en'
}

const views = new AsyncLocalStorage<View>()

export function showTo<T>(view: View, answer: () => T): T {
  return views.run(view, answer)
}

export function useView(): View {
  const view = views.getStore()
  if (!view) throw new Error('nobody is being answered here')
  return view
}

export function usePerson(): Person {
  const { person } = useView()
  if (!person) throw new Error('nobody is signed in here')
  return person
}

/** Whether the person has this scope. It decides what is shown, never what is done. */
export function can(scope: Scope): boolean {
  return useView().person?.access.scopes.includes(scope) ?? false
}

/** What was typed into the form that is sent to `action`, and what is wrong with it. */
export function useKept(action: string): Pick<KeptForm, 'fields' | 'problems' | 'evidence'> {
  const { kept } = useView()
  return kept?.action === action ? kept : { fields: {}, problems: {}, evidence: [] }
}

export function t<Key extends TextKey>(key: Key, ...[values]: Given<Key>): string {
  return findText(useView().language, key, values) ?? key
}

/** Finds the text of a group for a value such as a status; undefined for an unknown one, as of a later release. */
export const findIn = (group: string, value: string) =>
  findText(useView().language, `${group}.${value}`)

/** Finds the text of a group for a value, or else returns the value. */
export const nameIn = (group: string, value: string) => findIn(group, value) ?? value

/** Says a sentence that is stored in English. One of the gateway or of a person stays as it is. */
export const say = (stored: string) => sayStored(useView().language, stored)

export function count(key: CountKey, n: number): string {
  const { language } = useView()
  const form = new Intl.PluralRules(language).select(n) === 'one' ? 'one' : 'other'
  return findText(language, `${key}.${form}`, { count: n }) ?? key
}

/** Leaves out what is missing or empty. */
export const keepTexts = (texts: readonly (string | false | null | undefined)[]): string[] =>
  texts.flatMap((text) => text || [])

export function listTexts(group: string): [name: string, text: string][] {
  const { language } = useView()
  return listKeys(group).map((name) => [name, findText(language, `${group}.${name}`) ?? name])
}

export function requireScope(c: ConsoleRequest, scope: Scope): void {
  if (!can(scope)) throw new DomainError('scope_missing', `Your roles lack ${scope}`)
  c.get('access').required.add(scope)
}

export function hasRole(role: Role): boolean {
  return useView().person?.roles.includes(role) ?? false
}

export function requireRole(c: ConsoleRequest, role: Role): void {
  if (!hasRole(role)) throw new DomainError('scope_missing', `You are not ${role}`)
  c.get('access').required.add(role)
}

export function formatMoney(amount: string, currency: string | null): string {
  const number = formatNumber(amount, currency)
  return currency === null ? number : `${number} ${currency}`
}

/**
 * Formats an amount without its currency, with the separators of the reader's language. Only zeros that the currency
 * does not have are left out: `150.000` VND would look like a thousand times as much.
 */
export function formatNumber(amount: string, currency: string | null): string {
  const { language, plainAmounts } = useView()
  if (plainAmounts) return amount
  const decimals = countShownDecimals(amount, currency)
  const format = { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  // As a text it is not rounded to a floating-point number.
  return new Intl.NumberFormat(language, format).format(amount as Intl.StringNumericLiteral)
}

type Days = { from?: string | undefined; to?: string | undefined }

const DAY_MS = 86_400_000

/** The limits of the times that can be asked for: Postgres has no year 0, and ISO 8601 has four digits. */
const EARLIEST = Date.parse('0001-01-01T00:00:00Z')
const LATEST = Date.parse('9999-12-31T23:59:59.999Z')

/** Returns the time range (ISO 8601) from the first to the last of these days, both included, without its end. */
export function toRange(zone: string, { from, to }: Days): { from?: string; to?: string } {
  return {
    ...(from === undefined ? {} : { from: startOfDay(zone, Date.parse(from)) }),
    ...(to === undefined ? {} : { to: startOfDay(zone, Date.parse(to) + DAY_MS) }),
  }
}

/**
 * Returns the first moment of a day in a zone. If the clocks go forward at midnight the day has no 0:00, and if they go
 * back it has two: of the moments that the offsets before and after give, the first that is on the day is right.
 * @param midnight midnight of the day in UTC
 */
function startOfDay(zone: string, midnight: number): string {
  const begins = [-DAY_MS, DAY_MS]
    .map((distance) => midnight - readOffset(zone, midnight + distance))
    .sort((a, b) => a - b)
  const isOnDay = (at: number) => at + readOffset(zone, at) >= midnight
  const start = begins.find(isOnDay) ?? begins.at(-1) ?? midnight
  return new Date(Math.min(Math.max(start, EARLIEST), LATEST)).toISOString()
}

/** How far a zone's clocks are ahead of UTC (ms). */
function readOffset(zone: string, at: number): number {
  const second = Math.floor(Math.min(Math.max(at, EARLIEST), LATEST - DAY_MS) / 1000) * 1000
  return Date.parse(`${writeClock(zone, second).replace(' ', 'T')}Z`) - second
}

export function describeZone(timeZone: string, at: number): string {
  const format = formatFor('en', { timeZone, timeZoneName: 'short' })
  return format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? timeZone
}

/** Names a zone for times of any day: by its offset, or by its name if the offset changes within the year. */
export function nameZone(timeZone: string): string {
  const year = new Date().getUTCFullYear()
  const [winter, summer] = [0, 6].map((month) => describeZone(timeZone, Date.UTC(year, month)))
  return winter === summer && winter ? winter : timeZone
}

/** Formats a time (ISO 8601) to the second in a zone: `2026-11-22 17:00:00`. */
export const formatClock = (zone: string, iso: string) => writeClock(zone, Date.parse(iso))

/** Swedish writes times like ISO 8601, except that years are not padded to four digits. */
const writeClock = (timeZone: string, at: number) =>
  formatFor('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
    .format(at)
    .padStart(19, '0')

const FORMATS = new Map<string, Intl.DateTimeFormat>()

/** Keeps formats, because making one takes longer than using it. */
function formatFor(locale: string, options: Intl.DateTimeFormatOptions & { timeZone: string }) {
  const name = `${locale} ${options.timeZone}`
  const known = FORMATS.get(name) ?? new Intl.DateTimeFormat(locale, options)
  FORMATS.set(name, known)
  return known
}
