import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type PaymentFacts,
  summarisePayments,
} from '../../../src/transactions/summarise-payments.ts'

/** Amounts in ten-thousandths, so that sums can be checked with integers. */
const units = fc.bigInt({ min: 0n, max: 10n ** 22n - 1n })
const write = (value: bigint) => `${value / 10_000n}.${String(value % 10_000n).padStart(4, '0')}`
const read = (amount: string) => {
  const [whole = '', decimals = ''] = amount.split('.')
  return BigInt(whole) * 10_000n + BigInt(decimals.padEnd(4, '0'))
}

const status = fc.oneof(
  fc.constantFrom('SUCCESS', 'FAILED', 'PROCESSING'),
  // Undocumented words, among them the documented ones in another case.
  fc.constantFrom('success', 'SUCCESS ', 'REFUNDED', 'CANCELLED', ''),
  fc.string(),
)
const method = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('QR', 'ATM', 'CC') },
  fc.constantFrom('cc', 'WALLET', ''),
)
const payment: fc.Arbitrary<PaymentFacts> = fc
  .tuple(status, units, fc.double({ min: 0, max: 1, noNaN: true }), method)
  .map(([word, amount, share, paymentMethod]) => ({
    status: word,
    countedStatus: null,
    paymentMethod,
    amount: write(amount),
    refundedAmount: write((amount * BigInt(Math.round(share * 100))) / 100n),
  }))
const payments = fc.array(payment, { maxLength: 6 })

const pay = (word: string, amount = '10', refundedAmount = '0', paymentMethod = 'CC') => ({
  status: word,
  countedStatus: null,
  paymentMethod,
  amount,
  refundedAmount,
})
const count = (list: readonly PaymentFacts[], word: string) =>
  list.filter((one) => one.status === word).length
const isOpen = (one: PaymentFacts) =>
  !['SUCCESS', 'FAILED'].includes(one.status) || !['QR', 'ATM', 'CC'].includes(one.paymentMethod)

it('a success whose status nobody knows any more counts, and keeps the transaction open', () => {
  const odd = { ...pay('ARCHIVED', '10', '4'), countedStatus: 'SUCCESS' }
  expect(summarisePayments([odd, pay('FAILED')])).toEqual({
    state: 'partially_refunded',
    final: false,
    paidAmount: '10',
    refundedAmount: '4',
    duplicatePayment: false,
  })
})

describe("the contract's table of states", () => {
  it.each([
    ['no payment yet', [], 'pending', false],
    ['one in progress', [pay('PROCESSING')], 'pending', false],
    ['one unrecognised', [pay('ON_HOLD')], 'pending', false],
    ['a failure and one in progress', [pay('FAILED'), pay('PROCESSING')], 'pending', false],
    ['a failure and one unrecognised', [pay('FAILED'), pay('ON_HOLD')], 'pending', false],
    ['a success', [pay('SUCCESS')], 'paid', true],
    ['a success after a failure', [pay('FAILED'), pay('SUCCESS')], 'paid', true],
    ['a success and one in progress', [pay('SUCCESS'), pay('PROCESSING')], 'paid', false],
    ['a success and one unrecognised', [pay('SUCCESS'), pay('ON_HOLD')], 'paid', false],
    ['a success by an unrecognised method', [pay('SUCCESS', '10', '0', 'WALLET')], 'paid', false],
    ['a failure by an unrecognised method', [pay('FAILED', '10', '0', '')], 'pending', false],
    ['a success of nothing', [pay('SUCCESS', '0')], 'paid', true],
    ['a part refunded', [pay('SUCCESS', '10', '9.9999')], 'partially_refunded', true],
    [
      'one of two refunded',
      [pay('SUCCESS', '10', '10'), pay('SUCCESS')],
      'partially_refunded',
      true,
    ],
    [
      'a part refunded, one in progress',
      [pay('SUCCESS', '10', '1'), pay('PROCESSING')],
      'partially_refunded',
      false,
    ],
    ['all refunded', [pay('SUCCESS', '10', '10.00')], 'refunded', true],
    [
      'all of both refunded',
      [pay('SUCCESS', '1', '1'), pay('SUCCESS', '2', '2')],
      'refunded',
      true,
    ],
    [
      'all refunded, one in progress',
      [pay('SUCCESS', '10', '10'), pay('PROCESSING')],
      'refunded',
      false,
    ],
    ['all failed', [pay('FAILED'), pay('FAILED')], 'failed', true],
  ] as const)('%s', (_, list, state, final) => {
    expect(summarisePayments(list)).toMatchObject({ state, final })
  })

  it('holds for every list of payments', () => {
    fc.assert(
      fc.property(payments, (list) => {
        const { state, final, paidAmount, refundedAmount } = summarisePayments(list)
        const paid = count(list, 'SUCCESS') > 0
        const open = list.some(isOpen)
        const [sum, back] = [read(paidAmount), read(refundedAmount)]
        if (paid) {
          expect(state).toBe(back === 0n ? 'paid' : back < sum ? 'partially_refunded' : 'refunded')
          expect(final).toBe(!open)
        } else {
          const failed = list.length > 0 && !open
          expect([state, final]).toEqual([failed ? 'failed' : 'pending', failed])
        }
      }),
    )
  })
})

it('an undocumented status or method never makes a transaction final', () => {
  fc.assert(
    fc.property(payments, payment.filter(isOpen), (list, unknown) => {
      expect(summarisePayments([...list, unknown]).final).toBe(false)
    }),
  )
})

it('sums are exact to the last digit and count successes only', () => {
  fc.assert(
    fc.property(payments, (list) => {
      const paid = list.filter((one) => one.status === 'SUCCESS')
      const sum = (amounts: string[]) => amounts.reduce((total, one) => total + read(one), 0n)
      const summary = summarisePayments(list)
      expect(read(summary.paidAmount)).toBe(sum(paid.map(({ amount }) => amount)))
      expect(read(summary.refundedAmount)).toBe(sum(paid.map((one) => one.refundedAmount)))
    }),
  )
})

it('more than one success is a duplicate payment, and nothing else is', () => {
  fc.assert(
    fc.property(payments, (list) => {
      expect(summarisePayments(list).duplicatePayment).toBe(count(list, 'SUCCESS') > 1)
    }),
  )
})

it('the order of the payments does not matter', () => {
  const shuffled = payments.chain((list) =>
    fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
  )
  fc.assert(
    fc.property(shuffled, ([list, other]) => {
      expect(summarisePayments(other)).toEqual(summarisePayments(list))
    }),
  )
})
