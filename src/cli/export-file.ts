import * as fs from 'node:fs'
import { z } from 'zod'
import { RefusedError, UsageError } from './command.ts'

/** How far an export has come: of which export, the next page, and how much is written before it. */
const Place = z.object({
  of: z.string(),
  cursor: z.string().nullable(),
  bytes: z.int().nonnegative(),
  rows: z.int().nonnegative(),
})
type Place = z.infer<typeof Place>

/**
 * Opens a file for an export, or resumes one that was cut off: until it is complete, its place is kept in
 * `FILE.cursor`. What follows the place in the file is cut away first, so that no row is there twice.
 * @param of names the export, so that another one does not resume the file
 * @throws UsageError if the file is another one, or cannot be opened
 */
export function openExportFile(file: string, of: string) {
  const beside = `${file}.cursor`
  const save = (place: Place) => {
    fs.writeFileSync(`${beside}.new`, JSON.stringify(place))
    fs.renameSync(`${beside}.new`, beside)
  }
  const saved = fs.existsSync(beside) ? readPlace(beside) : undefined
  if (saved && saved.of !== of) {
    throw new UsageError(
      `${file} was begun as ${saved.of}, which is not this export: repeat that one, or delete ${file} and ${beside}`,
    )
  }
  if (!saved && fs.existsSync(file)) {
    throw new UsageError(`${file} is there already: name another file, or delete it`)
  }
  const place = saved ?? { of, cursor: null, bytes: 0, rows: 0 }
  const open = () => {
    // The place comes first: without it, a file that was only begun would pass for a complete one.
    if (!saved) save(place)
    return fs.openSync(file, 'a')
  }
  const handle = attempt(file, open, UsageError)
  if (fs.fstatSync(handle).size < place.bytes) {
    throw new UsageError(`${file} is shorter than it was: delete it and ${beside}`)
  }
  fs.ftruncateSync(handle, place.bytes)
  let { bytes } = place
  return {
    ...place,
    /**
     * Writes the next rows.
     * @param next where the list continues after them, and how many rows there are so far
     * @throws RefusedError if they cannot be written, as on a full disk: the same command resumes once there is room
     */
    write(text: string, next: Pick<Place, 'cursor' | 'rows'>): void {
      const writeAndSave = () => {
        fs.writeFileSync(handle, text)
        bytes += Buffer.byteLength(text)
        // After the last page there is no next one, and a place without a cursor is the beginning.
        if (next.cursor === null) return
        fs.fsyncSync(handle)
        save({ of, ...next, bytes })
      }
      attempt(file, writeAndSave, RefusedError)
    },
    end(): void {
      fs.fsyncSync(handle)
      fs.closeSync(handle)
      fs.rmSync(beside)
    },
  }
}

function attempt<T>(file: string, work: () => T, Refusal: new (text: string) => Error): T {
  try {
    return work()
  } catch (error) {
    throw new Refusal(`${file} cannot be written: ${error instanceof Error && error.message}`)
  }
}

function readPlace(beside: string): Place {
  try {
    return Place.parse(JSON.parse(fs.readFileSync(beside, 'utf8')))
  } catch {
    throw new UsageError(
      `${beside} is not the place of an export: delete it, and the file beside it`,
    )
  }
}
