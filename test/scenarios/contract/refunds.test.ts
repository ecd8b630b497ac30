import { afterEach, describe, expect, it } from 'vitest'
import { emptyTables } from '../../support/database.ts'
import { makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { useRefundLab } from '../../support/use-started.ts'
import { matching } from './matching.ts'
import { REFUND_ANSWER_ROWS } from './refund-tables.ts'

const lab = useRefundLab()
afterEach(() => emptyTables(lab.database))

describe.each(REFUND_ANSWER_ROWS)('$row', ({ documented, odd }) => {
  it('has at least three odd forms', () => expect(odd.length).toBeGreaterThanOrEqual(3))
  it.each([documented, ...odd])('$given', async ({ body, http, sees }) => {
    const gateway = await startListingGateway(lab)
    const payment = await lab.open()
    gateway.list(makeEntry(payment.id, { amount: 100 }))
    gateway.answer('REFUND', body, http)
    const refundId = await lab.ask(payment, '30')
    await gateway.sync(payment.transactionId)
    expect(await lab.readRefund(refundId)).toMatchObject(matching(sees))
    // Whatever the answer was, the amount stays reserved until it is known that nothing moved.
    expect(await lab.payment(payment.id)).toMatchObject({ refundableAmount: '70' })
  })
})
