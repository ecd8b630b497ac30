import { describe, expect, it } from 'vitest'
import { RECEIVER } from '../support/ask.ts'
import { startListingGateway } from '../support/listing-gateway.ts'
import { type Params, sign } from '../support/recut.ts'
import { MERCHANT, postIpn } from '../support/service.ts'
import { useFreshLab } from '../support/use-started.ts'

const lab = useFreshLab()

/** What the gateway said of a refund, as order systems read it. */
async function readStory(refundId: string) {
  const { gatewayRefundId, gatewayReference, gatewayReferenceSource, fee, status, failure } =
    await lab.readRefund(refundId)
  return { gatewayRefundId, gatewayReference, gatewayReferenceSource, fee, status, failure }
}

/** The newest event of a refund, which is not published yet. */
async function readLastEvent(): Promise<unknown> {
  const [row] = await lab.database.sql`
    select data from event_outbox where type = 'refund.updated' order by id desc limit 1`
  return row?.data
}

describe('the reference and the fee of a refund', () => {
  it('are those of the answer, then those of its notification, and the event has them', async () => {
    const { payment, refundId } = await lab.openSent()
    const answered = await readStory(refundId)
    expect(answered).toMatchObject({
      status: 'accepted',
      gatewayReferenceSource: 'answer',
      fee: null,
    })
    expect(answered.gatewayReference).toBe(answered.gatewayRefundId)
    expect(answered.gatewayReference).toMatch(/^\w+$/)
    await lab.passNotified(payment, refundId, '30', { fee: 3300, reference: '261122BANKREF' })
    const notified = {
      status: 'succeeded',
      gatewayRefundId: answered.gatewayRefundId,
      gatewayReference: '261122BANKREF',
      gatewayReferenceSource: 'notification',
      fee: '3300',
    }
    expect(await readStory(refundId)).toMatchObject(notified)
    expect(await readLastEvent()).toMatchObject({ id: refundId, ...notified })
  })

  it.each([
    ['the fee', { fee: '0.5', reference: '' }, { fee: '0.5', gatewayReferenceSource: 'answer' }],
    ['the reference', { reference: 'LATER' }, { fee: null, gatewayReference: 'LATER' }],
  ])(
    'are learnt of a refund that had succeeded before, with an event: %s',
    async (_, says, shown) => {
      const { payment, refundId } = await lab.openSent()
      await lab.passSettled(payment, refundId)
      await lab.database.sql`update refunds set inferred = false`
      await lab.database.sql`delete from event_outbox`
      const { updatedAt } = await lab.readRefund(refundId)
      await lab.passNotified(payment, refundId, '30', says)
      const learnt = { status: 'succeeded', ...shown }
      expect(await readStory(refundId)).toMatchObject(learnt)
      expect(await readLastEvent()).toMatchObject({ id: refundId, ...learnt })
      expect((await lab.readRefund(refundId)).updatedAt > updatedAt).toBe(true)
    },
  )

  it.each([
    ['the genuine one', 'apart', 'GENUINE'],
    ['the copy', 'apart', 'UINE'],
    ['the genuine one', 'together', 'GENUINE'],
  ])(
    'are those of what came first when the end of the message is cut elsewhere: %s first, %s',
    async (first, when, reference) => {
      const { payment, refundId } = await lab.openSent()
      const genuine: Params = sign({
        svc_Amount: '30',
        svc_Command: 'REFUND',
        svc_Fee: '7',
        svc_MerchantCode: MERCHANT.merchantCode,
        svc_PaymentID: payment.id,
        svc_RequestID: refundId,
        svc_ResponseCode: '0',
        svc_ResponseMsg: 'Success',
        svc_TransactionID: 'GENUINE',
        svc_Version: '1',
      })
      const cut = { ...genuine, svc_ResponseMsg: 'SuccessGEN', svc_TransactionID: 'UINE' }
      const order = first === 'the copy' ? [cut, genuine] : [genuine, cut]
      for (const one of order) {
        expect((await postIpn(lab.service.url, one)).status).toBe(200)
        if (when === 'apart') await lab.pass(payment)
      }
      await lab.pass(payment)
      const story = await readStory(refundId)
      expect(story).toMatchObject({
        status: 'succeeded',
        gatewayReferenceSource: 'notification',
        gatewayReference: reference,
        fee: '7',
      })
    },
  )

  it('are not taken from a member that no table lists', async () => {
    const { payment, refundId } = await lab.openSent()
    const genuine = sign({
      svc_Amount: '30',
      svc_Command: 'REFUND',
      svc_Fee: '75',
      svc_MerchantCode: MERCHANT.merchantCode,
      svc_PaymentID: payment.id,
      svc_RequestID: refundId,
      svc_ResponseCode: '0',
      svc_ResponseMsg: 'Success',
      svc_Version: '1',
    })
    const cut = { ...genuine, svc_Fee: '7', svc_Feex: '5' }
    expect((await postIpn(lab.service.url, cut)).status).toBe(200)
    await lab.pass(payment)
    expect(await readStory(refundId)).toMatchObject({ status: 'succeeded', fee: null })
  })

  it('a number as the transId of the answer is kept by its text', async () => {
    const gateway = await startListingGateway(lab)
    const payment = await lab.open()
    gateway.list({
      ...{ id: payment.id, status: 'SUCCESS', amount: 100, refundedAmount: 0, paymentMethod: 'CC' },
    })
    gateway.answer(
      'REFUND',
      '{"svc_ResponseCode":0,"svc_ResponseData":{"transId":9007199254740993},"svc_ResponseMsg":""}',
    )
    const refundId = await lab.ask(payment, '30')
    await gateway.sync(payment.transactionId)
    expect(await readStory(refundId)).toMatchObject({
      status: 'accepted',
      gatewayRefundId: '9007199254740993',
      gatewayReference: '9007199254740993',
    })
  })
})

describe('the words of a failure', () => {
  async function fail(message: string, code = 33) {
    const payment = await lab.open({ paymentMethod: 'QR' })
    const { body } = await lab.refund(payment.id, { amount: '30', receiver: RECEIVER })
    await lab.pass(payment)
    await lab.notify(payment, body.id, '30', { code, message })
    await lab.passTwice(payment, String(body.id))
    return await readStory(body.id)
  }

  it("are the gateway's, as notified", async () => {
    const failure = { source: 'gateway', code: '33', message: 'Tài khoản không tồn tại' }
    expect(await fail('Tài khoản không tồn tại')).toMatchObject({ status: 'failed', failure })
  })

  it("have the receiver's account number masked", async () => {
    const { failure } = await fail(`Account ${RECEIVER.accountNumber} is closed`)
    expect(failure?.message).toBe('Account •••• 6789 is closed')
  })

  it('are the published meaning of the code, and marked as that, when there are none', async () => {
    const { failure } = await fail('')
    expect(failure).toMatchObject({
      code: '33',
      message: expect.stringMatching(/^invalid amount \(published/),
    })
  })

  it.each([
    ['', /^invalid currency \(published/],
    ['Tiền tệ không hợp lệ', /^Tiền tệ không hợp lệ$/],
  ])('of an answer with the message %j', async (message, shown) => {
    const gateway = await startListingGateway(lab)
    const payment = await lab.open()
    gateway.list({
      ...{ id: payment.id, status: 'SUCCESS', amount: 100, refundedAmount: 0, paymentMethod: 'CC' },
    })
    gateway.answer('REFUND', JSON.stringify({ svc_ResponseCode: 34, svc_ResponseMsg: message }))
    const refundId = await lab.ask(payment, '30')
    await gateway.sync(payment.transactionId)
    expect(await readStory(refundId)).toMatchObject({
      status: 'unknown',
      failure: { source: 'gateway', code: '34', message: expect.stringMatching(shown) },
    })
  })
})

describe('a query that is answered with a code', () => {
  it.each([
    [9, 'Chờ thanh toán', 'code 9: Chờ thanh toán'],
    [9, '', /^code 9: waiting for payment \(published/],
    [99, '', /^code 99: processing \(published/],
    [1, '', /^code 1: failed \(published/],
    [77, '', 'code 77'],
  ])('%i with the message %j: lastError says so', async (code, message, lastError) => {
    const gateway = await startListingGateway(lab)
    gateway.answer('QUERY_PT', JSON.stringify({ svc_ResponseCode: code, svc_ResponseMsg: message }))
    await gateway.sync('T-CODE')
    const shown = typeof lastError === 'string' ? lastError : expect.stringMatching(lastError)
    expect(await lab.transaction('T-CODE')).toMatchObject({
      state: 'pending',
      final: false,
      sync: { lastError: shown, attempts: code === 9 || code === 99 ? 0 : 1 },
    })
    const gatewayAgain = await startListingGateway(lab)
    gatewayAgain.list()
    await gatewayAgain.sync('T-CODE')
    expect(await lab.transaction('T-CODE')).toMatchObject({ sync: { lastError: null } })
  })
})
