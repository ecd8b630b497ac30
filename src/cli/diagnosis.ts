import type { Config } from '../config/config.ts'
import type { Overview } from '../health/overview.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { Cli } from './command.ts'

/** An error keeps the service from working, or endangers acknowledged work; a warning will, if nobody looks. */
type Severity = 'info' | 'warning' | 'error'

/** `action` says what to do about it, and is null if there is nothing to do. */
type Found = { severity: Severity; finding: string; action: string | null }
export type Diagnosis = { id: string } & Found

type Patient = {
  sql: Sql
  config: Config
  /** Reads the state of all accounts, once. */
  readWork: () => Promise<Overview>
}

/** Examinations by id, in their order. None changes a row. */
export type Examinations = Readonly<Record<string, (patient: Patient) => Promise<Found | Found[]>>>

/** Makes a finding: one that needs no action is information. */
export function judge(
  finding: string,
  action: string | false | undefined,
  severity: Severity = 'warning',
): Found {
  return action ? { severity, finding, action } : { severity: 'info', finding, action: null }
}

export const orFine = (found: Found[], fine: string) =>
  found.length > 0 ? found : judge(fine, false)

/** Reads a statement that always has one row. */
export async function readOne<T extends object>(rows: Promise<readonly T[]>): Promise<T> {
  const [row] = await rows
  if (!row) throw new Error('the database returned no row')
  return row
}

/** Formats a time span in its largest unit: `45 s`, `12 min`, `3 h`, `8 days`. */
export function formatSpan(seconds: number): string {
  const [unit, size] = SPANS.find(([, least]) => seconds >= 2 * least) ?? ['s', 1]
  return `${Math.floor(seconds / size)} ${unit}`
}
const SPANS = [
  ['days', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const

const SHOWN = { info: 'ok', warning: 'WARN', error: 'ERROR' }

/** Collects findings, and prints each as it comes. The exit code is 1 if one is an error. */
export function createReport({ json, print }: Pick<Cli, 'json' | 'print'>) {
  const findings: Diagnosis[] = []
  return {
    add(one: Diagnosis): void {
      findings.push(one)
      const text = one.action === null ? one.finding : `${one.finding}; ${one.action}`
      const line = `${SHOWN[one.severity].padEnd(6)}${one.id.padEnd(14)}${text}`
      if (!json) print(`${line.replace(/\p{Cc}/gu, ' ')}\n`)
    },
    end() {
      const count = (wanted: Severity) =>
        findings.filter(({ severity }) => severity === wanted).length
      const text = `${findings.length} findings: ${count('error')} errors, ${count('warning')} warnings\n`
      const ok = count('error') === 0
      return { value: { ok, findings }, text, isFinding: !ok }
    },
  }
}
