import { decode, readText as readAll } from './read-html.ts'

function readAttributes(tag: string): Record<string, string> {
  const pairs = [...tag.matchAll(/([\w-]+)(?:="([^"]*)")?/g)]
  return Object.fromEntries(
    pairs.slice(1).map(([, name = '', value = '']) => [name, decode(value)]),
  )
}

/** A form of a page as a browser without script would send it. */
export type PageForm = {
  action: string
  /** The values that stand in it, without those of buttons. */
  fields: Record<string, string>
  /** The names of its fields that people see. */
  shown: string[]
  /** The values of its options, by the name of the select. */
  options: Record<string, string[]>
  /** The texts of its buttons. */
  buttons: string[]
}

/** Reads the forms of a page that are sent by POST. */
export function readForms(html: string): PageForm[] {
  return [...html.matchAll(/<form method="post"[^>]*>.*?<\/form>/gs)].map(([text]) =>
    readForm(text),
  )
}

function readForm(text: string): PageForm {
  const fields: Record<string, string> = {}
  const shown = new Set<string>()
  const options: Record<string, string[]> = {}
  for (const [tag] of text.matchAll(/<input[^>]*>/g)) {
    const { name = '', value = '', type = 'text', ...more } = readAttributes(tag)
    if (type !== 'hidden') shown.add(name)
    if (type !== 'radio' || 'checked' in more) fields[name] = value
  }
  for (const [select, tag = ''] of text.matchAll(/(<select[^>]*>).*?<\/select>/gs)) {
    const { name = '' } = readAttributes(tag)
    const all = [...select.matchAll(/<option[^>]*>/g)].map(([option]) => readAttributes(option))
    options[name] = all.map(({ value = '' }) => value)
    fields[name] = (all.find((one) => 'selected' in one) ?? all[0])?.value ?? ''
    shown.add(name)
  }
  const buttons = [...text.matchAll(/<button[^>]*>(.*?)<\/button>/gs)]
  return {
    action: readAttributes(text.slice(0, text.indexOf('>'))).action ?? '',
    fields,
    shown: [...shown],
    options,
    buttons: buttons.map(([, label = '']) => decode(label.trim())),
  }
}

/** Reads the form of a page that has a button with this text. */
export function findForm(html: string, button: string): PageForm {
  const found = readForms(html).find(({ buttons }) => buttons.includes(button))
  if (!found) throw new Error(`no form with the button ${button}: ${readText(html)}`)
  return found
}

/** Reads what people see of a page, as one line. */
export const readText = (html: string): string => readAll(html.slice(html.indexOf('<main')))

/** Reads the problems of a page, by the field they stand beside. */
export function readProblems(html: string): Record<string, string> {
  const found = html.matchAll(/<span class="problem" id="([\w-]+)-problem">([^<]*)</g)
  return Object.fromEntries([...found].map(([, name = '', text = '']) => [name, decode(text)]))
}
