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
  /** The figure of the service and the baseline's, which must not grow by more than this factor. */
  growing?: { figure: number; beside: number; atMost: number }
  /** What the result has to reach: `≥ 0.8` or `≤ 1.1`; none for what is only shown. */
  target?: { atLeast: number } | { atMost: number }
}

/** A figure by itself, without a baseline. */
export function makeFigure(
  name: string,
  size: number,
  result: number,
  more: Partial<Measure> = {},
): Measure {
  return { name, size, result, value: '', baseline: '', ...more }
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

/** Writes the table for people, and everything as JSON for machines. */
export async function writeReport(
  measures: readonly Measure[],
  machine: string,
  folder: string,
): Promise<void> {
  const written = measures.map((one) => ({ ...one, met: isMet(one) }))
  const json = JSON.stringify({ machine, at: new Date().toISOString(), measures: written }, null, 2)
  await mkdir(folder, { recursive: true })
  await writeFile(`${folder}/bench.json`, `${json}\n`)
  await writeFile(`${folder}/bench.md`, `${machine}\n\n${writeTable(measures)}\n`)
}

/** A table in Markdown: a row for each measure, with a column for each size at which several were measured. */
export function writeTable(measures: readonly Measure[]): string {
  const sizes = [...new Set(measures.map(({ size }) => size))].sort((a, b) => a - b)
  const header = ['measure', ...sizes.map(writeHeader), 'to reach', 'met']
  const names = [...new Set(measures.map(({ name }) => name))]
  const rows = names.map((name) => {
    const of = measures.filter((one) => one.name === name)
    const cells = sizes.map((size) => writeCell(of.find((one) => one.size === size)))
    const [first] = of
    return [name, ...cells, first ? writeTarget(first) : '', writeMet(of)]
  })
  return [header, header.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}

function writeHeader(size: number): string {
  return size === 0 ? 'nothing stored' : `${writeSize(size)} stored`
}

function writeCell(measure: Measure | undefined): string {
  if (!measure) return ''
  const { result, value, baseline } = measure
  const figures = [value, baseline].filter((text) => text !== '').join(' / ')
  const shown = isMet(measure) === false ? `**${writeResult(result)}**` : writeResult(result)
  return figures ? `${shown} (${figures})` : shown
}

function writeResult(result: number): string {
  return result >= 100 ? result.toFixed(0) : result.toFixed(2)
}

function writeMet(of: readonly Measure[]): string {
  if (of.every((one) => isMet(one) === undefined)) return ''
  const missed = of.filter((one) => isMet(one) === false)
  if (missed.length === 0) return 'yes'
  return missed.length === of.length
    ? 'no'
    : `not at ${missed.map(({ size }) => writeSize(size)).join(', ')}`
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

/** What grows with the number of stored transactions, from the least to the most, beside the baseline's own growth. */
export function compareSizes(all: readonly Measure[], sizes: readonly number[]): Measure[] {
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)]
  if (least === most) return []
  return all.flatMap(({ name, size, growing }) => {
    const small = all.find((one) => one.name === name && one.size === least)?.growing
    if (!growing || !small || size !== most) return []
    const [what, baseline] = name.split(' / ')
    const own = growing.figure / small.figure
    const beside = growing.beside / small.beside
    const write = (figure: number) => figure.toFixed(figure < 20 ? 2 : 0)
    return {
      name: `growth of ${what}: at ${writeSize(most)} / at ${writeSize(least)}`,
      size,
      result: own,
      value: `${write(growing.figure)} / ${write(small.figure)}`,
      baseline: `${baseline ?? 'baseline'} ${beside.toFixed(2)}: ${write(growing.beside)} / ${write(small.beside)}`,
      target: { atMost: growing.atMost },
    }
  })
}
