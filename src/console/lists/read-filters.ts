import { z } from '@hono/zod-openapi'
import { Day, Id } from '../../http/fields.ts'
import { parseAmount } from '../../money.ts'
import { TEXTS } from '../texts/en.ts'

const { problems: texts, fields: names } = TEXTS.lists

/** A filter of a list, by the name of its field; one with choices has them with their texts. */
export type Filter = {
  name: keyof typeof names
  kind: 'text' | 'amount' | 'day' | 'choice'
  choices?: Readonly<Record<string, string>>
}

/** What a person entered, as far as it is valid; an empty field is left out. */
export type FilterValues = Partial<Record<Filter['name'], string>>

export type ReadFilters = { values: FilterValues; problems: FilterValues }

const SCHEMAS = {
  text: z.string().trim().pipe(Id),
  amount: z
    .string()
    .trim()
    .refine((text) => parseAmount(text) !== undefined),
  day: Day,
}

/** Reads the filters of a list: a wrong one has a problem, and is not used. */
export function readFilters(
  filters: readonly Filter[],
  given: Readonly<Record<string, string>>,
): ReadFilters {
  const read: ReadFilters = { values: {}, problems: {} }
  for (const { name, kind, choices = {} } of filters) {
    const text = given[name] ?? ''
    if (text.trim() === '') continue
    const schema = kind === 'choice' ? z.enum(Object.keys(choices)) : SCHEMAS[kind]
    const parsed = schema.safeParse(text)
    if (parsed.success) read.values[name] = parsed.data
    else read.problems[name] = texts[kind]
  }
  return read
}
