import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import pLimit from 'p-limit'
import { DomainError } from '../errors.ts'
import { quoteCell } from '../http/list.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { type CellValue, type ListColumn, nameColumn } from './cells.tsx'
import type { ConsoleRequest } from './env.ts'
import { formatClock, showTo, useView } from './view.ts'

export type ListFile<Row> = {
  name: string
  columns: readonly ListColumn<Row>[]
}

type Pages<Row> = AsyncGenerator<readonly Row[]>

/** A spreadsheet is written as a whole: more rows take too much memory, and too long. */
export const MAX_XLSX_ROWS = 10_000

/** Without it Excel takes UTF-8 for the encoding of its own system. */
const BYTE_ORDER_MARK = '\ufeff'

/** Excel expects another separator in every second country, and takes each for one. */
const SEPARATORS = /[",;\t\r\n]/

/** Rows are read as fast as the client takes them. A file that breaks off is cut, so that nobody takes it for the whole. */
export async function respondCsvFile<Row>(
  log: Log,
  c: ConsoleRequest,
  file: ListFile<Row>,
  all: Pages<Row>,
): Promise<Response> {
  const pages = whileAllowed(c, all)
  // What is refused, is before anything was sent.
  const first = await pages.next()
  const lines = writeLines(file, first, pages)
  const requestId = c.get('requestId')
  const view = useView()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await showTo(view, () => lines.next())
        if (done) controller.close()
        else controller.enqueue(Buffer.from(value))
      } catch (err) {
        log.error({ err, requestId, list: file.name }, 'a download broke off: it is incomplete')
        controller.error(err)
      }
    },
    async cancel() {
      await lines.return(undefined)
    },
  })
  return c.body(body, 200, describeFile(`${file.name}.csv`, 'text/csv; charset=utf-8'))
}

/** A download lasts as long as its client likes, but not longer than what the person may do. */
async function* whileAllowed<Row>(c: ConsoleRequest, pages: Pages<Row>): Pages<Row> {
  const isStillAllowed = c.get('isStillAllowed')
  for await (const rows of pages) {
    if (!(await isStillAllowed())) {
      throw new DomainError('unauthenticated', 'What this person may do has changed meanwhile')
    }
    yield rows
  }
}

async function* writeLines<Row>(
  { columns }: ListFile<Row>,
  first: IteratorResult<readonly Row[], void>,
  pages: Pages<Row>,
): AsyncGenerator<string, void, undefined> {
  const line = (cells: readonly string[]) => `${cells.join(',')}\r\n`
  const titles = columns.map((column) => quoteCell(nameColumn(column), SEPARATORS))
  const write = (row: Row) => line(columns.map(({ value }) => writeCell(value(row))))
  yield BYTE_ORDER_MARK + line(titles)
  if (first.done) return
  yield first.value.map(write).join('')
  for await (const rows of pages) yield rows.map(write).join('')
}

function writeCell(value: CellValue): string {
  if (value === null) return ''
  if (typeof value === 'string') return quoteCell(value, SEPARATORS)
  return 'number' in value ? value.number : formatClock(useView().zone, value.time)
}

/** Answers with all rows as a spreadsheet; undefined where there are more than it may have. */
export async function respondXlsxFile<Row>(
  c: ConsoleRequest,
  { name, columns }: ListFile<Row>,
  pages: Pages<Row>,
): Promise<Response | undefined> {
  const rows: SheetCell[][] = [columns.map((column) => nameColumn(column))]
  for await (const page of whileAllowed(c, pages)) {
    for (const row of page) rows.push(columns.map(({ value }) => toSheetCell(value(row))))
    if (rows.length > MAX_XLSX_ROWS + 1) return undefined
  }
  const type = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
  return c.body(await writeSheet(rows), 200, describeFile(`${name}.xlsx`, type))
}

/** A number of more than the 15 digits that a spreadsheet shows stays a text; a time is that of the reader's clock. */
function toSheetCell(value: CellValue): SheetCell {
  if (value === null || typeof value === 'string') return value
  if ('time' in value)
    return new Date(`${formatClock(useView().zone, value.time).replace(' ', 'T')}Z`)
  const { number } = value
  const isExact = number.replace('.', '').replace(/^0+/, '').length <= 15
  return isExact ? Number(number) : number
}

const describeFile = (name: string, type: string) => ({
  'content-type': type,
  'content-disposition': `attachment; filename="${name}"`,
  'cache-control': 'no-store',
})

type SheetCell = string | number | Date | null

/** Ten thousand rows take a second of a processor: beside the thread that acknowledges notifications, one at a time. */
const oneByOne = pLimit(1)

/** The writer as a thread of its own. It is a text, because a thread cannot load TypeScript everywhere. */
const WRITER = `
const { parentPort, workerData: { library, rows } } = require('node:worker_threads')
const write = require(library)
const cell = (value) =>
  value instanceof Date ? { type: Date, value, format: 'yyyy-mm-dd hh:mm:ss' } : value
;(write.default ?? write)(rows.map((cells) => cells.map(cell)))
  .toBuffer()
  .then((file) => parentPort.postMessage(file))
`

function writeSheet(rows: readonly SheetCell[][]): Promise<Uint8Array<ArrayBuffer>> {
  const library = createRequire(import.meta.url).resolve('write-excel-file/node')
  return oneByOne(
    () =>
      new Promise((resolve, reject) => {
        const writer = new Worker(WRITER, {
          eval: true,
          execArgv: [],
          workerData: { library, rows },
        })
        writer.once('message', (file: Uint8Array<ArrayBuffer>) => resolve(file))
        writer.once('error', reject)
        writer.once('exit', () => reject(new Error('the writer of a spreadsheet stopped')))
      }),
  )
}
