import { UsageError } from './options.ts'
import type { Cli } from './print.ts'

/** More objects than these are touched only after a yes. */
const MOST_UNASKED = 1_000

/** The options of a command that asks. */
export type Asking = { dryRun?: true; yes?: true; input: boolean }

/**
 * Asks before many objects are touched.
 * @param what would be done, as a sentence without its full stop
 * @returns whether to go on
 * @throws UsageError where nobody can be asked
 */
export async function mayTouch(
  { input, printError }: Pick<Cli, 'input' | 'printError'>,
  count: number,
  what: string,
  options: Asking,
): Promise<boolean> {
  if (count <= MOST_UNASKED || options.yes) return true
  if (!input.isTTY || !options.input) {
    throw new UsageError(`${what}; more than ${MOST_UNASKED} need --yes`)
  }
  printError(`${what}. Go on? [y/N] `)
  for await (const line of input) return /^y(es)?\s*$/i.test(Buffer.from(line).toString())
  return false
}

/** How often it is shown (ms): a line that is drawn again, or lines of a log. */
const EVERY_MS = { drawn: 200, written: 10_000 }

const BAR_WIDTH = 24

/**
 * Shows how far a command is, on standard error: on a terminal as one line that is drawn again, elsewhere as a line
 * every ten seconds. The end is always shown.
 */
export function showProgress({ printError, isTerminal }: Pick<Cli, 'printError' | 'isTerminal'>) {
  let shownAt = performance.now()
  return (what: string, { done, total, isEnd = false }: Progress): void => {
    const now = performance.now()
    if (!isEnd && now - shownAt < (isTerminal ? EVERY_MS.drawn : EVERY_MS.written)) return
    shownAt = now
    const text = total === undefined ? `${done} ${what}` : `${done} of ${total} ${what}`
    const drawn = `\r${drawBar(done, total)}${text}\u001b[K${isEnd ? '\n' : ''}`
    printError(isTerminal ? drawn : `${text}\n`)
  }
}

type Progress = { done: number; total?: number; isEnd?: boolean }

function drawBar(done: number, total: number | undefined): string {
  if (total === undefined) return ''
  const filled = Math.round((BAR_WIDTH * done) / Math.max(1, total))
  return `[${'#'.repeat(filled).padEnd(BAR_WIDTH, '.')}] `
}
