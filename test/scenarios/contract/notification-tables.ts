/**
 * What the gateway is answered and order systems see of a notification, for each row of section 6 (the members that
 * gateways of this family publish) and of 5.2: the documented form first, then odd ones. Written before the service was
 * asked.
 */

export type Sent = {
  given: string
  /** Members that differ, before the notification is signed; undefined leaves one out. */
  change: Readonly<Record<string, unknown>>
  /** The same, after it was signed. */
  after?: Readonly<Record<string, unknown>>
  /** The HTTP status of the answer, 200 unless given. */
  status?: number
  /** What order systems see of the object it is about. */
  sees?: Readonly<Record<string, unknown>>
}

export type SentRow = { row: string; documented: Sent; odd: readonly Sent[] }

const ID = '240830080146NDTISR'
const refused = (given: string, change: Sent['change'], status = 400): Sent => ({
  given,
  change,
  status,
})

/** A row about a member that is only a hint: with any other value than a text or a number it reads as missing. */
function hint(name: string, member: string, text: string): SentRow {
  const lacks = { [member]: null, state: 'paid', final: true }
  return {
    row: `6 ${name}`,
    documented: {
      given: 'a text',
      change: { [name]: text },
      sees: { [member]: text, state: 'paid' },
    },
    odd: [
      { given: 'a number', change: { [name]: 4711 }, sees: { [member]: '4711' } },
      { given: 'nothing', change: { [name]: undefined }, sees: lacks },
      { given: 'null', change: { [name]: null }, sees: lacks },
      { given: 'an empty text', change: { [name]: '' }, sees: lacks },
      { given: 'a boolean', change: { [name]: true }, sees: lacks },
      { given: 'a list', change: { [name]: [text] }, sees: lacks },
      { given: 'more than 128 characters', change: { [name]: 'x'.repeat(129) }, sees: lacks },
      { given: 'a control character', change: { [name]: `${text}\n` }, sees: lacks },
    ],
  }
}

/** A row about a member that changes nothing that order systems see. */
function ignored(name: string, value: unknown, ...odd: unknown[]): SentRow {
  const sees = { orderId: 'DH1', state: 'paid', final: true, paidAmount: '20000000' }
  const form = (one: unknown): Sent => ({
    given: JSON.stringify(one) ?? 'nothing',
    change: { [name]: one },
    sees,
  })
  return { row: `6 ${name}`, documented: form(value), odd: odd.map(form) }
}

export const PAYMENT_ROWS: readonly SentRow[] = [
  {
    row: '6 svc_TransactionID',
    documented: {
      given: 'a text',
      change: {},
      sees: { transactionId: ID, state: 'paid', ipnCount: 1 },
    },
    odd: [
      refused('nothing', { svc_TransactionID: undefined }),
      refused('null', { svc_TransactionID: null }),
      refused('a blank text', { svc_TransactionID: ' ' }),
      refused('a boolean', { svc_TransactionID: true }),
      refused('a list', { svc_TransactionID: [ID] }),
      refused('more than 128 characters', { svc_TransactionID: 'x'.repeat(129) }),
      refused('a control character', { svc_TransactionID: `${ID}\u0085` }),
      {
        given: 'a number',
        change: { svc_TransactionID: 240830080146 },
        sees: { transactionId: '240830080146' },
      },
    ],
  },
  {
    row: '6 svc_MerchantCode',
    documented: { given: 'the code of the account', change: {}, sees: { merchantCode: 'UFLIYL' } },
    odd: [
      {
        given: 'nothing',
        change: { svc_MerchantCode: undefined },
        sees: { merchantCode: 'UFLIYL' },
      },
      {
        given: 'an empty text',
        change: { svc_MerchantCode: '' },
        sees: { merchantCode: 'UFLIYL' },
      },
      { given: 'a boolean', change: { svc_MerchantCode: true }, sees: { merchantCode: 'UFLIYL' } },
      refused('another code', { svc_MerchantCode: 'OTHER' }, 404),
      refused('another case', { svc_MerchantCode: 'ufliyl' }, 404),
      refused('a number that is no code', { svc_MerchantCode: 7 }, 404),
    ],
  },
  {
    row: '6 svc_Command',
    documented: { given: 'PAY', change: { svc_Command: 'PAY' }, sees: { state: 'paid' } },
    odd: [
      { given: 'nothing', change: { svc_Command: undefined }, sees: { state: 'paid' } },
      { given: 'another word', change: { svc_Command: 'NOTIFY' }, sees: { state: 'paid' } },
      { given: 'a boolean', change: { svc_Command: true }, sees: { state: 'paid' } },
      { given: 'a list', change: { svc_Command: ['PAY'] }, sees: { state: 'paid' } },
      refused('REFUND without a request id', { svc_Command: 'REFUND' }),
    ],
  },
  hint('svc_OrderID', 'orderId', 'DH1'),
  hint('svc_MerchantTxnID', 'merchantTxnId', 'M1'),
  hint('svc_Currency', 'currency', 'VND'),
  ignored('svc_Amount', 20_000_000, '20000000', 'many', true, [1], null, undefined),
  ignored('svc_ResponseCode', 0, '0', 9, 'zero', ['0'], true, undefined),
  ignored('svc_ResponseMsg', 'Success', '', 7, true, ['a'], undefined),
  ignored('svc_OrderInfo', 'shoes', 7, false, ['shoes'], undefined),
  ignored('svc_Locale', 'vi', 'xx', 7, [], undefined),
  ignored('svc_Version', '1', '2', 1, 1.5, undefined),
  ignored('svc_PayToken', '9f8e7d', '', 7, ['a'], undefined),
  ignored('svc_ExtData', {}, { a: { b: [1] } }, 'text', [1], null),
  {
    row: '5.2 svc_SecureHash',
    documented: { given: 'in lower case', change: {}, sees: { state: 'paid' } },
    odd: [
      {
        given: 'in upper case',
        change: {},
        after: { svc_SecureHash: 'UPPER' },
        sees: { state: 'paid' },
      },
      { ...refused('nothing', {}, 401), after: { svc_SecureHash: undefined } },
      { ...refused('of another message', {}, 401), after: { svc_OrderID: 'DH2' } },
      { ...refused('of fewer members', {}, 401), after: { svc_New: 'x' } },
      { ...refused('that is no hash', {}, 401), after: { svc_SecureHash: 'x' } },
      { ...refused('in a list', {}, 401), after: { svc_SecureHash: ['x'] } },
      { ...refused('over an object', {}, 401), after: { svc_OrderInfo: { a: 1 } } },
      {
        given: 'that leaves out what is not signed',
        change: {},
        after: { svc_TransAmount: 5, note: 'x' },
        sees: { state: 'paid', paidAmount: '20000000' },
      },
    ],
  },
]

const SUCCEEDED = { status: 'succeeded', inferred: false }
const UNCHANGED = { status: 'accepted', fee: null, gatewayReferenceSource: 'answer' }
/** It is stored, and leads to a query; nothing is concluded from it. */
const concludesNothing = (given: string, change: Sent['change']): Sent => ({
  given,
  change,
  sees: UNCHANGED,
})

export const REFUND_ROWS: readonly SentRow[] = [
  {
    row: '6 svc_ResponseCode of a refund',
    documented: { given: '0', change: {}, sees: SUCCEEDED },
    odd: [
      { given: '"0"', change: { svc_ResponseCode: '0' }, sees: SUCCEEDED },
      concludesNothing('9', { svc_ResponseCode: 9 }),
      concludesNothing('99', { svc_ResponseCode: 99 }),
      concludesNothing('nothing', { svc_ResponseCode: undefined }),
      concludesNothing('a list', { svc_ResponseCode: [0] }),
      concludesNothing('00', { svc_ResponseCode: '00' }),
      concludesNothing('a boolean', { svc_ResponseCode: false }),
    ],
  },
  {
    row: '6 svc_RequestID of a refund',
    documented: { given: 'its request id', change: {}, sees: SUCCEEDED },
    odd: [
      concludesNothing('another request id', { svc_RequestID: 'portal-1' }),
      refused('nothing', { svc_RequestID: undefined }),
      refused('a boolean', { svc_RequestID: true }),
      concludesNothing('a number', { svc_RequestID: 7 }),
    ],
  },
  {
    row: '6 svc_PaymentID of a refund',
    documented: { given: 'its payment', change: {}, sees: SUCCEEDED },
    odd: [
      concludesNothing('another payment', { svc_PaymentID: 'P-OTHER' }),
      concludesNothing('nothing', { svc_PaymentID: undefined }),
      concludesNothing('a boolean', { svc_PaymentID: true }),
    ],
  },
  {
    row: '6 svc_Amount of a refund',
    documented: { given: 'its amount', change: {}, sees: SUCCEEDED },
    odd: [
      { given: 'with decimals', change: { svc_Amount: '30.00' }, sees: SUCCEEDED },
      concludesNothing('another amount', { svc_Amount: 31 }),
      concludesNothing('nothing', { svc_Amount: undefined }),
      concludesNothing('a word', { svc_Amount: 'thirty' }),
      concludesNothing('a list', { svc_Amount: [30] }),
    ],
  },
  {
    row: '6 svc_Fee of a refund',
    documented: {
      given: 'a number',
      change: { svc_Fee: 3300 },
      sees: { ...SUCCEEDED, fee: '3300' },
    },
    odd: [
      { given: 'a text', change: { svc_Fee: '0.50' }, sees: { ...SUCCEEDED, fee: '0.50' } },
      { given: 'nothing', change: { svc_Fee: undefined }, sees: { ...SUCCEEDED, fee: null } },
      { given: 'a word', change: { svc_Fee: 'free' }, sees: { ...SUCCEEDED, fee: null } },
      { given: 'a negative number', change: { svc_Fee: -1 }, sees: { ...SUCCEEDED, fee: null } },
      { given: 'a list', change: { svc_Fee: [1] }, sees: { ...SUCCEEDED, fee: null } },
    ],
  },
  {
    row: '6 svc_TransactionID of a refund',
    documented: {
      given: 'a text',
      change: { svc_TransactionID: '5SYNM1OELUND' },
      sees: {
        ...SUCCEEDED,
        gatewayReference: '5SYNM1OELUND',
        gatewayReferenceSource: 'notification',
      },
    },
    odd: [
      {
        given: 'a number',
        change: { svc_TransactionID: 4711 },
        sees: { ...SUCCEEDED, gatewayReference: '4711' },
      },
      {
        given: 'nothing',
        change: { svc_TransactionID: undefined },
        sees: { ...SUCCEEDED, gatewayReferenceSource: 'answer' },
      },
      {
        given: 'a boolean',
        change: { svc_TransactionID: true },
        sees: { ...SUCCEEDED, gatewayReferenceSource: 'answer' },
      },
      {
        given: 'a control character',
        change: { svc_TransactionID: 'a\u0000' },
        sees: { ...SUCCEEDED, gatewayReferenceSource: 'answer' },
      },
    ],
  },
]
