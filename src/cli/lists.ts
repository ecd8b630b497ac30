import { type Command, InvalidArgumentError } from 'commander'
import { closest } from 'fastest-levenshtein'
import { z } from 'zod'
import { EVERY_MERCHANT } from '../access/keys.ts'
import { type Filter, type Listing, type ListingContext, readPage } from '../access/listing.ts'
import type { ReadDatabase } from '../db/reads.ts'
import { TypesParameter } from '../feed/view.ts'
import { TimeParameter } from '../http/fields.ts'
import type { Page } from '../http/list.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { requireMerchant } from './database.ts'
import { readDuration } from './options.ts'
import { NO_KEY } from './print.ts'

/** Of filters that every list has, and the API describes in one sentence. */
const DESCRIPTIONS = new Map([
  ['from', 'only from this time on, like 2026-11-21T09:00:00Z'],
  ['to', 'only before this time'],
  ['amount', 'only of this amount, compared by value'],
])

/** Adds an option for each filter of a list. It refuses what the API refuses, and says what is right. */
export function addFilters(command: Command, query: z.ZodRawShape): Command {
  for (const [name, schema] of Object.entries(query)) {
    const flag = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    const own = z.globalRegistry.get(schema)?.description ?? `only with this ${flag}`
    const description = DESCRIPTIONS.get(name) ?? own.replace(/^Only/, 'only')
    command.option(`--${flag} <value>`, description, readFilter(schema))
  }
  return command.option('--merchant <code>', 'only of this merchant account')
}

/** Makes a function that checks a filter, and leaves it as it was typed. */
function readFilter(schema: z.core.$ZodType): (text: string) => string {
  return (text) => {
    const [issue] = z.safeParse(schema, text).error?.issues ?? []
    if (issue === undefined) return text
    if (issue.code !== 'invalid_value') throw new InvalidArgumentError(`It ${issue.message}.`)
    const values = issue.values.map(String)
    const near = closest(text, values)
    throw new InvalidArgumentError(`Did you mean ${near}? It is one of ${values.join(', ')}.`)
  }
}

/** Checks event types, and leaves them as they were typed. */
export const readEventTypes = readFilter(TypesParameter)

/** Lists the merchant accounts that a command is about. @throws UsageError if there is no such account */
export async function listMerchants(sql: Sql, only: string | undefined): Promise<string[]> {
  if (only !== undefined) await requireMerchant(sql, only)
  if (only !== undefined && only !== EVERY_MERCHANT) return [only]
  const rows = await sql<{ code: string }[]>`
    select merchant_code as code from merchant_accounts order by merchant_code`
  return rows.map(({ code }) => code)
}

const PAGE = 200

/** Reads a page of a list, as the API does. @throws DomainError as `readPage` does */
export async function readRows<Query extends z.ZodRawShape, Row extends object>(
  ctx: ListingContext,
  listing: Listing<Query, Row>,
  filter: Filter<Query>,
  cursor: string | undefined,
): Promise<Page<Row>> {
  return await readPage(ctx, cursor, listing.idForm, (after) =>
    listing.read(ctx, filter, PAGE, after),
  )
}

/** Reads a list to its end, in which nothing is encrypted. */
export async function* walkRows<Query extends z.ZodRawShape, Row extends object>(
  database: ReadDatabase,
  listing: Listing<Query, Row>,
  filter: Filter<Query>,
): AsyncGenerator<Row> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const ctx = { ...database, encryption: NO_KEY }
    const page: Page<Row> = await readRows(ctx, listing, filter, cursor)
    yield* page.data
    cursor = page.nextCursor
  }
}

const Since = TimeParameter.unwrap()

/** Parses a time, or how long ago it was. @returns ISO 8601. @throws InvalidArgumentError */
export function readSince(text: string): string {
  if (Since.safeParse(text).success) return text
  try {
    return new Date(Date.now() - readDuration(text) * 1000).toISOString()
  } catch {
    throw new InvalidArgumentError('Write a time like 2026-11-21T09:00:00Z, or 6h for 6 hours ago.')
  }
}

/** How late a row may be recorded: no commit takes longer. */
const LATE = '1 hour'

/**
 * Finds the id behind which all rows of a time and later are, in a table whose ids grow with the time: no index has the
 * time of all accounts.
 */
export async function findIdBefore(
  sql: Sql,
  [table, time]: ['events', 'at'] | ['ipn_events', 'first_received_at'],
  from: string | undefined,
): Promise<number> {
  const [ends] = await sql<{ low: number; high: number }[]>`
    select coalesce(min(id), 1) - 1 as low, coalesce(max(id), 0) as high from ${sql(table)}`
  let { low, high } = ends ?? { low: 0, high: 0 }
  while (from !== undefined && high - low > PAGE) {
    const middle = Math.floor((low + high) / 2)
    const [row] = await sql<{ isEarly: boolean }[]>`
      select ${sql(time)} < ${from}::timestamptz - ${LATE}::interval as "isEarly"
      from ${sql(table)} where id > ${middle} order by id limit 1`
    if (row?.isEarly) low = middle
    else high = middle
  }
  return low
}
