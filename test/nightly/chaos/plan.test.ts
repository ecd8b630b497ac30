import { describe, expect, it } from 'vitest'
import { findRepeated } from '../audit/ledgers.ts'
import { describeMove, planMoves } from './moves.ts'
import { type PortalWish, planWish, planWishes, type Wish } from './wishes.ts'

const listKinds = (seed: number, stormMs: number) => {
  const moves = Object.values(planMoves(seed, stormMs)).flat()
  return [
    ...new Set(moves.map((move) => ('where' in move ? `${move.kind} ${move.where}` : move.kind))),
  ]
}

const WISHES = Array.from({ length: 500 }, (_, n) => planWishes(1, n)).flat()

describe('a run', () => {
  it('is decided by its seed alone, move by move and customer by customer', () => {
    expect(planMoves(7, 60_000)).toEqual(planMoves(7, 60_000))
    expect(planMoves(7, 60_000)).not.toEqual(planMoves(8, 60_000))
    expect(planWish(7, 3)).toEqual(planWish(7, 3))
    expect(planWish(7, 3)).not.toEqual(planWish(8, 3))
    expect(planWishes(7, 3)).toEqual(planWishes(7, 3))
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
      expect.arrayContaining([...onLines, ...others, 'settle by hand', 'layout', 'lagging ledger']),
    )
  })

  it('lets the standby take over and then sets the database back once, and lets the ledger lag, whatever its seed', () => {
    for (let seed = 0; seed < 200; seed += 1) {
      for (const stormMs of [30_000, 60_000, 600_000]) {
        const { history, ledger } = planMoves(seed, stormMs)
        const kinds = history.map(({ kind }) => kind)
        expect(kinds).toEqual(['fail over', 'copy database', 'set back database'])
        const times = history.map(({ atMs }) => atMs)
        expect(times).toEqual(times.toSorted((a, b) => a - b))
        expect(times.at(-1)).toBeLessThan(0.75 * stormMs)
        expect(ledger.length).toBeGreaterThanOrEqual(2)
      }
    }
  })

  it('never requests to refund more of a payment than was paid, unless to be refused', () => {
    for (const { payments, refunds, portal } of WISHES) {
      const own = refunds.filter(({ isTooMuch }) => !isTooMuch)
      const sum = [...own, ...portal, ...portal].reduce((all, one) => all + Number(one.amount), 0)
      expect(sum).toBeLessThanOrEqual(Number(payments.at(-1)?.amount))
      const tooMuch = refunds.filter(({ isTooMuch }) => isTooMuch)
      if (tooMuch.length > 0) expect(portal[0]?.when).toBe('before')
      for (const { amount } of tooMuch) expect(amount).toBe(payments.at(-1)?.amount)
    }
  })

  it('has equal refunds, portal refunds of every kind, and ids and keys that both accounts use', () => {
    const count = (isIt: (wish: Wish) => boolean) => WISHES.filter(isIt).length
    const hasEqual = (amounts: readonly string[]) => new Set(amounts).size < amounts.length
    const amounts = ({ refunds }: Wish) => refunds.map(({ amount }) => amount)
    expect(count((wish) => hasEqual(amounts(wish)))).toBeGreaterThan(50)
    const inPortal = (isIt: (one: PortalWish, wish: Wish) => boolean) =>
      count((wish) => wish.portal.some((one) => isIt(one, wish)))
    expect(inPortal(({ amount }, wish) => amounts(wish).includes(amount))).toBeGreaterThan(50)
    expect(inPortal(({ when }) => when === 'before')).toBeGreaterThan(50)
    expect(inPortal(({ when }) => when !== 'before')).toBeGreaterThan(50)
    expect(inPortal(({ ipn }) => ipn === false)).toBeGreaterThan(10)
    expect(inPortal(({ ipn }) => ipn !== false && ipn.copies > 1)).toBeGreaterThan(30)
    expect(inPortal(({ ipn }) => ipn !== false && ipn.delayMs > 1_000)).toBeGreaterThan(30)
    expect(count(({ refunds }) => refunds.some(({ isTooMuch }) => isTooMuch))).toBeGreaterThan(10)
    const shared = findRepeated(WISHES.map(({ transactionId }) => transactionId))
    expect(shared.length).toBeGreaterThan(100)
    const keys = WISHES.flatMap(({ refunds }) => refunds.map(({ key }) => key))
    expect(findRepeated(keys).length).toBeGreaterThan(50)
    expect(new Set(WISHES.map(({ merchantCode }) => merchantCode)).size).toBe(2)
  })

  it('is readable: a move shows when, what, whom and for how long', () => {
    expect(describeMove({ kind: 'freeze', who: 'working', pick: 3, atMs: 1_250, forMs: 400 })).toBe(
      '   1.3 s  freeze working 3 for 400 ms',
    )
  })
})
