import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { z } from 'zod'
import { UsageError } from './options.ts'

/** How far an export is: the next page, and what is written before it. */
type Place = { cursor: string | null; bytes: number; rows: number }

export type Target = Place & {
  /** Writes the next rows. @param next where the list goes on behind them, and how many rows there are by then */
  write(text: string, next: Pick<Place, 'cursor' | 'rows'>): unknown
  end(): void
}

/** `of` says which export the file is of. */
const Saved = z.object({
  of: z.string(),
  cursor: z.string().nullable(),
  bytes: z.int().nonnegative(),
  rows: z.int().nonnegative(),
})

/** How often the place is saved (ms): what was written since is written again after a cut. */
const SAVED_EVERY_MS = 1_000

/**
 * Opens a file for an export, or goes on with one that was cut off: its place stands beside it, in `FILE.cursor`, until
 * the export is complete. Whatever follows the place in the file is cut away first, so that no row is there twice.
 * @param of says what is exported: another export does not go on with the file
 * @throws UsageError if the file is another one, or cannot be written
 */
export function openExportFile(file: string, of: string, savedEveryMs = SAVED_EVERY_MS): Target {
  const beside = `${file}.cursor`
  const saved = readPlace(beside)
  if (saved && saved.of !== of) {
    throw new UsageError(
      `${file} was begun as ${saved.of}, which is not this export: repeat that one, or delete ${file} and ${beside}`,
    )
  }
  if (!saved && existsSync(file)) {
    throw new UsageError(`${file} is there already: name another file, or delete it`)
  }
  const { bytes: begun, rows, cursor } = saved ?? { bytes: 0, rows: 0, cursor: null }
  let bytes = begun
  let savedAt = performance.now()
  const save = (place: Omit<Place, 'bytes'>) => {
    writeFileSync(`${beside}.new`, JSON.stringify({ of, ...place, bytes }))
    renameSync(`${beside}.new`, beside)
    savedAt = performance.now()
  }
  try {
    // Before the file: without its place, one that was begun would be taken for a complete one.
    if (!saved) save({ rows, cursor })
    const handle = openSync(file, 'a')
    if (fstatSync(handle).size < bytes) {
      throw new UsageError(`${file} is shorter than it was: delete it and ${beside}`)
    }
    ftruncateSync(handle, bytes)
    return {
      ...{ cursor, bytes, rows },
      write(text, next) {
        writeFileSync(handle, text)
        bytes += Buffer.byteLength(text)
        // After the last page there is no next one: its place would be that of the beginning.
        if (next.cursor === null || performance.now() - savedAt < savedEveryMs) return
        fsyncSync(handle)
        save(next)
      },
      end() {
        fsyncSync(handle)
        closeSync(handle)
        rmSync(beside)
      },
    }
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof Error)) throw error
    throw new UsageError(`${file} cannot be written: ${error.message}`)
  }
}

function readPlace(beside: string) {
  if (!existsSync(beside)) return undefined
  try {
    return Saved.parse(JSON.parse(readFileSync(beside, 'utf8')))
  } catch {
    throw new UsageError(
      `${beside} is not the place of an export: delete it, and the file beside it`,
    )
  }
}
