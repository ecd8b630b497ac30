import { expect, it } from 'vitest'
import { weigh } from '../../../src/refunds/evidence.ts'

const OWN = { refundId: '0d7c9a8e-5d3c-8f0e-9a41-6f1f6f6f2b11', paymentId: 'P', amount: '30' }
const TOLD = {
  ...{ requestId: OWN.refundId, paymentId: 'P', amount: '30.00', code: '0' },
  ...{ verified: true, reading: 1 },
}
const NOTHING = { same: false, settles: undefined, stops: false }

it.each([
  ['of a success', {}, { same: true, settles: 'success', stops: true }],
  ['of a failure', { code: '5' }, { same: true, settles: 'failure', stops: true }],
  [
    'whose request id is written in upper case',
    { requestId: OWN.refundId.toUpperCase() },
    { same: true, settles: 'success', stops: true },
  ],
  [
    'at the second place that names the refund to the letter',
    { reading: 2 },
    { same: true, settles: 'success', stops: true },
  ],
  ['with an open code', { code: '9' }, { same: true, settles: undefined, stops: true }],
  ['without a code', { code: null }, { same: true, settles: undefined, stops: true }],
  ['with another amount', { amount: '31' }, { ...NOTHING, stops: true }],
  ['with another payment', { paymentId: 'Q' }, { ...NOTHING, stops: true }],
  ['without an amount', { amount: null }, { ...NOTHING, stops: true }],
  ['at the second place with another amount', { amount: '31', reading: 2 }, NOTHING],
  ['of another request', { requestId: 'portal-1' }, NOTHING],
  ['that is not verified', { verified: false }, NOTHING],
] as const)('a notification %s counts as %j', (_, facts, weight) => {
  expect(weigh({ ...TOLD, ...facts }, OWN)).toEqual(weight)
})
