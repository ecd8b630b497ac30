import { z } from 'zod'
import { type Listing, type Reader, readListing, type ServingContext } from '../access/listing.ts'
import type { Context } from '../context.ts'
import { DISCREPANCIES } from '../discrepancies/routes.ts'
import { EVENT_TYPES, serializeEvent } from '../events/event.ts'
import { readEnd, selectEvents } from '../feed/read-feed.ts'
import { CsvEvent, TypesParameter } from '../feed/view.ts'
import { TimeParameter } from '../http/fields.ts'
import { type Page, writeCsv } from '../http/list.ts'
import { PAYMENTS } from '../payments/routes.ts'
import { REFUNDS } from '../refunds/routes.ts'
import { TRANSACTIONS } from '../transactions/find-transactions.ts'
import { type Cli, command, UsageError } from './command.ts'
import {
  COMMIT_WITHIN_MS,
  findIdBefore,
  listMerchants,
  NO_KEY,
  openEncryption,
  PAGE,
  readerOf,
  whileSought,
} from './database.ts'
import { openExportFile } from './export-file.ts'
import { showProgress } from './print.ts'
import { Merchant } from './values.ts'

const OUTPUT = {
  merchant: Merchant,
  format: z
    .enum(['csv', 'jsonl'])
    .default('csv')
    .describe('of the rows: csv, if left out, or jsonl'),
  output: z
    .string()
    .optional()
    .describe('a file to write to, which a repeated command completes after a cut'),
}

type Read = (cursor: string | undefined) => Promise<Page<object>>

type Source<Filters extends z.ZodRawShape> = {
  name: string
  order: 'newest' | 'oldest'
  schema: z.ZodType
  query: Filters
  /** Whether rows hold encrypted values. */
  isSealed: boolean
  open(ctx: ListContext, reader: Reader, filters: z.output<z.ZodObject<Filters>>): Read
}

type ListContext = Pick<Context, 'db'> & ServingContext

const exportOf = <Filters extends z.ZodRawShape>(source: Source<Filters>) =>
  command({
    name: `export ${source.name}`,
    description: `write ${source.name}, the ${source.order} first`,
    input: { ...source.query, ...OUTPUT },
    examples: `Examples:
  cli export payments --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z > november.csv
  cli export refunds --status needs_review --format jsonl | jq .id
  cli export transactions --output all.csv     repeated after a cut, it goes on where it was`,
    async run(cli, asked, typed) {
      const { merchant, format: chosen, output } = z.object(OUTPUT).parse(asked)
      const filters = z.object(source.query).parse(typed)
      const { name } = source
      if (cli.json && 'format' in typed && typed.format === 'csv')
        throw new UsageError('--json is --format jsonl: name one format')
      const format = cli.json ? 'jsonl' : chosen
      await cli.onDatabase(async (db) => {
        const encryption = source.isSealed ? await openEncryption(db.sql, cli.env) : NO_KEY
        const merchants = await listMerchants(db.sql, merchant)
        const reader = readerOf(merchants, merchant === undefined)
        const readPage = source.open({ db, encryption }, reader, filters)
        const read: Read = (cursor) => whileSought(encryption, () => readPage(cursor))
        const filter = { ...typed, format: undefined, output: undefined }
        const of = JSON.stringify({ list: name, format, filter })
        const file = output === undefined ? undefined : openExportFile(output, of)
        await writeRows(cli, { ...source, format, read }, file)
      })
      return undefined
    },
  })

type Written = { name: string; schema: z.ZodType; format: string; read: Read }

/** Writes all pages from the place of the file on, with one page in memory at a time. */
async function writeRows(
  cli: Cli,
  { name, schema, format, read }: Written,
  file: ReturnType<typeof openExportFile> | undefined,
): Promise<void> {
  let { cursor, bytes, rows } = file ?? { cursor: null, bytes: 0, rows: 0 }
  if (rows > 0) cli.printError(`goes on behind ${rows} ${name}\n`)
  const show = showProgress(cli, name)
  let isFirst = bytes === 0
  do {
    const { data, nextCursor } = await read(cursor ?? undefined)
    rows += data.length
    cursor = nextCursor
    const csv = format === 'csv' ? writeCsv(schema, data) : undefined
    // Only the first page of a file keeps the header.
    const body = isFirst ? csv : csv?.slice(csv.indexOf('\r\n') + 2)
    const text = body ?? data.map((row) => `${JSON.stringify(row)}\n`).join('')
    if (file) file.write(text, { cursor, rows })
    else await cli.print(text)
    isFirst = false
    show(rows)
  } while (cursor !== null)
  file?.end()
  show(rows, true)
}

const listed = <Query extends z.ZodRawShape, Row extends object>(listing: Listing<Query, Row>) =>
  exportOf({
    ...{ name: listing.name, order: 'newest', schema: listing.schema, query: listing.query },
    isSealed: listing.name === REFUNDS.name,
    open: (ctx, reader, filters) => (cursor) =>
      readListing(ctx, reader, listing, { ...filters, limit: PAGE, cursor }),
  })

const EVENTS = exportOf({
  ...{ name: 'events', order: 'oldest', schema: CsvEvent, isSealed: true },
  query: { from: TimeParameter, to: TimeParameter, types: TypesParameter },
  open({ db, encryption }, { merchants, coversAll }, { from, to, types }) {
    const [begin, end] = [Date.parse(from ?? '0001-01-01'), Date.parse(to ?? '9999-12-31')]
    const filter = {
      merchants: coversAll ? undefined : merchants,
      types: types ?? EVENT_TYPES,
      withRefunds: true,
    }
    let last: number | undefined
    return async (cursor) => {
      // Events are recorded all the time: the newest of now is the last of the export.
      last ??= await readEnd({ db })
      const newest = last
      const start = cursor ?? (await findIdBefore(db.sql, ['events', 'at'], from))
      // Everything that is stored, even what the feed no longer shows after a restore.
      const page = await db.reads.run('export', ({ sql }) =>
        selectEvents(sql, filter, Number(start), PAGE),
      )
      const data = page.events.flatMap((event): object[] => {
        const at = Date.parse(event.at)
        if (event.id > newest || at < begin || at >= end) return []
        return [JSON.parse(serializeEvent(encryption, event))]
      })
      const isOver = page.events.some(({ at }) => Date.parse(at) > end + COMMIT_WITHIN_MS)
      return { data, nextCursor: isOver || page.next >= newest ? null : String(page.next) }
    }
  },
})

export const EXPORTS = [
  listed(TRANSACTIONS),
  listed(PAYMENTS),
  listed(REFUNDS),
  EVENTS,
  listed(DISCREPANCIES),
]
