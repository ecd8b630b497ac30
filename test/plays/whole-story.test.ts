import { describe, expect, it } from 'vitest'
import { RECEIVER } from '../support/ask.ts'
import { makeEntry, startListingGateway } from '../support/listing-gateway.ts'
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

/** A refund notification of 30 with a valid hash. */
const signRefund = (paymentId: string, refundId: string, more: Params): Params =>
  sign({
    ...{ svc_Amount: '30', svc_Command: 'REFUND', svc_MerchantCode: MERCHANT.merchantCode },
    ...{ svc_PaymentID: paymentId, svc_RequestID: refundId, svc_ResponseCode: '0' },
    ...{ svc_ResponseMsg: 'Success', svc_Version: '1', ...more },
  })

/** What is shown of a refund of 30 whose REFUND is answered like this. */
async function readAnswered(body: string) {
  const gateway = await startListingGateway(lab)
  const payment = await lab.open()
  gateway.list(makeEntry(payment.id, { amount: 100 }))
  gateway.answer('REFUND', body)
  const refundId = await lab.ask(payment, '30')
  await gateway.sync(payment.transactionId)
  return await readStory(refundId)
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
    expect(await lab.lastEvent(refundId)).toMatchObject({ data: notified })
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
      expect(await lab.lastEvent(refundId)).toMatchObject({ data: learnt })
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
      const more = { svc_Fee: '7', svc_TransactionID: 'GENUINE' }
      const genuine = signRefund(payment.id, refundId, more)
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
    const genuine = signRefund(payment.id, refundId, { svc_Fee: '75' })
    const cut = { ...genuine, svc_Fee: '7', svc_Feex: '5' }
    expect((await postIpn(lab.service.url, cut)).status).toBe(200)
    await lab.pass(payment)
    expect(await readStory(refundId)).toMatchObject({ status: 'succeeded', fee: null })
  })

  it('a number as the transId of the answer is kept by its text', async () => {
    const answered =
      '{"svc_ResponseCode":0,"svc_ResponseData":{"transId":9007199254740993},"svc_ResponseMsg":""}'
    expect(await readAnswered(answered)).toMatchObject({
      status: 'accepted',
      ...{ gatewayRefundId: '9007199254740993', gatewayReference: '9007199254740993' },
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
    const refusal = JSON.stringify({ svc_ResponseCode: 34, svc_ResponseMsg: message })
    expect(await readAnswered(refusal)).toMatchObject({
      status: 'unknown',
      failure: { source: 'gateway', code: '34', message: expect.stringMatching(shown) },
    })
  })
})

it.each([
  [9, 'Chờ thanh toán', 'code 9: Chờ thanh toán'],
  [9, '', /^code 9: waiting for payment \(published/],
  [99, '', /^code 99: processing \(published/],
  [1, '', /^code 1: failed \(published/],
  [77, '', 'code 77'],
])(
  'a query that is answered with a code %i with the message %j: lastError says so',
  async (code, message, lastError) => {
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
  },
)
