import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context as HttpContext } from 'hono'
import { parseAccept } from 'hono/utils/accept'
import type { Scope } from '../access/keys.ts'
import type { Access, Role } from '../access/types.ts'
import type { KeptForm } from './kept.ts'
import {
  type CountKey,
  findText,
  type Given,
  type Language,
  listKeys,
  type TextKey,
} from './texts/text.ts'

/** How a person reads, who it is, and what is shown again. */
export type View = {
  language: Language
  /** The zone of their days and times, of the IANA database: e.g. `Asia/Ho_Chi_Minh`. */
  zone: string
  person?: Person
  /** A form of this page that was not carried out. */
  kept?: KeptForm | undefined
}

/** Who is signed in. */
export type Person = {
  id: string
  name: string
  sessionId: string
  roles: readonly Role[]
  access: Access
  /** Makes the token that every form of this session carries; each one differs. */
  makeFormToken: () => string
  /** The page that is shown, as it can be opened again. */
  page: string
  /** How much waits for them, for the navigation; undefined where nothing does. */
  countTasks?: () => Promise<string | undefined>
}

/** English, unless the browser prefers Vietnamese to it. */
export function chooseLanguage(c: HttpContext): Language {
  const wanted = parseAccept(c.req.header('accept-language') ?? '').map(({ type }) => type)
  const first = wanted.find((one) => /^(en|vi)(-|$)/i.test(one))
  return first?.toLowerCase().startsWith('vi') ? 'vi' : 'en'
}

const views = new AsyncLocalStorage<View>()

/** Runs what answers a person; everything in it reads as this person does. */
export function showTo<T>(view: View, answer: () => T): T {
  return views.run(view, answer)
}

/** How the person reads who is being answered. */
export function useView(): View {
  const view = views.getStore()
  if (!view) throw new Error('nobody is being answered here')
  return view
}

/** Who is signed in. Use it behind `requireSession` only. */
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

/** A text of the catalogue, in the reader's language. */
export function t<Key extends TextKey>(key: Key, ...[values]: Given<Key>): string {
  return findText(useView().language, key, values) ?? key
}

/** The text of a group for a value, e.g. a status; a value that has none, as one of a later release, is shown as it is. */
export function nameIn(group: string, value: string): string {
  return findText(useView().language, `${group}.${value}`) ?? value
}

/** A text that depends on a number. */
export function count(key: CountKey, n: number): string {
  const { language } = useView()
  const form = new Intl.PluralRules(language).select(n) === 'one' ? 'one' : 'other'
  return findText(language, `${key}.${form}`, { count: n }) ?? key
}

/** All texts of a group in the reader's language, by the rest of their keys. */
export function listTexts(group: string): [name: string, text: string][] {
  const { language } = useView()
  return listKeys(group).map((key) => [key.slice(group.length + 1), findText(language, key) ?? key])
}
