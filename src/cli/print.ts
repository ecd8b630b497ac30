import type { EndedEndpoint } from '../webhooks/endpoints.ts'
import { type Cli, UsageError } from './command.ts'

/** Formats rows as a table whose columns are as wide as their longest cell. The headings are the members' names. */
export function formatTable<Row extends object>(
  rows: readonly Row[],
  columns: readonly (keyof Row & string)[],
): string {
  const headings = columns.map((name) => name.replaceAll(/[A-Z]/g, ' $&').toUpperCase())
  const lines = [headings, ...rows.map((row) => columns.map((name) => formatCell(row[name])))]
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)))
  const pad = (line: string[]) => line.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')
  return lines.map((line) => `${pad(line).trimEnd()}\n`).join('')
}

export function formatMembers(object: object): string {
  const rows = Object.entries(object).map(([member, value]) => ({ member, value }))
  return formatTable(rows, ['member', 'value'])
}

const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d[.\d]*)Z$/

/** Replaces control characters, which could break the line or control the terminal. */
export const clean = (text: string) => text.replace(/\p{Cc}/gu, '?')

/** Times are in UTC. */
export function formatCell(value: unknown): string {
  if (value === undefined || value === null || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.map(formatCell).join(',') || '-'
  if (typeof value !== 'object') return clean(String(value).replace(TIME, '$1 $2'))
  const members = Object.entries(value).filter(([, member]) => member !== null)
  return members.map(([name, member]) => `${name} ${formatCell(member)}`).join(', ')
}

export function describeEnded(endpoints: readonly EndedEndpoint[]): string {
  if (endpoints.length === 0) return ''
  return `These webhook endpoints belong to it, and are disabled:\n${formatTable(endpoints, ['id', 'host'])}`
}

const MOST_UNASKED = 1_000

/**
 * Asks for confirmation before many objects are touched.
 * @param what would be done, as a sentence without its full stop
 * @throws UsageError where nobody can be asked
 */
export async function mayTouch(
  { canAsk, input, printError }: Cli,
  count: number,
  what: string,
  yes = false,
): Promise<boolean> {
  if (count <= MOST_UNASKED || yes) return true
  if (!canAsk) throw new UsageError(`${what}; more than ${MOST_UNASKED} need --yes`)
  printError(`${what}. Go on? [y/N] `)
  for await (const line of input) return /^y(es)?\s*$/i.test(Buffer.from(line).toString())
  return false
}

/** How often progress is shown (ms): in a line that is redrawn, or as lines of a log. */
const EVERY_MS = { drawn: 200, written: 10_000 }
const BAR_WIDTH = 24

/** Shows progress on standard error. The end is always shown. */
export function showProgress({ printError, isTerminal }: Cli, what: string, total?: number) {
  let shownAt = performance.now()
  return (done: number, isEnd = false): void => {
    const now = performance.now()
    if (!isEnd && now - shownAt < (isTerminal ? EVERY_MS.drawn : EVERY_MS.written)) return
    shownAt = now
    const filled = Math.round((BAR_WIDTH * done) / Math.max(1, total ?? 1))
    const bar = total === undefined ? '' : `[${'#'.repeat(filled).padEnd(BAR_WIDTH, '.')}] `
    const text = total === undefined ? `${done} ${what}` : `${done} of ${total} ${what}`
    printError(isTerminal ? `\r${bar}${text}\u001b[K${isEnd ? '\n' : ''}` : `${text}\n`)
  }
}
