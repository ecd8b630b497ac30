import { expect, it } from 'vitest'
import { readParts } from '../../bench/parts.ts'
import { compareSizes, type Measure, writeTable } from '../../bench/report.ts'
import { alternate, compare } from '../../bench/rounds.ts'

const measure = (size: number, service: number[], baseline: number[]): Measure =>
  compare({
    name: 'ack / naive',
    size,
    unit: 'ms',
    service,
    baseline,
    target: { atMost: 1.1 },
    growth: 1.2,
  })

it('rounds alternate, the first warms up, and neither side always comes first', async () => {
  const order: string[] = []
  const of = await alternate(['a', 'b'], 2, async (name) => order.push(name))
  expect(order.join('')).toBe('baabba')
  expect(of('a')).toEqual([3, 6])
  expect(of('b')).toEqual([4, 5])
})

it('a result is the ratio of two medians, with both of them beside it', () => {
  expect(measure(10, [30, 10, 20], [10, 10, 40])).toMatchObject({
    result: 2,
    value: '20 ms (10 to 30)',
    baseline: '10 ms (10 to 40)',
  })
})

it('growth from the least to the most stored stands beside the growth of the baseline', () => {
  const measures = [measure(10, [10], [5]), measure(20, [11], [9]), measure(30, [15], [10])]
  expect(compareSizes(measures, [10, 20, 30])).toMatchObject([
    { name: 'growth of ack: at 30 / at 10', size: 30, result: 1.5, target: { atMost: 1.2 } },
  ])
  expect(compareSizes(measures, [10, 20, 30])[0]?.baseline).toContain('naive 2.00')
  expect(compareSizes(measures, [10])).toEqual([])
})

it('the table has a column for each size, and says where a target was missed', () => {
  const measures = [measure(10_000, [1], [1]), measure(1_000_000, [2], [1])]
  expect(writeTable(measures)).toBe(
    `| measure | 10 k stored | 1 M stored | to reach | met |
| --- | --- | --- | --- | --- |
| ack / naive | 1.00 (1 ms / 1 ms) | **2.00** (2 ms / 1 ms) | ≤ 1.1 | not at 1 M |`,
  )
})

it('parts are chosen by name: all but the indexes, those that are named, and no unknown one', () => {
  const [all, some] = [readParts(''), readParts('cost,indexes')]
  const part = (...names: string[]) => ({ names, measure: () => Promise.resolve([]) })
  expect([all(part('sync')), all(part('indexes'))]).toEqual([true, false])
  expect([some(part('intake', 'cost')), some(part('sync')), some(part('indexes'))]).toEqual([
    true,
    false,
    true,
  ])
  expect(() => readParts('intakes')).toThrow('--only knows start, removal')
})
