import { describe, expect, it } from 'vitest'
import { readRefundDetails } from '../../src/gateway/stored-body.ts'
import { createReader } from '../support/receive.ts'
import { MERCHANT } from '../support/service.ts'
import { type Members, signMembers as sign } from '../support/sign-members.ts'
import { alike, playRows, type Row } from '../support/specification-rows.ts'

/** Section 6: the members that gateways of this family publish. Any but the ids is a hint, and optional. */

const ID = '240830080146NDTISR'
const COMMON = {
  ...{ svc_MerchantCode: MERCHANT.merchantCode, svc_OrderID: 'DH1', svc_ResponseCode: 0 },
  ...{ svc_ResponseMsg: 'Success', svc_Version: '1' },
}
const PAID = {
  ...{ ...COMMON, svc_Command: 'PAY', svc_TransactionID: ID, svc_MerchantTxnID: 'M1' },
  ...{ svc_Currency: 'VND', svc_Amount: 20_000_000 },
}
const REFUNDED = {
  ...{ ...COMMON, svc_Command: 'REFUND', svc_PaymentID: '1439211', svc_RequestID: 'R-1' },
  svc_Amount: 30,
}

const receive = createReader()

/** What is read of a notification, signed whatever its members are; undefined leaves one out. */
async function receiveSigned(members: Members) {
  const { receipt, arrival } = await receive(JSON.stringify(sign(members)))
  if (!arrival) return receipt
  const { documented: _, textHash: __, requestOf: ___, verdict: ____, ...stated } = arrival
  return { ...stated, ...readRefundDetails(arrival.body, 'svc') }
}

const malformed = (why: string) => ({ verdict: 'malformed', why })
const refused = (hashIs: string) => ({
  verdict: 'bad_signature',
  why: `svc_SecureHash is ${hashIs}`,
})
const unverifiable = refused('unverifiable')
const unknownMerchant = { verdict: 'unknown_merchant', why: 'unknown svc_MerchantCode' }

/** An id: without one that can be read there is nothing to store. */
function id(name: string, field: string): Row<unknown> {
  const missing = malformed(`${name} is missing or empty`)
  const noText = malformed(`${name} must be a string or a number`)
  const control = malformed(`${name} holds control characters`)
  return {
    row: name,
    documented: [[ID, { [field]: ID }]],
    odd: [
      [240830080146, { [field]: '240830080146' }],
      ['x'.repeat(128), { [field]: 'x'.repeat(128) }],
      ['x'.repeat(129), malformed(`${name} is longer than 128 characters`)],
      ...alike<unknown>(missing, undefined, null, '', '  \t'),
      ...alike<unknown>(noText, true, false, [ID], { id: ID }),
      ...alike<unknown>(control, 'T\n1', 'T\u0000', 'T\u0085', 'T\ud800'),
    ],
  }
}

/** A member that is of use as a text only. */
function hint(
  name: string,
  field: string,
  text: string,
  // Signed over the same text, another type is the same.
  ofList: Row<unknown>['odd'] = [
    [[text], { [field]: text }],
    [true, { [field]: 'true' }],
    [[1, 2], { [field]: '1,2' }],
  ],
): Row<unknown> {
  const missing = { [field]: undefined }
  return {
    row: name,
    documented: [[text, { [field]: text }]],
    odd: [
      [4711, { [field]: '4711' }],
      ['x'.repeat(128), { [field]: 'x'.repeat(128) }],
      ...alike<unknown>(missing, undefined, null, '', []),
      ...ofList,
      ...alike<unknown>(missing, 'x'.repeat(129), `a\n${text}`, `a\u0000${text}`, '\ud800'),
      [{ text }, unverifiable],
    ],
  }
}

function amount(
  name: string,
  field: string,
  ofList: string | undefined,
  ...more: [unknown, unknown, unknown, ...unknown[]]
) {
  const row: Row<unknown> = {
    row: name,
    documented: [
      [3300, { [field]: '3300' }],
      [0, { [field]: '0' }],
    ],
    odd: [
      ['3300', { [field]: '3300' }],
      ['30.00', { [field]: '30.00' }],
      [0.5, { [field]: '0.5' }],
      ...alike<unknown>({ [field]: undefined }, undefined, null, '', true, -1, '1e', '1.23456'),
      ...alike<unknown>({ [field]: undefined }, ...more),
      [[30], { [field]: ofList }],
      [{ 3: 0 }, unverifiable],
    ],
  }
  return row
}

/** A member that nothing is read from. */
function ignored(
  name: string,
  read: object,
  first: unknown,
  ...odd: [unknown, unknown, unknown, ...unknown[]]
) {
  const row: Row<unknown> = { row: name, documented: [[first, read]], odd: alike(read, ...odd) }
  return row
}

const PAYMENT = {
  kind: 'payment',
  merchantCode: MERCHANT.merchantCode,
  transactionId: ID,
  orderId: 'DH1',
  merchantTxnId: 'M1',
  currency: 'VND',
  amount: '20000000',
  code: '0',
}

const MERCHANTS: Row<unknown> = {
  row: 'svc_MerchantCode',
  documented: [[MERCHANT.merchantCode, { merchantCode: MERCHANT.merchantCode }]],
  odd: [
    // Of the only account, as a form sends it.
    ...alike<unknown>({ merchantCode: MERCHANT.merchantCode }, undefined, null, '', true, [
      'UFLIYL',
    ]),
    ...alike<unknown>(unknownMerchant, 'NOBODY', 'ufliyl', ' ', '__proto__', 'constructor', 7),
  ],
}

playRows(
  '6, the notification of a payment',
  [
    id('svc_TransactionID', 'transactionId'),
    MERCHANTS,
    {
      row: 'svc_Command',
      documented: [['PAY', PAYMENT]],
      odd: [
        ...alike<unknown>(PAYMENT, undefined, 'NOTIFY', true, ['PAY'], '', 7),
        ['REFUND', malformed('svc_RequestID is missing or empty')],
        [['REFUND'], malformed('svc_RequestID is missing or empty')],
      ],
    },
    hint('svc_OrderID', 'orderId', 'DH1'),
    hint('svc_MerchantTxnID', 'merchantTxnId', 'M1'),
    hint('svc_Currency', 'currency', 'VND'),
    amount('svc_Amount', 'amount', '30', 'many', 1e22, [1, 2]),
    hint('svc_ResponseCode', 'code', '0'),
    ignored('svc_ResponseMsg', PAYMENT, 'Success', '', 7, true, ['a'], undefined),
    ignored('svc_OrderInfo', PAYMENT, 'shoes', 7, false, ['shoes'], undefined),
    {
      row: 'svc_New',
      documented: [['x', PAYMENT]],
      odd: [...alike<unknown>(PAYMENT, 7, false, []), [{ a: 1 }, unverifiable]],
    },
    ignored('svc_Locale', PAYMENT, 'vi', 'xx', 7, [], undefined),
    ignored('svc_Version', PAYMENT, '1', '2', 1, 1.5, undefined),
    ignored('svc_PayToken', PAYMENT, '9f8e7d', '', 7, ['a'], undefined),
    ignored('svc_TransAmount', PAYMENT, 5_000_000, '5', true, {}, undefined),
    ignored('svc_ExtData', PAYMENT, {}, { a: { b: [1] } }, 'text', [1], null),
  ],
  (value, name) => receiveSigned({ ...PAID, [name]: value }),
)

const NO_CODE = { code: undefined }
const REFUND = {
  kind: 'refund',
  merchantCode: MERCHANT.merchantCode,
  requestId: 'R-1',
  paymentId: '1439211',
  amount: '30',
  code: '0',
  message: 'Success',
  fee: undefined,
  reference: undefined,
}

playRows(
  '6, the notification of a refund',
  [
    id('svc_RequestID', 'requestId'),
    MERCHANTS,
    ignored('svc_OrderID', REFUND, 'DH1', '', 7, ['a'], undefined),
    hint('svc_PaymentID', 'paymentId', '1439211'),
    {
      row: 'svc_ResponseCode',
      documented: [
        ['0', { code: '0' }],
        [33, { code: '33' }],
        ['-1', { code: '-1' }],
      ],
      odd: [
        [[33], { code: '33' }],
        // What no gateway writes: a digit of it may belong to what stands around it in the signed text.
        ...alike<unknown>(NO_CODE, undefined, null, '', '00', '05', '-0', '1.0', 'soon', true),
        [{ code: 0 }, unverifiable],
      ],
    },
    amount('svc_Amount', 'amount', '30', 'thirty', 1e22, [1, 2]),
    amount('svc_Fee', 'fee', undefined, 'free', 1e22, [1, 2]),
    hint(
      'svc_TransactionID',
      'reference',
      '5SYNM1OELUND',
      alike<unknown>({ reference: undefined }, true, ['a'], [1, 2]),
    ),
    {
      row: 'svc_ResponseMsg',
      documented: [['Success', { message: 'Success' }]],
      odd: [
        ...alike<unknown>({ message: undefined }, undefined, null, '', ' ', true, ['Success']),
        // The digit could be one of the code.
        [7, { message: '7', code: undefined }],
        ['a\u0000\nb', { message: 'a b' }],
        ['card 4111111111111111', { message: 'card 411111******1111' }],
        ['x'.repeat(600), { message: 'x'.repeat(500) }],
      ],
    },
    {
      // Its value stands between the request id and the code in the signed text, and could be a part of either.
      row: 'svc_RequestIDx',
      documented: [['', { code: '0' }]],
      odd: [[null, { code: '0' }], ...alike<unknown>(NO_CODE, 'x', 7, false, ['x'])],
    },
    ignored('svc_Version', REFUND, '1', '2', 1, 1.5, undefined),
  ],
  (value, name) => receiveSigned({ ...REFUNDED, [name]: value }),
)

describe('a number', () => {
  it.each(['240830080146', '9007199254740993', '1.50'])(
    '%s is read as it was written',
    async (written) => {
      const text = JSON.stringify(sign({ ...PAID, svc_TransactionID: written }))
      const body = text.replace(`:"${written}"`, `:${written}`)
      expect(body).not.toBe(text)
      const { arrival } = await receive(body)
      expect(arrival).toMatchObject({ transactionId: written })
    },
  )
})
