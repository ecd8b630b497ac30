import type { Db } from '../db/client.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import type { EndedEndpoint } from '../webhooks/endpoints.ts'

/** Standard input, or its replacement in a test. */
export type Input = AsyncIterable<Uint8Array | string> & { isTTY?: boolean | undefined }

/** The environment variables of a command; this process's own if left out. */
export type Environment = Readonly<Record<string, string | undefined>> | undefined

/** What commands read and write. */
export type Cli = {
  /** How the program was called, for messages that name a command: `npm run -s cli --`. */
  name: string
  input: Input
  env: Environment
  /** Data, for standard output. What it returns can be awaited by whoever prints much. */
  print: (text: string) => unknown
  /** Messages, for standard error. */
  printError: (text: string) => void
  /** Standard error is a terminal on which a line can be drawn again. */
  isTerminal?: boolean
  /** Prints data: the value as JSON for programs, or the text for people. */
  emit: (json: true | undefined, value: unknown, text: string) => void
  /** Runs work on the service's database, whose schema is current. */
  onDatabase: <T>(work: (sql: Sql, db: Db) => Promise<T>) => Promise<T>
  /** The same in one unit of work, for a change that is recorded in its commit. */
  change: <T>(work: (tx: Tx) => Promise<T>) => Promise<T>
  /** Has a line on standard error for each entry of the audit log, in the format of the service's log. */
  log: Log
  setExitCode: (code: number) => void
}

/** Formats rows under their headings, each column as wide as its longest cell. */
export function formatTable(headings: readonly string[], rows: readonly string[][]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => clean(row[column] ?? '').length)),
  )
  return [headings, ...rows]
    .map((row) => row.map((cell, column) => clean(cell).padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}

/** Replaces control characters, which could break the line or control the terminal. */
function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, '?')
}

/** Describes the webhook endpoints that end with a key, one in each line; nothing when there are none. */
export function describeEnded(endpoints: readonly EndedEndpoint[]): string {
  if (endpoints.length === 0) return ''
  const lines = endpoints.map(({ id, host }) => `  ${id}  ${host}\n`)
  return `These webhook endpoints belong to it, and are disabled:\n${lines.join('')}`
}

/** Receivers stay encrypted in events, so that commands which record some need no encryption key. */
export const NO_KEY = {
  decrypt(): never {
    throw new Error('the command line has no encryption key')
  },
}
