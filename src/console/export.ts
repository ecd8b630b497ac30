import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import pLimit from 'p-limit'
import { DomainError } from '../errors.ts'
import { quoteCell } from '../http/list.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { type CellValue, type ListColumn, nameColumn } from './cells.tsx'
import type { ConsoleRequest } from './env.ts'
import { formatClock, showTo, t, useView } from './view.ts'

type ListFile<Row> = {
  name: string
  columns: readonly ListColumn<Row>[]
}

type Pages<Row> = AsyncGenerator<readonly Row[]>

/** A spreadsheet is written as a whole. More rows would take too much memory and time. */
const MAX_XLSX_ROWS = 10_000

/** Without it, Excel reads the file in the encoding of its system. */
const BYTE_ORDER_MARK = '\ufeff'

/** Which of these separates cells in Excel depends on the country. */
const SEPARATORS = /[",;\t\r\n]/

/** Reads rows as fast as the client takes them. A failure cuts the file, so that nobody takes it for complete. */
export async function respondCsvFile<Row>(
  log: Log,
  c: ConsoleRequest,
  file: ListFile<Row>,
  all: Pages<Row>,
): Promise<Response> {
  const pages = whileAllowed(c, all)
  // A refusal comes before anything is sent.
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

/** Ends a download, which lasts as long as the client likes, once the person may no longer have it. */
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

/** Answers with all rows as a spreadsheet. @throws DomainError if there are too many */
export async function respondXlsxFile<Row>(
  c: ConsoleRequest,
  { name, columns }: ListFile<Row>,
  pages: Pages<Row>,
): Promise<Response> {
  const rows: SheetCell[][] = [columns.map((column) => nameColumn(column))]
  for await (const page of whileAllowed(c, pages)) {
    for (const row of page) rows.push(columns.map(({ value }) => toSheetCell(value(row))))
    if (rows.length > MAX_XLSX_ROWS + 1) {
      const detail = t('lists.tooMany', { most: String(MAX_XLSX_ROWS) })
      throw new DomainError('invalid_request', detail)
    }
  }
  const type = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
  return c.body(await writeSheet(rows), 200, describeFile(`${name}.xlsx`, type))
}

/** A number with more than the 15 digits of a spreadsheet stays a text. Times are in the reader's zone. */
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

/** Ten thousand rows take a second of a processor, which the acknowledgement of notifications needs as well. */
const oneByOne = pLimit(1)

/** The code of the writing thread. It is a text, because a thread cannot load TypeScript everywhere. */
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
