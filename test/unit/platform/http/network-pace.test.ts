import { expect, it } from 'vitest'
import { createNetworkPace } from '../../../../src/http/network-pace.ts'

/** Ten requests a second of each network, at a time that the test sets. */
function start() {
  const clock = { at: 10_000 }
  const pace = createNetworkPace(10, 500, () => clock.at)
  const take = (count: number, address = '192.0.2.1') =>
    Array.from({ length: count }, () => pace(address))
  return { clock, take }
}

it('the requests of a second have their turn at once, the next ones wait in turn, the rest has none', () => {
  const { take } = start()
  expect(take(10)).toEqual(Array(10).fill(0))
  expect(take(7)).toEqual([100, 200, 300, 400, 500, undefined, undefined])
})

it('a refusal takes no turn, and time gives turns back', () => {
  const { clock, take } = start()
  take(50)
  clock.at += 200
  expect(take(3)).toEqual([400, 500, undefined])
  clock.at += 10_000
  expect(take(11)).toEqual([...Array(10).fill(0), 100])
})

it('networks do not wait for each other, and a /64 is one', () => {
  const { take } = start()
  take(50)
  expect(take(1, '192.0.2.2')).toEqual([0])
  take(50, '2001:db8::1')
  expect(take(1, '2001:db8::2')).toEqual([undefined])
  expect(take(1, '2001:db8:0:1::')).toEqual([0])
})
