import type { Config } from '../config/config.ts'
import type { Overview } from '../health/overview.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { Cli } from './command.ts'

/** An error keeps the service from working, or puts acknowledged work at risk; a warning will, if nobody looks. */
type Severity = 'info' | 'warning' | 'error'

/** What was found; `action` is what to do about it, null where there is nothing to do. */
type Found = { severity: Severity; finding: string; action: string | null }
export type Diagnosis = { id: string } & Found

export type Patient = {
  sql: Sql
  config: Config
  /** How all accounts stand; read once. */
  readWork: () => Promise<Overview>
}

/** Examinations by their ids, in their order. None of them changes a row. */
export type Examinations = Readonly<Record<string, (patient: Patient) => Promise<Found | Found[]>>>

/** Something is wrong if there is something to do about it. */
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

/** Collects what is found, and prints it as it comes; exit code 1 if something is an error. */
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
