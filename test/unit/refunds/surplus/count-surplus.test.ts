import { describe, expect, it } from 'vitest'
import { countSurplus, type OrderPayment } from '../../../../src/refunds/order-surplus.ts'

const pay = (amount: string, expectedAmount: string | null = null): OrderPayment => ({
  ...{ transactionId: 'T-1', paymentId: `P-${amount}`, paymentMethod: 'CARD' },
  ...{ amount, refundable: amount, leftWithoutLater: amount, expectedAmount },
  ...{ own: true, unrecognised: false, confirmed: true, unsettled: false },
})

describe('one success of an order', () => {
  it('is the largest payment, when the amount of the order is not known or less', () => {
    const payments = [pay('100'), pay('150', '100')]
    expect(countSurplus(payments)).toMatchObject({ success: '150', amount: '100' })
  })

  it('is the amount of the order, when payments are parts of it', () => {
    const payments = [pay('100', '250'), pay('150', '250'), pay('30', '250')]
    expect(countSurplus(payments)).toMatchObject({ success: '250', amount: '30' })
  })

  it('is what was paid, when the order is paid in part: nothing is missing from it', () => {
    const payments = [pay('100', '250'), pay('50', '250')]
    expect(countSurplus(payments)).toEqual({ success: '150', amount: '0', unpaid: false })
  })
})
