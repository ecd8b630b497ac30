import { z } from '@hono/zod-openapi'
import { Id } from '../../http/fields.ts'
import type { NameIn, TextKey } from '../texts/text.ts'
import { t } from '../view.ts'

export const STATES = [
  'pending',
  'paid',
  'partially_refunded',
  'refunded',
  'failed',
] as const satisfies readonly NameIn<'states.transaction'>[]

const empty = z.literal('').transform(() => undefined)
const optional = <T extends z.ZodType>(one: T) => z.union([empty, one]).optional()

const Day = z.iso.date()

const Fields = {
  q: optional(
    z
      .string()
      .trim()
      .pipe(z.union([empty, Id])),
  ),
  state: optional(z.enum(STATES)),
  from: optional(Day),
  to: optional(Day),
  account: optional(z.string()),
}

export type SearchField = keyof typeof Fields

/** What a person searches for; days are of UTC, both included. */
export type SearchQuery = {
  q?: string | undefined
  state?: (typeof STATES)[number] | undefined
  from?: string | undefined
  to?: string | undefined
  account?: string | undefined
}

export type ReadQuery = { query: SearchQuery; problems: Partial<Record<SearchField, string>> }

const PROBLEMS = {
  q: 'lists.problems.text',
  state: 'search.invalidState',
  from: 'lists.problems.day',
  to: 'lists.problems.day',
  account: 'search.invalidState',
} as const satisfies Record<SearchField, TextKey>

/** Reads the fields of the search, each by itself: a wrong one has a problem and is not used. */
export function readQuery(given: Readonly<Record<string, string>>): ReadQuery {
  const problems: ReadQuery['problems'] = {}
  function read<T>(name: SearchField, schema: z.ZodType<T>): T | undefined {
    const parsed = schema.safeParse(given[name])
    if (parsed.success) return parsed.data
    problems[name] = t(PROBLEMS[name])
    return undefined
  }
  const query = {
    q: read('q', Fields.q),
    state: read('state', Fields.state),
    from: read('from', Fields.from),
    to: read('to', Fields.to),
    account: read('account', Fields.account),
  }
  return { query, problems }
}

/** Whether results are narrowed down by more than the account. */
export function isFiltered({ state, from, to }: SearchQuery): boolean {
  return state !== undefined || from !== undefined || to !== undefined
}

/** Whether a text may be the id of a transaction: no sentence, no short number. */
export function looksLikeId(text: string): boolean {
  return /^[A-Za-z0-9][\w.:-]{7,127}$/.test(text) && /\d/.test(text)
}
