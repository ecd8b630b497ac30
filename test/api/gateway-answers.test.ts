import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { makeEntry, startListingGateway } from '../support/listing-gateway.ts'
import { type Json, writeObject } from '../support/specification-rows.ts'
import { useRefundLab, useRig } from '../support/use-started.ts'
import { matching } from './matching.ts'

/** What order systems see of the gateway's answers: a row for each verdict; test/unit has every member in all forms. */

/** A message whose last kept character is cut in two. */
const CUT = 'x'.repeat(499)
const CUT_MESSAGE = JSON.stringify(`${CUT}😀`)

describe('an answer to QUERY_PT', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })

  async function expectSeen(write: (paymentId: string) => string, sees: object, finds = '') {
    const id = randomUUID()
    const gateway = await startListingGateway(rig)
    gateway.answer('QUERY_PT', write(`P-${id}`))
    await gateway.sync(id)
    expect(await rig.transaction(id)).toMatchObject(matching(sees))
    const found = await rig.database
      .sql`select kind from discrepancies where transaction_id = ${id}`
    expect(found.map(({ kind }) => kind).join()).toBe(finds)
  }

  const ENTRY = {
    ...{ status: '"SUCCESS"', amount: '20000000', paymentMethod: '"QR"', refundedAmount: '0' },
  }
  const ANSWER = { svc_ResponseCode: '0', svc_ResponseMsg: '"ok"' }
  const writeEntry = (paymentId: string, change: Readonly<Record<string, Json>> = {}) =>
    writeObject({ id: JSON.stringify(paymentId), ...ENTRY }, change)

  /** Kept as evidence and not applied: its payment cannot be used, and nothing is final. */
  const UNREADABLE = { state: 'pending', final: false, payments: [], sync: { attempts: 0 } }
  const shows = (sees: object, payment: object = {}) => ({ ...sees, payments: [payment] })
  /** A value that no table lists: nothing is concluded from it. */
  const odd = (payment: object) => shows({ final: false }, { ...payment, unrecognised: true })
  const PAID = { state: 'paid', final: true }

  it.each<[string, Json, object, string?]>([
    ['id', undefined, UNREADABLE, 'payment_unreadable'],
    ['status', '"SUCCESS"', shows(PAID, { unrecognised: false, refundableAmount: '20000000' })],
    ['status', '"FAILED"', shows({ state: 'failed', final: true }, { refundableAmount: '0' })],
    ['status', '"PROCESSING"', shows({ state: 'pending', final: false }, { unrecognised: false })],
    ['status', '"success"', odd({ status: 'success', refundableAmount: '0' })],
    ['amount', '10000.50', shows({ ...PAID, paidAmount: '10000.50' })],
    ['amount', '"20000000"', UNREADABLE, 'payment_unreadable'],
    ['amount', '0.30000000000000004', shows({ paidAmount: '0.3' }), 'amount_rounded'],
    ['paymentMethod', '"WALLET"', odd({ paymentMethod: 'WALLET' })],
    [
      'refundedAmount',
      '5000000',
      shows({ state: 'partially_refunded' }, { refundableAmount: '15000000' }),
    ],
    ['refundedAmount', '20000000.0', shows({ state: 'refunded' })],
  ])('whose payment has as its %s %s', async (name, json, sees, finds) => {
    const write = (id: string) =>
      writeObject(ANSWER, { svc_ResponseData: `[${writeEntry(id, { [name]: json })}]` })
    await expectSeen(write, sees, finds)
  })

  /** Nothing is concluded, and the query is repeated. */
  const open = (status: string, attempts: number, lastError: string | RegExp | null) => ({
    ...{ state: 'pending', final: false, payments: [], sync: { status, attempts, lastError } },
  })
  const retries = (lastError: string | RegExp) => open('retrying', 1, lastError)
  const waits = (lastError: string | RegExp | null) => open('queued', 0, lastError)
  const refusal = (code: string, message: Json) => ({
    ...{ svc_ResponseCode: code, svc_ResponseMsg: message },
  })

  it.each<[Readonly<Record<string, Json>>, object, string?]>([
    [{}, { ...PAID, sync: { status: 'idle', attempts: 0, lastError: null } }],
    [{ svc_ResponseCode: '"0"' }, retries('svc_ResponseCode is not a number')],
    [{ svc_ResponseData: '{}' }, retries('svc_ResponseData is not an array')],
    [{ svc_ResponseData: '[]' }, waits(null)],
    [{ svc_ResponseData: '[null,7]' }, UNREADABLE, 'payment_unreadable,payment_unreadable'],
    [refusal('32', '"No such transaction"'), retries('code 32: No such transaction')],
    [refusal('32', '""'), retries(/^code 32: invalid transaction id \(published meaning/)],
    [refusal('4711', undefined), retries('code 4711')],
    [refusal('9', '"Waiting"'), waits('code 9: Waiting')],
    [refusal('99', 'null'), waits(/^code 99: proc/)],
  ])('with %j', async (change, sees, finds) => {
    const write = (id: string) =>
      writeObject({ ...ANSWER, svc_ResponseData: `[${writeEntry(id)}]` }, change)
    await expectSeen(write, sees, finds)
  })

  it.each([
    ['payments', { svc_ResponseMsg: CUT_MESSAGE }, PAID],
    ['a refusal', refusal('32', CUT_MESSAGE), retries(`code 32: ${CUT}\ufffd`)],
  ])('with %s, and a message that is cut within a character', async (_, change, sees) => {
    const data = (id: string) => ({ svc_ResponseData: `[${writeEntry(id)}]` })
    await expectSeen((id) => writeObject({ ...ANSWER, ...data(id) }, change), sees)
  })
})

describe('an answer to REFUND', () => {
  const lab = useRefundLab()

  const answer = (data: string, code = '0', message = '"Success"') =>
    `{"svc_ResponseCode":${code},"svc_ResponseData":${data},"svc_ResponseMsg":${message}}`
  const accepted = (id: string | null) => ({
    ...{ status: 'accepted', gatewayRefundId: id, gatewayReference: id, failure: null },
    gatewayReferenceSource: id === null ? null : 'answer',
  })
  /** Nobody knows whether the money moved. */
  const UNKNOWN = { status: 'unknown', failure: null, gatewayReference: null }
  /** A refusal proves nothing yet: it is shown, and a later query has to confirm it. */
  const refused = (code: string, message: string | RegExp) => ({
    ...{ status: 'unknown', failure: { source: 'gateway', code, message } },
  })

  it.each<[string, object, number?]>([
    [answer('{"transId":"5SYNM1OELUND"}'), accepted('5SYNM1OELUND')],
    ['{"svc_ResponseCode":0}', accepted(null)],
    [answer('{"transId":"A"}', '"0"'), UNKNOWN],
    [answer('{"transId":"A"}'), UNKNOWN, 500],
    ['', UNKNOWN],
    [answer('{}', '33', '"card 4111111111111111"'), refused('33', /^card 411111\*+1111$/)],
    [answer('{}', '33', '""'), refused('33', /^invalid amount \(published/)],
    [answer('{}', '4711', '""'), refused('4711', '')],
    [answer('{}', '9', '"Waiting"'), refused('9', 'Waiting')],
    [answer('{}', '-1', 'null'), refused('-1', /^expired \(published/)],
  ])('%s leaves its amount reserved', expectReserved)

  it('with a message that is cut within a character is stored', async () => {
    await expectReserved(answer('{}', '33', CUT_MESSAGE), refused('33', `${CUT}\ufffd`))
  })

  async function expectReserved(body: string, sees: object, http = 200) {
    const gateway = await startListingGateway(lab)
    const payment = await lab.open()
    gateway.list(makeEntry(payment.id, { amount: 100 }))
    gateway.answer('REFUND', body, http)
    const refundId = await lab.ask(payment, '30')
    await gateway.sync(payment.transactionId)
    expect(await lab.readRefund(refundId)).toMatchObject(matching(sees))
    expect(await lab.payment(payment.id)).toMatchObject({ refundableAmount: '70' })
  }
})
