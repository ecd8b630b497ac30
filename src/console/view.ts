import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context as HttpContext } from 'hono'
import { parseAccept } from 'hono/utils/accept'
import type { Scope } from '../access/keys.ts'
import type { Access, Role } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { countShownDecimals } from '../money.ts'
import type { ConsoleRequest } from './env.ts'
import type { KeptForm } from './kept.ts'
import { sayStored } from './texts/sentences.ts'
import {
  type CountKey,
  findText,
  type Given,
  type Language,
  listKeys,
  type NoticeCode,
  type TextKey,
} from './texts/text.ts'

export type View = {
  language: Language
  /** The zone of their days and times, of the IANA database: e.g. `Asia/Ho_Chi_Minh`. */
  zone: string
  /** Amounts are written as the API writes them. */
  plainAmounts?: true
  person?: Person
  kept?: KeptForm | undefined
  notice?: NoticeCode | undefined
}

export type Person = {
  id: string
  name: string
  sessionId: string
  roles: readonly Role[]
  access: Access
  makeFormToken: () => string
  page: string
  /** How much waits for them, for the navigation; undefined where nothing does. */
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

/** Whether the person may do what this scope covers: decides what is shown, never what is done. */
export function can(scope: Scope): boolean {
  return useView().person?.access.scopes.includes(scope) ?? false
}

/** What a form shows again: what was typed, and what is wrong with it. @param action where it is sent */
export function useKept(action: string): Pick<KeptForm, 'fields' | 'problems' | 'evidence'> {
  const { kept } = useView()
  return kept?.action === action ? kept : { fields: {}, problems: {}, evidence: [] }
}

export function t<Key extends TextKey>(key: Key, ...[values]: Given<Key>): string {
  return findText(useView().language, key, values) ?? key
}

/** The text of a group for a value, e.g. a status; undefined for a value that has none, as one of a later release. */
export const findIn = (group: string, value: string) =>
  findText(useView().language, `${group}.${value}`)

/** The same, or the value as it is. */
export const nameIn = (group: string, value: string) => findIn(group, value) ?? value

/** A sentence that is stored in English, or one of the gateway or of a person, which stays. */
export const say = (stored: string) => sayStored(useView().language, stored)

export function count(key: CountKey, n: number): string {
  const { language } = useView()
  const form = new Intl.PluralRules(language).select(n) === 'one' ? 'one' : 'other'
  return findText(language, `${key}.${form}`, { count: n }) ?? key
}

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

/** `250000` in VND is `250,000 VND`. */
export function formatMoney(amount: string, currency: string | null): string {
  const number = formatNumber(amount, currency)
  return currency === null ? number : `${number} ${currency}`
}

/**
 * An amount beside one that names the currency, with the separators of the reader's language. Every digit stays, but
 * for zeros that the currency has not: `150.000` VND would look like a thousand times as much.
 */
export function formatNumber(amount: string, currency: string | null): string {
  const { language, plainAmounts } = useView()
  if (plainAmounts) return amount
  const decimals = countShownDecimals(amount, currency)
  const format = { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  // Given as a text it is not rounded to a floating-point number.
  return new Intl.NumberFormat(language, format).format(amount as Intl.StringNumericLiteral)
}

/** Days as people enter them, `2026-11-22`, both included. */
export type Days = { from?: string | undefined; to?: string | undefined }

const DAY_MS = 86_400_000

/** The times that a list can be asked for: Postgres knows no year 0, and ISO 8601 has four digits. */
const EARLIEST = Date.parse('0001-01-01T00:00:00Z')
const LATEST = Date.parse('9999-12-31T23:59:59.999Z')

/** The time range of days in a zone, as ISO 8601: from the beginning of the first, and before the end of the last. */
export function toRange(zone: string, { from, to }: Days): { from?: string; to?: string } {
  return {
    ...(from === undefined ? {} : { from: startOfDay(zone, Date.parse(from)) }),
    ...(to === undefined ? {} : { to: startOfDay(zone, Date.parse(to) + DAY_MS) }),
  }
}

/**
 * The first moment of a day in a zone. A clock that is put forward at midnight has no 0:00 that day, and one that is
 * put back has two: the offsets before and after say when the day may begin, and the first moment that is on it is
 * right.
 * @param midnight that of the day in UTC
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

/** Names a zone for times of any day: by its offset, or by itself where that is not the same all year. */
export function nameZone(timeZone: string): string {
  const year = new Date().getUTCFullYear()
  const [winter, summer] = [0, 6].map((month) => describeZone(timeZone, Date.UTC(year, month)))
  return winter === summer && winter ? winter : timeZone
}

/** Formats a time (ISO 8601) to the second as the clocks of a zone show it, for files: `2026-11-22 17:00:00`. */
export const formatClock = (zone: string, iso: string) => writeClock(zone, Date.parse(iso))

/** Swedish is written as ISO 8601 is, but for the year, which has four digits there. */
const writeClock = (timeZone: string, at: number) =>
  formatFor('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
    .format(at)
    .padStart(19, '0')

const FORMATS = new Map<string, Intl.DateTimeFormat>()

/** Making a format takes longer than using it. */
function formatFor(locale: string, options: Intl.DateTimeFormatOptions & { timeZone: string }) {
  const name = `${locale} ${options.timeZone}`
  const known = FORMATS.get(name) ?? new Intl.DateTimeFormat(locale, options)
  FORMATS.set(name, known)
  return known
}
