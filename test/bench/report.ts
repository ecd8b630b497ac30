import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'

/** One figure with the baseline it was measured against in the same run. */
export type Measure = {
  name: string
  /** Transactions that were stored when it was measured. */
  size: number
  /** What has to reach the target: a ratio, or a figure by itself where there is no baseline. */
  result: number
  value: string
  baseline: string
  /** A figure of its own that must not grow with what is stored (ms), and by how much it may. */
  growing?: { figure: number; atMost: number }
  /** What the result has to reach: `≥ 0.8` or `≤ 1.15`; none for what is only shown. */
  target?: { atLeast: number } | { atMost: number }
}

export function isMet({ result, target }: Measure): boolean | undefined {
  if (!target) return undefined
  return 'atLeast' in target ? result >= target.atLeast : result <= target.atMost
}

export function writeTarget({ target }: Measure): string {
  if (!target) return ''
  return 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`
}

/** What it was measured on. */
export function describeMachine(database: string): string {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  return `${cpus().length} × ${cpu?.model.trim()}, ${memory} GB, Node ${process.version}, ${database}`
}

/** Prints the table for people and writes it as JSON for machines. */
export async function writeReport(
  measures: readonly Measure[],
  machine: string,
  folder: string,
): Promise<void> {
  const rows = [
    ['measure', 'stored', 'result', 'measured', 'beside it', 'to reach', ''],
    ...measures.map((one) => [
      one.name,
      writeSize(one.size),
      one.result.toFixed(2),
      one.value,
      one.baseline,
      writeTarget(one),
      { true: 'met', false: 'MISSED' }[String(isMet(one))] ?? '',
    ]),
  ]
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? []
  console.log(`\n${machine}\n`)
  for (const row of rows) {
    console.log(
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  }
  await mkdir(folder, { recursive: true })
  const written = measures.map((one) => ({ ...one, met: isMet(one) }))
  await writeFile(
    `${folder}/bench.json`,
    `${JSON.stringify({ machine, at: new Date().toISOString(), measures: written }, null, 2)}\n`,
  )
  console.log(`\nwritten to ${folder}/bench.json`)
}

export function writeSize(size: number): string {
  if (size >= 1_000_000) return `${size / 1_000_000} M`
  return size >= 1000 ? `${size / 1000} k` : String(size)
}

/** The middle of the figures. */
export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0
}

/** The middle of rounds, with their least and most. */
export function describeRounds(values: readonly number[], unit: string, digits = 0): string {
  const write = (value: number) => value.toFixed(digits)
  return `${write(median(values))} ${unit} (${write(Math.min(...values))} to ${write(Math.max(...values))})`
}
