import { z } from '@hono/zod-openapi'

/** A member of the rows, and the names that lead to it: one, or several within nested objects. */
type Column = readonly string[]

/** Written before a text that a spreadsheet would take for a formula. */
const GUARD = /^[=+\-@\t\r]/

/**
 * Writes rows as CSV (RFC 4180) with a header row: a column for each member of their schema, the members of a nested
 * object as `object.member`, a list as its JSON. Text that begins with `= + - @`, tab or CR gets a `'` before it.
 * @param schema of a row; its columns are the same whatever the rows hold
 */
export function writeCsv(schema: z.ZodType, rows: readonly object[]): string {
  const columns = listColumns(schema)
  const header = columns.map((column) => column.join('.'))
  const lines = rows.map((row) => columns.map((column) => writeCell(readMember(row, column))))
  return [header.map(quote), ...lines].map((cells) => `${cells.join(',')}\r\n`).join('')
}

/** The columns of a schema, in its order. Of a union they are those of all its members, each once. */
function listColumns(schema: z.ZodType): Column[] {
  const columns = new Map(findColumns(schema, []).map((column) => [column.join('.'), column]))
  return [...columns.values()]
}

function findColumns(schema: z.ZodType, path: Column): Column[] {
  const bare = unwrap(schema)
  if (bare instanceof z.ZodObject) {
    return Object.entries(bare.shape).flatMap(([name, member]) =>
      member instanceof z.ZodType ? findColumns(member, [...path, name]) : [],
    )
  }
  if (bare instanceof z.ZodUnion && path.length === 0) {
    return bare.options.flatMap((one) => (one instanceof z.ZodType ? findColumns(one, path) : []))
  }
  return [path]
}

function unwrap(schema: z.ZodType): z.ZodType {
  if (!(schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)) return schema
  const inner = schema.unwrap()
  return inner instanceof z.ZodType ? unwrap(inner) : schema
}

function readMember(row: object, column: Column): unknown {
  let value: unknown = row
  for (const name of column) {
    if (typeof value !== 'object' || value === null) return undefined
    value = Object.entries(value).find(([key]) => key === name)?.[1]
  }
  return value
}

function writeCell(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'object') return quote(JSON.stringify(value))
  if (typeof value !== 'string') return String(value)
  return quote(GUARD.test(value) ? `'${value}` : value)
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
