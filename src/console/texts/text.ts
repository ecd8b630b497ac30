import { TEXTS } from './catalogue.ts'

export type Language = 'en' | 'vi'

export type TextKey = keyof typeof TEXTS

type English<Key extends TextKey> = (typeof TEXTS)[Key][0]

type Behind<Key, Group extends string> = Key extends `${Group}.${infer Name}` ? Name : never

export type NameIn<Group extends string> = Behind<TextKey, Group>

export type NoticeCode = NameIn<'notice'>

type Names<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never

type Values<Key extends TextKey> = Record<Names<English<Key>>, string | number>

export type PlainKey = {
  [Key in TextKey]: [Names<English<Key>>] extends [never] ? Key : never
}[TextKey]

export type Given<Key extends TextKey> = [Names<English<Key>>] extends [never] ? [] : [values: Values<Key>]

type Counted<Key> = Key extends `${infer Group}.other` ? Group : never

export type CountKey = Counted<TextKey>

const BY_KEY: Readonly<Record<string, readonly [en: string, vi: string]>> = TEXTS

/** Finds a text; undefined if the catalogue does not have the key. */
export function findText(language: Language, key: string, values: Readonly<Record<string, string | number>> = {}): string | undefined {
  const text = Object.hasOwn(TEXTS, key) ? BY_KEY[key]?.[language === 'vi' ? 1 : 0] : undefined
  return text?.replaceAll(/\{(\w+)\}/g, (name, key: string) => String(values[key] ?? name))
}

/** Lists the keys of a group without its name, in the order of the catalogue. */
export function listKeys<Group extends string>(group: Group): NameIn<Group>[] {
  const isBehind = (name: string): name is NameIn<Group> => Object.hasOwn(TEXTS, `${group}.${name}`)
  return Object.keys(TEXTS)
    .filter((key) => key.startsWith(`${group}.`))
    .map((key) => key.slice(group.length + 1))
    .filter(isBehind)
}
