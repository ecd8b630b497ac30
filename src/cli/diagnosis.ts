import type { Config } from '../config/config.ts'
import type { Sql } from '../platform/postgres/types.ts'

/** An error keeps the service from working, or puts acknowledged work at risk; a warning will, if nobody looks. */
export type Severity = 'info' | 'warning' | 'error'

/** One finding of the doctor. `action` is what to do about it; null where there is nothing to do. */
export type Diagnosis = { id: string; severity: Severity; finding: string; action: string | null }

export type Patient = { sql: Sql; config: Config }

export type Found = Omit<Diagnosis, 'id'>[]

export type Examination = (patient: Patient) => Promise<Found>

export const info = (finding: string): Found => [{ severity: 'info', finding, action: null }]
export const warn = (finding: string, action: string): Found => [
  { severity: 'warning', finding, action },
]
export const fail = (finding: string, action: string): Found => [
  { severity: 'error', finding, action },
]

/** Reads a statement that always has one row. */
export async function readOne<T extends object>(rows: Promise<readonly T[]>): Promise<T> {
  const [row] = await rows
  if (!row) throw new Error('the database returned no row')
  return row
}

/** Formats a time span in its largest unit: `45 s`, `12 min`, `3 h`, `8 days`. */
export function formatSpan(seconds: number): string {
  const [unit = '', size = 1] = SPANS.find(([, least]) => seconds >= 2 * least) ?? []
  return `${Math.floor(seconds / size)} ${unit}`
}
const SPANS = [
  ['days', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 0.5],
] as const

export const count = (number: number, one: string, several = `${one}s`) =>
  `${number} ${number === 1 ? one : several}`
