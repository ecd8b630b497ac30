import { describe, expect, it } from 'vitest'
import { formatParams } from '../../../../src/refunds/idempotency.ts'

const ask = (amount: string) => ({ amount, receiver: undefined, reason: 'paid twice' })

describe('what an idempotency key stands for', () => {
  it('is another request for the surplus of a transaction than for a payment of the same id', () => {
    const ofPayment = formatParams({ paymentId: '1234', ...ask('100') })
    expect(formatParams({ transactionId: '1234', ...ask('100') })).not.toBe(ofPayment)
  })

  it('is the same request, however its amount is written', () => {
    const [long, short] = ['10000.00', '10000'].map((amount) =>
      formatParams({ paymentId: '1234', ...ask(amount) }),
    )
    expect(long).toBe(short)
  })

  it('is another request on behalf of another person, or of nobody', () => {
    const forWhom = [{}, { onBehalfOf: 'Tran Thi B' }, { onBehalfOf: 'Le Van C' }]
    const texts = forWhom.map((one) => formatParams({ paymentId: '1234', ...ask('1'), ...one }))
    expect(new Set(texts).size).toBe(3)
  })
})
