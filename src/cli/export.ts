import { type Command, Option } from 'commander'
import { z } from 'zod'
import type { Listing, ListingContext } from '../access/listing.ts'
import { createReads } from '../db/reads.ts'
import { DISCREPANCIES } from '../discrepancies/routes.ts'
import { EVENT_TYPES, isEventType, serializeEvent } from '../events/event.ts'
import { readEnd, readFeed } from '../feed/read-feed.ts'
import { CsvEvent, TypesParameter } from '../feed/view.ts'
import { TimeParameter } from '../http/fields.ts'
import { type Page, writeCsv } from '../http/list.ts'
import { PAYMENTS } from '../payments/routes.ts'
import { REFUNDS } from '../refunds/routes.ts'
import { TRANSACTIONS } from '../transactions/find-transactions.ts'
import { openEncryption } from './database.ts'
import { openExportFile, type Target } from './export-file.ts'
import { addFilters, findIdBefore, listMerchants, readRows } from './lists.ts'
import { type Cli, NO_KEY } from './print.ts'
import { showProgress } from './progress.ts'

const FORMATS = ['csv', 'jsonl'] as const

type ExportOptions = Readonly<Record<string, string | undefined>> & {
  format: (typeof FORMATS)[number]
}

/** What is exported: a list, or the feed. */
type Source = {
  name: string
  schema: z.ZodType
  /** Rows hold what is encrypted. */
  isSealed: boolean
  read(ctx: ListingContext, merchants: readonly string[], cursor?: string): Promise<Page<object>>
}

/** Adds `export`, with a command for each list. */
export function addExportCommand(program: Command, cli: Cli): void {
  const group = program
    .command('export')
    .description('write every row of a list, as the API has it, as CSV or lines of JSON')
  addList(group, cli, TRANSACTIONS)
  addList(group, cli, PAYMENTS)
  addList(group, cli, REFUNDS)
  addEvents(group, cli)
  addList(group, cli, DISCREPANCIES)
}

const EXAMPLES = `
Examples:
  cli export payments --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z > november.csv
  cli export refunds --status needs_review --format jsonl | jq .id
  cli export transactions --output all.csv     repeated after a cut, it goes on where it was`

/** Adds the export of a list, with the filters that the list has everywhere. */
function addList<Query extends z.ZodRawShape, Row extends object>(
  group: Command,
  cli: Cli,
  listing: Listing<Query, Row>,
): void {
  const { name, schema, query } = listing
  const command = group.command(name).description(`write ${name}, the newest first`)
  addOutput(addFilters(command, query)).action(async (options: ExportOptions) => {
    const asked = z.object(query).parse(options)
    const coversAll = options.merchant === undefined
    const read: Source['read'] = (ctx, merchants, cursor) =>
      readRows(ctx, listing, { ...asked, merchants, coversAll }, cursor)
    await exportRows(cli, { name, schema, isSealed: name === REFUNDS.name, read }, options)
  })
}

const EVENT_FILTERS = { from: TimeParameter, to: TimeParameter, types: TypesParameter }

/** Later than the end by so much, no event is of the time that is exported (ms). */
const LATE_MS = 3_600_000

function addEvents(group: Command, cli: Cli): void {
  const command = group.command('events').description('write the events of the feed, oldest first')
  addOutput(addFilters(command, EVENT_FILTERS)).action(async (options: ExportOptions) => {
    const {
      from,
      to,
      types = EVENT_TYPES.filter(isEventType),
    } = z.object(EVENT_FILTERS).parse(options)
    const [begin, end] = [Date.parse(from ?? '0001-01-01'), Date.parse(to ?? '9999-12-31')]
    let newest: number | undefined
    const read: Source['read'] = async ({ sql, db, encryption }, merchants, cursor) => {
      const reads = createReads({ sql, db }, 1)
      // Events are recorded all the time: those of now are the last.
      newest ??= await readEnd({ reads })
      const last = newest
      const start =
        cursor === undefined ? await findIdBefore(sql, ['events', 'at'], from) : Number(cursor)
      const only = options.merchant === undefined ? undefined : merchants
      const page = await readFeed(
        { reads },
        { merchants: only, types, withRefunds: true },
        start,
        200,
      )
      const data = page.events.flatMap((event): object[] => {
        const at = Date.parse(event.at)
        if (event.id > last || at < begin || at >= end) return []
        return [JSON.parse(serializeEvent(encryption, event))]
      })
      const isOver = page.events.some(({ at }) => Date.parse(at) > end + LATE_MS)
      return { data, nextCursor: isOver || page.next >= last ? null : String(page.next) }
    }
    await exportRows(cli, { name: 'events', schema: CsvEvent, isSealed: true, read }, options)
  })
}

function addOutput(command: Command): Command {
  return command
    .addOption(new Option('--format <format>', 'of the rows').choices(FORMATS).default('csv'))
    .option('--output <file>', 'write to a file, which a repeated command completes after a cut')
    .addHelpText('after', EXAMPLES)
}

async function exportRows(cli: Cli, source: Source, options: ExportOptions): Promise<void> {
  const { output, format, ...filter } = options
  await cli.onDatabase(async (sql, db) => {
    const encryption = source.isSealed ? await openEncryption(sql, cli.env) : NO_KEY
    const merchants = await listMerchants(sql, options.merchant)
    const target =
      output === undefined
        ? { cursor: null, bytes: 0, rows: 0, write: cli.print, end: () => {} }
        : openExportFile(output, JSON.stringify({ list: source.name, format, filter }))
    if (target.rows > 0) cli.printError(`goes on behind ${target.rows} ${source.name}\n`)
    const read = (cursor: string | undefined) =>
      source.read({ sql, db, encryption }, merchants, cursor)
    await writeRows(cli, { ...source, format, read }, target)
  })
}

/** Writes all pages from where the target stands. One page is in memory at a time. */
async function writeRows(
  cli: Pick<Cli, 'printError' | 'isTerminal'>,
  {
    name,
    schema,
    format,
    read,
  }: Pick<Source, 'name' | 'schema'> &
    Pick<ExportOptions, 'format'> & { read: (cursor?: string) => Promise<Page<object>> },
  target: Target,
): Promise<void> {
  const show = showProgress(cli)
  let { cursor, rows } = target
  let isFirst = target.bytes === 0
  do {
    const { data, nextCursor } = await read(cursor ?? undefined)
    rows += data.length
    cursor = nextCursor
    const text =
      format === 'csv'
        ? writeCsv(schema, data)
        : data.map((row) => `${JSON.stringify(row)}\n`).join('')
    // Only the first page of a file keeps the header.
    const body = format === 'csv' && !isFirst ? text.slice(text.indexOf('\r\n') + 2) : text
    await target.write(body, { cursor, rows })
    isFirst = false
    show(name, { done: rows })
  } while (cursor !== null)
  target.end()
  show(name, { done: rows, isEnd: true })
}
