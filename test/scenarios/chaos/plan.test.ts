import { describe, expect, it } from 'vitest'
import { describeMove, planMoves } from './moves.ts'
import { planWish } from './wishes.ts'

const listKinds = (seed: number, stormMs: number) => {
  const moves = Object.values(planMoves(seed, stormMs)).flat()
  return [
    ...new Set(moves.map((move) => ('where' in move ? `${move.kind} ${move.where}` : move.kind))),
  ]
}

describe('a run', () => {
  it('is decided by its seed alone, move by move and customer by customer', () => {
    expect(planMoves(7, 60_000)).toEqual(planMoves(7, 60_000))
    expect(planMoves(7, 60_000)).not.toEqual(planMoves(8, 60_000))
    expect(planWish(7, 3)).toEqual(planWish(7, 3))
    expect(planWish(7, 3)).not.toEqual(planWish(8, 3))
  })

  it('of ten minutes kills at least 20 processes and the database three times, whatever its seed', () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const { accidents } = planMoves(seed, 600_000)
      const count = (kind: string) => accidents.filter((move) => move.kind === kind).length
      expect(count('kill') + count('kill behind a stall')).toBeGreaterThanOrEqual(20)
      expect(count('kill database')).toBeGreaterThanOrEqual(3)
    }
  })

  it('of half a minute kills each role and the database, whatever its seed', () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const { accidents, layouts } = planMoves(seed, 30_000)
      const killed = accidents.flatMap((move) =>
        'who' in move && move.kind !== 'freeze' ? [move.who] : [],
      )
      expect(new Set(killed)).toEqual(new Set(['serving', 'working']))
      expect(accidents.some(({ kind }) => kind === 'kill database')).toBe(true)
      expect(layouts.map((move) => move.kind === 'layout' && move.layout)).toEqual(['all'])
    }
  })

  it('of ten minutes makes every kind of move on every line', () => {
    const lines = ['database', 'gateway', 'intake']
    const onLines = ['cut', 'stall all', 'stall answers'].flatMap((kind) =>
      lines.map((line) => `${kind} ${line}`),
    )
    const others = [
      'kill',
      'kill behind a stall',
      'freeze',
      'kill database',
      'pause database',
      'fault',
      'refund mode',
    ]
    expect(listKinds(1, 600_000)).toEqual(
      expect.arrayContaining([...onLines, ...others, 'settle by hand', 'layout']),
    )
  })

  it('never requests to refund more of a payment than was paid, and never two equal parts', () => {
    for (let n = 0; n < 500; n += 1) {
      const { payments, refunds } = planWish(1, n)
      const amounts = refunds.map(({ amount }) => Number(amount))
      const sum = amounts.reduce((total, amount) => total + amount, 0)
      expect(sum).toBeLessThanOrEqual(Number(payments.at(-1)?.amount))
      expect(new Set(amounts).size).toBe(amounts.length)
    }
  })

  it('is readable: a move shows when, what, whom and for how long', () => {
    expect(describeMove({ kind: 'freeze', who: 'working', pick: 3, atMs: 1_250, forMs: 400 })).toBe(
      '   1.3 s  freeze working 3 for 400 ms',
    )
  })
})
