import { mkdir, writeFile } from 'node:fs/promises'

/** One figure with the baseline it was measured against in the same run. */
export type Measure = {
  name: string
  value: string
  baseline: string
  /** What the value has to reach, and whether it did. */
  target: string
  met: boolean
}

/** Prints the table for people and writes it as JSON for machines. */
export async function writeReport(measures: readonly Measure[], folder: string): Promise<void> {
  const columns = ['name', 'value', 'baseline', 'target'] as const
  const rows = [
    { name: 'measure', value: 'measured', baseline: 'beside it', target: 'to reach' },
    ...measures,
  ]
  const widths = columns.map((column) => Math.max(...rows.map((row) => row[column].length)))
  for (const row of rows) {
    const cells = columns.map((column, index) => row[column].padEnd(widths[index] ?? 0))
    const verdict = 'met' in row ? (row.met ? 'met' : 'MISSED') : ''
    console.log(`${cells.join('  ')}  ${verdict}`.trimEnd())
  }
  await mkdir(folder, { recursive: true })
  await writeFile(`${folder}/bench.json`, `${JSON.stringify(measures, null, 2)}\n`)
  console.log(`\nwritten to ${folder}/bench.json`)
}

/** The middle of the figures. */
export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0
}
