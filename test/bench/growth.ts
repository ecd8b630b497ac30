import { type Measure, writeSize } from './report.ts'

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
