import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import pLimit from 'p-limit'

/** A cell of a spreadsheet. */
export type SheetCell = string | number | Date | null

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

/** Writes rows as an Excel file; the first are the titles. */
export function writeSheet(rows: readonly SheetCell[][]): Promise<Uint8Array<ArrayBuffer>> {
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
