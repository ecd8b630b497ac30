import { type Measure, median, percentile } from './report.ts'

/**
 * Runs `measure` for each name in turn, `rounds` times after one that only warms up; every other round the
 * other way round, so that nobody always follows the same one.
 * @returns what each gave, by name
 */
export async function alternate<N extends string, R>(
  names: readonly N[],
  rounds: number,
  measure: (name: N) => Promise<R>,
): Promise<(name: N) => R[]> {
  const results = new Map<N, R[]>(names.map((name) => [name, []]))
  for (let round = -1; round < rounds; round += 1) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const result = await measure(name)
      if (round >= 0) results.get(name)?.push(result)
    }
  }
  return (name) => results.get(name) ?? []
}

export type Comparison = {
  name: string
  size: number
  unit: string
  digits?: number
  service: readonly number[]
  baseline: readonly number[]
  target?: Measure['target']
  /** The figure must not grow with what is stored by more than this factor; the baseline's growth is shown. */
  growth?: number
}

/** The median of the service's rounds over that of the baseline's. */
export function compare(comparison: Comparison): Measure {
  const { name, size, unit, digits = 0, service, baseline, target, growth } = comparison
  const [own, beside] = [median(service), median(baseline)]
  return {
    name,
    size,
    result: own / beside,
    value: describeRounds(service, unit, digits),
    baseline: describeRounds(baseline, unit, digits),
    ...(target ? { target } : {}),
    ...(growth ? { growing: { figure: own, beside, atMost: growth } } : {}),
  }
}

/** The middle of rounds, with their least and most. */
function describeRounds(values: readonly number[], unit: string, digits = 0): string {
  const write = (value: number) => value.toFixed(digits)
  if (values.length < 2) return `${write(median(values))} ${unit}`
  return `${write(median(values))} ${unit} (${write(Math.min(...values))} to ${write(Math.max(...values))})`
}

/** Single latencies, not rounds. */
export function describeLatencies(values: readonly number[], digits = 1): string {
  const write = (percent: number) => percentile(values, percent).toFixed(digits)
  return `p50 ${write(50)} ms, p99 ${write(99)} ms`
}
