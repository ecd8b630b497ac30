import { z } from '@hono/zod-openapi'
import type { Listing } from '../../access/listing.ts'
import { Day } from '../../http/fields.ts'
import { readWrittenAmount } from '../../money.ts'
import { toRange } from '../days.ts'
import { listKeys, type NameIn } from '../texts/text.ts'
import { t, useView } from '../view.ts'

export type FilterName = NameIn<'lists.fields'>

/** What is wrong with the filters, by field. */
export type FilterProblems = Partial<Record<string, string>>

/** How a person sets a filter. */
export type FilterKind = 'text' | 'amount' | 'day' | 'choice'

/** The filters of a listing, in the order of the page. */
export function listFilters(query: z.ZodRawShape): FilterName[] {
  return NAMES.filter((name) => name in query)
}

const FIELDS = listKeys('lists.fields').map((key) => key.slice('lists.fields.'.length))
const isName = (name: string): name is FilterName => FIELDS.includes(name)
const NAMES = FIELDS.filter(isName)

/** How a filter of this name is set. */
export function findKind(name: string, isChoice: boolean): FilterKind {
  if (name === 'from' || name === 'to') return 'day'
  if (name === 'amount') return 'amount'
  return isChoice ? 'choice' : 'text'
}

/**
 * Reads the filters of a list as a person set them: days are those of their zone, amounts are read as they are written.
 * @returns what the listing is asked for; without it, what is wrong
 */
export function readFilters<Query extends z.ZodRawShape>(
  { query }: Pick<Listing<Query, object>, 'query'>,
  given: Readonly<Record<string, string>>,
): { asked?: z.output<z.ZodObject<Query>>; problems: FilterProblems } {
  const problems: FilterProblems = {}
  const entered = Object.entries(given).filter(
    ([name, text]) => name in query && text.trim() !== '',
  )
  const texts = Object.fromEntries(entered.map(([name, text]) => [name, text.trim()]))
  const { from, to, amount, ...others } = texts
  for (const [name, day] of Object.entries({ from, to })) {
    if (day !== undefined && !Day.safeParse(day).success) problems[name] = problemOf(name)
  }
  const days = problems.from || problems.to ? {} : toRange(useView().zone, { from, to })
  const plain = amount === undefined ? {} : { amount: readWrittenAmount(amount) ?? amount }
  const parsed = z.object(query).safeParse({ ...others, ...plain, ...days })
  for (const { path } of parsed.error?.issues ?? []) {
    const name = String(path[0])
    problems[name] ??= problemOf(name, query[name])
  }
  return parsed.success && Object.keys(problems).length === 0
    ? { asked: parsed.data, problems }
    : { problems }
}

function problemOf(name: string, schema?: unknown): string {
  return t(`lists.problems.${findKind(name, isChoice(schema))}`)
}

/** Whether a filter takes one of several values. */
export function isChoice(schema: unknown): boolean {
  const bare = schema instanceof z.ZodOptional ? schema.unwrap() : schema
  return bare instanceof z.ZodEnum
}
