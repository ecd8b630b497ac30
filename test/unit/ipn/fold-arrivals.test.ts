import { expect, it } from 'vitest'
import { foldArrivals } from '../../../src/ipn/rows.ts'
import type { Arrival } from '../../../src/ipn/types.ts'
import { makeArrival } from '../../support/arrivals.ts'

/** A refund's notification; `hints` are the values that it could be read with. */
function makeRefundArrival(hints: object, more: Partial<Arrival> = {}): Arrival {
  const { notification, ...arrival } = makeArrival('M', 'T', 'the same')
  const refund = { ...notification, kind: 'refund' as const, requestId: 'R', ...hints }
  return { ...arrival, notification: refund, ...more }
}

const FULL = { paymentId: 'P', amount: '30', code: '0' }

it('copies of a notification in one batch count as one, with the values of any of them', () => {
  const copies = [{ ...FULL, amount: undefined }, { ...FULL, code: undefined }, FULL, {}]
  const folded = foldArrivals(copies.map((hints) => makeRefundArrival(hints)))
  expect(folded).toMatchObject([{ deliveries: 4, arrival: { notification: FULL } }])
})

it('a verified one counts, whichever comes first', () => {
  const [missing, verified] = (['missing', 'verified'] as const).map((verdict) =>
    makeRefundArrival(FULL, { verdict }),
  )
  if (!missing || !verified) throw new Error('both were made')
  for (const batch of [
    [missing, verified],
    [verified, missing],
  ]) {
    expect(foldArrivals(batch)).toMatchObject([{ deliveries: 2, arrival: { verdict: 'verified' } }])
  }
})
