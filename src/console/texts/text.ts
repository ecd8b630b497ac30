import { en } from './en.ts'
import { vi } from './vi.ts'

/** The languages of the console. */
export type Language = 'en' | 'vi'

export type TextKey = keyof typeof en

type Behind<Key, Group extends string> = Key extends `${Group}.${infer Name}` ? Name : never

/** The keys of a group, without its name. */
export type NameIn<Group extends string> = Behind<TextKey, Group>

/** The messages after a redirect, by the code that stands in the address. */
export type NoticeCode = NameIn<'notice'>

type Names<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never

/** What a text is filled in with. */
export type Values<Key extends TextKey> = Record<Names<(typeof en)[Key]>, string | number>

/** The texts that take no values. */
export type PlainKey = {
  [Key in TextKey]: [Names<(typeof en)[Key]>] extends [never] ? Key : never
}[TextKey]

/** Nothing, where a text takes no values. */
export type Given<Key extends TextKey> = [Names<(typeof en)[Key]>] extends [never] ? [] : [values: Values<Key>]

type Counted<Key> = Key extends `${infer Group}.other` ? Group : never

/** The texts that depend on a number: their keys without `.one` and `.other`. */
export type CountKey = Counted<TextKey>

const CATALOGUES: Readonly<Record<Language, Readonly<Record<string, string>>>> = { en, vi }

/** Returns a text in a language; undefined for a key that the catalogue does not have. */
export function findText(language: Language, key: string, values: Readonly<Record<string, string | number>> = {}): string | undefined {
  const texts = CATALOGUES[language]
  const text = Object.hasOwn(texts, key) ? texts[key] : undefined
  return text?.replaceAll(/\{(\w+)\}/g, (name, key: string) => String(values[key] ?? name))
}

/** The keys of a group, in the order of the catalogue. */
export function listKeys(group: string): string[] {
  return Object.keys(en).filter((key) => key.startsWith(`${group}.`))
}
