import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { makeEntry, startListingGateway } from '../support/listing-gateway.ts'
import { type Json, writeObject } from '../support/specification-rows.ts'
import { useRefundLab, useRig } from '../support/use-started.ts'
import { matching } from './matching.ts'

/** What order systems see of the gateway's answers: a row for each member and verdict; test/unit has all forms. */

describe('an answer to QUERY_PT', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })

  type Seen = { sees: object; finds?: readonly string[] }

  async function expectSeen(write: (paymentId: string) => string, { sees, finds = [] }: Seen) {
    const id = randomUUID()
    const gateway = await startListingGateway(rig)
    gateway.answer('QUERY_PT', write(`P-${id}`))
    await gateway.sync(id)
    expect(await rig.transaction(id)).toMatchObject(matching(sees))
    const found = await rig.database.sql`
      select kind from discrepancies where transaction_id = ${id} order by id`
    expect(found.map(({ kind }) => kind)).toEqual(finds)
  }

  const writeEntry = (paymentId: string, change: Readonly<Record<string, Json>> = {}) =>
    writeObject(
      {
        id: JSON.stringify(paymentId),
        status: '"SUCCESS"',
        amount: '20000000',
        paymentMethod: '"QR"',
        refundedAmount: '0',
      },
      change,
    )
  const writeAnswer = (entry: string, change: Readonly<Record<string, Json>> = {}) =>
    writeObject(
      { svc_ResponseCode: '0', svc_ResponseData: `[${entry}]`, svc_ResponseMsg: '"ok"' },
      change,
    )

  /** The entry is kept as evidence and not applied: its payment cannot be used, and nothing is final. */
  const UNREADABLE: Seen = {
    sees: { state: 'pending', final: false, payments: [], sync: { attempts: 0 } },
    finds: ['payment_unreadable'],
  }
  const shows = (sees: object, payment: object = {}): Seen => ({
    sees: { ...sees, payments: [payment] },
  })
  /** A value that no table lists: nothing is concluded from it. */
  const unrecognised = (sees: object, payment: object) =>
    shows({ ...sees, final: false }, { ...payment, unrecognised: true })

  it.each<[string, Json, Seen]>([
    ['id', undefined, UNREADABLE],
    ['id', '["1439211"]', UNREADABLE],
    [
      'status',
      '"SUCCESS"',
      shows(
        { state: 'paid', final: true, paidAmount: '20000000' },
        { unrecognised: false, refundableAmount: '20000000' },
      ),
    ],
    [
      'status',
      '"FAILED"',
      shows({ state: 'failed', final: true, paidAmount: '0' }, { refundableAmount: '0' }),
    ],
    ['status', '"PROCESSING"', shows({ state: 'pending', final: false }, { unrecognised: false })],
    ['status', '"success"', unrecognised({}, { status: 'success', refundableAmount: '0' })],
    ['status', undefined, unrecognised({}, { status: '', refundableAmount: '0' })],
    ['amount', '10000.50', shows({ paidAmount: '10000.50' })],
    ['amount', '0', shows({ state: 'paid', paidAmount: '0' })],
    ['amount', '"20000000"', UNREADABLE],
    [
      'amount',
      '0.30000000000000004',
      { ...shows({ paidAmount: '0.3' }), finds: ['amount_rounded'] },
    ],
    ['paymentMethod', '"ATM"', shows({ final: true }, { paymentMethod: 'ATM' })],
    ['paymentMethod', '"WALLET"', unrecognised({ state: 'paid' }, { paymentMethod: 'WALLET' })],
    ['paymentMethod', 'null', unrecognised({ state: 'paid' }, { paymentMethod: '' })],
    [
      'refundedAmount',
      '5000000',
      shows(
        { state: 'partially_refunded', refundedAmount: '5000000' },
        { refundableAmount: '15000000' },
      ),
    ],
    ['refundedAmount', '20000000.0', shows({ state: 'refunded' })],
    ['refundedAmount', 'null', UNREADABLE],
  ])('whose payment has as its %s %s', async (name, json, seen) => {
    await expectSeen((id) => writeAnswer(writeEntry(id, { [name]: json })), seen)
  })

  const PAID = {
    state: 'paid',
    final: true,
    sync: { status: 'idle', attempts: 0, lastError: null },
  }
  const NOTHING = { state: 'pending', final: false, payments: [] }
  /** Nothing is concluded, and the query is repeated. */
  const repeats = (lastError: string | RegExp): Seen => ({
    sees: { ...NOTHING, sync: { status: 'retrying', attempts: 1, lastError } },
  })
  const waits = (lastError: string | RegExp | null): Seen => ({
    sees: { ...NOTHING, sync: { status: 'queued', attempts: 0, lastError } },
  })
  const refusal = (code: string, message: Json) => ({
    svc_ResponseCode: code,
    svc_ResponseMsg: message,
  })

  it.each<[Readonly<Record<string, Json>>, Seen]>([
    [{ svc_ResponseCode: '0.0' }, { sees: PAID }],
    [{ svc_ResponseMsg: '{"vi":"ok"}' }, { sees: PAID }],
    [{ svc_ResponseMsg: undefined }, { sees: PAID }],
    [{ svc_ResponseCode: '"0"' }, repeats('svc_ResponseCode is not a number')],
    [{ svc_ResponseCode: '0.5' }, repeats('svc_ResponseCode is not a whole number')],
    [{ svc_ResponseData: '{}' }, repeats('svc_ResponseData is not an array')],
    [{ svc_ResponseData: '[]' }, waits(null)],
    [
      { svc_ResponseData: '[null,7]' },
      {
        sees: { ...NOTHING, sync: { attempts: 0 } },
        finds: ['payment_unreadable', 'payment_unreadable'],
      },
    ],
    [refusal('32', '"No such transaction"'), repeats('code 32: No such transaction')],
    [refusal('32', '""'), repeats(/^code 32: invalid transaction id \(published meaning/)],
    [refusal('4711', undefined), repeats('code 4711')],
    [refusal('-1', undefined), repeats(/^code -1: expired/)],
    [refusal('9', '"Waiting"'), waits('code 9: Waiting')],
    [refusal('99', 'null'), waits(/^code 99: proc/)],
  ])('with %j', async (change, seen) => {
    await expectSeen((id) => writeAnswer(writeEntry(id), change), seen)
  })
})

describe('an answer to REFUND', () => {
  const lab = useRefundLab()

  const answer = (data: string, code = '0', message = '"Success"') =>
    `{"svc_ResponseCode":${code},"svc_ResponseData":${data},"svc_ResponseMsg":${message}}`
  const accepted = (id: string | null) => ({
    status: 'accepted',
    gatewayRefundId: id,
    gatewayReference: id,
    gatewayReferenceSource: id === null ? null : 'answer',
    failure: null,
  })
  /** Nobody knows whether the money moved. */
  const UNKNOWN = { status: 'unknown', failure: null, gatewayReference: null }
  /** A refusal proves nothing yet: it is shown, and a later query has to confirm it. */
  const refused = (code: string, message: string | RegExp) => ({
    status: 'unknown',
    failure: { source: 'gateway', code, message },
  })

  it.each<[string, object, number?]>([
    [answer('{"transId":"5SYNM1OELUND"}'), accepted('5SYNM1OELUND')],
    [answer('{"transId":9007199254740993}'), accepted('9007199254740993')],
    [answer('{"transId":["A"]}'), accepted(null)],
    [answer('null'), accepted(null)],
    ['{"svc_ResponseCode":0}', accepted(null)],
    [answer('{"transId":"A"}', '"0"'), UNKNOWN],
    [answer('{"transId":"A"}', 'null'), UNKNOWN],
    [answer('{"transId":"A"}'), UNKNOWN, 500],
    [answer('{"transId":"A"}'), UNKNOWN, 302],
    ['<html>ok</html>', UNKNOWN],
    ['', UNKNOWN],
    [answer('{}', '33', '"card 4111111111111111"'), refused('33', /^card 411111\*+1111$/)],
    [answer('{}', '33', '""'), refused('33', /^invalid amount \(published/)],
    [answer('{}', '19', 'null'), refused('19', /^duplicate merchant trans/)],
    [answer('{}', '4711', '"Không đủ số dư"'), refused('4711', 'Không đủ số dư')],
    [answer('{}', '4711', '""'), refused('4711', '')],
    [answer('{}', '9', '"Waiting"'), refused('9', 'Waiting')],
    [answer('{}', '99', '""'), refused('99', /^processing \(published/)],
    [answer('{}', '-1', '""'), refused('-1', /^expired \(published/)],
  ])('%s leaves its amount reserved', async (body, sees, http = 200) => {
    const gateway = await startListingGateway(lab)
    const payment = await lab.open()
    gateway.list(makeEntry(payment.id, { amount: 100 }))
    gateway.answer('REFUND', body, http)
    const refundId = await lab.ask(payment, '30')
    await gateway.sync(payment.transactionId)
    expect(await lab.readRefund(refundId)).toMatchObject(matching(sees))
    expect(await lab.payment(payment.id)).toMatchObject({ refundableAmount: '70' })
  })
})
