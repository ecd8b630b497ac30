/**
 * What order systems see of an answer to QUERY_PT, for each row of the specification's sections 2.4, 4.3.1 and 7: the
 * documented form first, then odd ones. The expectations follow from the specification and the rules of this service;
 * they were written before the service was asked.
 */

export type Form = {
  /** What the gateway sends. */
  given: string
  /** Members of the entry or the answer that differ from the documented ones, as JSON; null leaves one out. */
  change: Readonly<Record<string, string | null>>
  /** What order systems see. */
  sees: Readonly<Record<string, unknown>>
  /** Kinds of the discrepancies. */
  finds?: readonly string[]
}

export type Row = { row: string; documented: Form; odd: readonly Form[] }

/** The entry is kept as evidence and not applied: its payment cannot be used, and nothing is final. */
const UNREADABLE = {
  sees: { state: 'pending', final: false, payments: [], sync: { attempts: 0 } },
  finds: ['payment_unreadable'],
}

const unreadable = (given: string, change: Form['change']): Form => ({
  given,
  change,
  ...UNREADABLE,
})

const payment = (shown: object) => ({ payments: [shown] })

/** A transaction whose payment has a value that no table lists: nothing is concluded from it. */
const unrecognised = (given: string, change: Form['change'], shown: object): Form => ({
  given,
  change,
  sees: { final: false, ...payment({ ...shown, unrecognised: true, refundableAmount: '0' }) },
})

/** 2.4: an entry is `{id, status, amount, paymentMethod, refundedAmount}`. */
export const ENTRY_ROWS: readonly Row[] = [
  {
    row: '2.4 id',
    documented: {
      given: 'a text',
      change: { id: '"1439211"' },
      sees: { state: 'paid', final: true, ...payment({ id: '1439211' }) },
    },
    odd: [
      {
        given: 'a text in another script',
        change: { id: '"thẻ-1"' },
        sees: { state: 'paid', ...payment({ id: 'thẻ-1' }) },
      },
      unreadable('nothing', { id: null }),
      unreadable('null', { id: 'null' }),
      unreadable('an empty text', { id: '""' }),
      unreadable('a list', { id: '["1439211"]' }),
      unreadable('more than 128 characters', { id: JSON.stringify('x'.repeat(129)) }),
      unreadable('a control character', { id: '"1439211\\u0000"' }),
    ],
  },
  {
    row: '2.4 status SUCCESS',
    documented: {
      given: 'SUCCESS',
      change: { status: '"SUCCESS"' },
      sees: {
        state: 'paid',
        final: true,
        paidAmount: '20000000',
        ...payment({ unrecognised: false }),
      },
    },
    odd: [
      unrecognised('another case', { status: '"success"' }, { status: 'success' }),
      unrecognised('a space after it', { status: '"SUCCESS "' }, { status: 'SUCCESS ' }),
      unrecognised('a word of no table', { status: '"REVERSED"' }, { status: 'REVERSED' }),
      unrecognised('an empty text', { status: '""' }, { status: '' }),
      unrecognised('null', { status: 'null' }, { status: '' }),
      unrecognised('nothing', { status: null }, { status: '' }),
      unrecognised('a number', { status: '1' }, { status: '1' }),
    ],
  },
  {
    row: '2.4 status FAILED',
    documented: {
      given: 'FAILED',
      change: { status: '"FAILED"' },
      sees: {
        state: 'failed',
        final: true,
        paidAmount: '0',
        ...payment({ refundableAmount: '0' }),
      },
    },
    odd: [
      unrecognised('another case', { status: '"Failed"' }, { status: 'Failed' }),
      unrecognised('another word for it', { status: '"FAILURE"' }, { status: 'FAILURE' }),
      unrecognised('a list', { status: '["FAILED"]' }, { status: '["FAILED"]' }),
    ],
  },
  {
    row: '2.4 status PROCESSING',
    documented: {
      given: 'PROCESSING',
      change: { status: '"PROCESSING"' },
      sees: { state: 'pending', final: false, ...payment({ unrecognised: false }) },
    },
    odd: [
      unrecognised('another word for it', { status: '"PENDING"' }, { status: 'PENDING' }),
      unrecognised('another case', { status: '"processing"' }, { status: 'processing' }),
      unrecognised('a boolean', { status: 'true' }, { status: 'true' }),
    ],
  },
  {
    row: '2.4 amount',
    documented: {
      given: 'a whole number',
      change: { amount: '20000000' },
      sees: {
        paidAmount: '20000000',
        ...payment({ amount: '20000000', refundableAmount: '20000000' }),
      },
    },
    odd: [
      { given: 'decimals', change: { amount: '10000.50' }, sees: { paidAmount: '10000.50' } },
      { given: 'an exponent', change: { amount: '2.0E7' }, sees: { paidAmount: '20000000' } },
      {
        given: 'the noise of binary numbers',
        change: { amount: '0.30000000000000004' },
        sees: { paidAmount: '0.3' },
        finds: ['amount_rounded'],
      },
      {
        given: 'as many digits as are kept',
        change: { amount: '999999999999999999.9999' },
        sees: { paidAmount: '999999999999999999.9999' },
      },
      { given: 'zero', change: { amount: '0' }, sees: { state: 'paid', paidAmount: '0' } },
      unreadable('a text', { amount: '"20000000"' }),
      unreadable('a negative number', { amount: '-1' }),
      unreadable('too many digits', { amount: '1e18' }),
      unreadable('too many decimals', { amount: '1.23456' }),
      unreadable('null', { amount: 'null' }),
      unreadable('nothing', { amount: null }),
    ],
  },
  {
    row: '2.4 paymentMethod',
    documented: {
      given: 'QR',
      change: { paymentMethod: '"QR"' },
      sees: { final: true, ...payment({ paymentMethod: 'QR', unrecognised: false }) },
    },
    odd: [
      {
        given: 'ATM',
        change: { paymentMethod: '"ATM"' },
        sees: { final: true, ...payment({ paymentMethod: 'ATM', unrecognised: false }) },
      },
      {
        given: 'CC',
        change: { paymentMethod: '"CC"' },
        sees: { final: true, ...payment({ paymentMethod: 'CC', unrecognised: false }) },
      },
      {
        given: 'a method of no table',
        change: { paymentMethod: '"WALLET"' },
        sees: {
          state: 'paid',
          final: false,
          ...payment({ paymentMethod: 'WALLET', unrecognised: true }),
        },
      },
      {
        given: 'another case',
        change: { paymentMethod: '"qr"' },
        sees: {
          state: 'paid',
          final: false,
          ...payment({ paymentMethod: 'qr', unrecognised: true }),
        },
      },
      {
        given: 'null',
        change: { paymentMethod: 'null' },
        sees: {
          state: 'paid',
          final: false,
          ...payment({ paymentMethod: '', unrecognised: true }),
        },
      },
      {
        given: 'nothing',
        change: { paymentMethod: null },
        sees: {
          state: 'paid',
          final: false,
          ...payment({ paymentMethod: '', unrecognised: true }),
        },
      },
    ],
  },
  {
    row: '2.4 refundedAmount',
    documented: {
      given: 'a part of the amount',
      change: { refundedAmount: '5000000' },
      sees: {
        state: 'partially_refunded',
        refundedAmount: '5000000',
        ...payment({ refundableAmount: '15000000' }),
      },
    },
    odd: [
      { given: 'all of it', change: { refundedAmount: '20000000.0' }, sees: { state: 'refunded' } },
      {
        given: 'the noise of binary numbers',
        change: { refundedAmount: '-1.1102230246251565e-16' },
        sees: { state: 'paid', refundedAmount: '0' },
        finds: ['amount_rounded'],
      },
      unreadable('a text', { refundedAmount: '"0"' }),
      unreadable('a negative number', { refundedAmount: '-5' }),
      unreadable('null', { refundedAmount: 'null' }),
      unreadable('nothing', { refundedAmount: null }),
    ],
  },
]

const FAILED_QUERY = { state: 'pending', final: false, payments: [] }

/** No answer in the sense of the specification: nothing is concluded, and the query is repeated. */
const noAnswer = (given: string, change: Form['change'], lastError: RegExp): Form => ({
  given,
  change,
  sees: { ...FAILED_QUERY, sync: { status: 'retrying', attempts: 1, lastError } },
})

const PAID = { state: 'paid', final: true, sync: { status: 'idle', attempts: 0, lastError: null } }

/** 4.3.1 and 7: an answer is `{svc_ResponseCode, svc_ResponseData, svc_ResponseMsg}`. */
export const ANSWER_ROWS: readonly Row[] = [
  {
    row: '4.3.1 svc_ResponseCode',
    documented: { given: '0', change: { svc_ResponseCode: '0' }, sees: PAID },
    odd: [
      { given: '0.0', change: { svc_ResponseCode: '0.0' }, sees: PAID },
      noAnswer('a text', { svc_ResponseCode: '"0"' }, /^svc_ResponseCode is not a number$/),
      noAnswer('null', { svc_ResponseCode: 'null' }, /^svc_ResponseCode is not a number$/),
      noAnswer('nothing', { svc_ResponseCode: null }, /^svc_ResponseCode is not a number$/),
      noAnswer('a boolean', { svc_ResponseCode: 'false' }, /^svc_ResponseCode is not a number$/),
      noAnswer('a part of a number', { svc_ResponseCode: '0.5' }, /is not a whole number$/),
    ],
  },
  {
    row: '4.3.1 svc_ResponseData',
    documented: { given: 'a list of one entry', change: {}, sees: PAID },
    odd: [
      {
        given: 'an empty list',
        change: { svc_ResponseData: '[]' },
        sees: { ...FAILED_QUERY, sync: { status: 'queued', attempts: 0, lastError: null } },
      },
      noAnswer('null', { svc_ResponseData: 'null' }, /^svc_ResponseData is not an array$/),
      noAnswer('nothing', { svc_ResponseData: null }, /^svc_ResponseData is not an array$/),
      noAnswer('an object', { svc_ResponseData: '{}' }, /^svc_ResponseData is not an array$/),
      noAnswer(
        'a text of JSON',
        { svc_ResponseData: '"[]"' },
        /^svc_ResponseData is not an array$/,
      ),
      {
        given: 'a list with what is no entry',
        change: { svc_ResponseData: '[null,7,"x"]' },
        sees: { ...FAILED_QUERY, sync: { attempts: 0 } },
        finds: ['payment_unreadable', 'payment_unreadable', 'payment_unreadable'],
      },
    ],
  },
  {
    row: '4.3.1 svc_ResponseMsg',
    documented: { given: 'a text', change: { svc_ResponseMsg: '"Success"' }, sees: PAID },
    odd: [
      { given: 'nothing', change: { svc_ResponseMsg: null }, sees: PAID },
      { given: 'null', change: { svc_ResponseMsg: 'null' }, sees: PAID },
      { given: 'an object', change: { svc_ResponseMsg: '{"vi":"ok"}' }, sees: PAID },
      { given: 'control characters', change: { svc_ResponseMsg: '"a\\u0000b"' }, sees: PAID },
    ],
  },
  {
    row: '7 a failure with its message',
    documented: {
      given: 'a code and a message',
      change: { svc_ResponseCode: '32', svc_ResponseMsg: '"No such transaction"' },
      sees: {
        ...FAILED_QUERY,
        sync: { status: 'retrying', attempts: 1, lastError: 'code 32: No such transaction' },
      },
    },
    odd: [
      noAnswer(
        'a published code without a message',
        { svc_ResponseCode: '32', svc_ResponseMsg: '""' },
        /^code 32: invalid transaction id \(published meaning/,
      ),
      noAnswer(
        'a code of no table',
        { svc_ResponseCode: '4711', svc_ResponseMsg: null },
        /^code 4711$/,
      ),
      noAnswer(
        'a negative code',
        { svc_ResponseCode: '-1', svc_ResponseMsg: null },
        /^code -1: expired/,
      ),
      {
        given: 'waiting for payment',
        change: { svc_ResponseCode: '9', svc_ResponseMsg: '"Waiting"' },
        sees: {
          ...FAILED_QUERY,
          sync: { status: 'queued', attempts: 0, lastError: 'code 9: Waiting' },
        },
      },
      {
        given: 'processing',
        change: { svc_ResponseCode: '99', svc_ResponseMsg: 'null' },
        sees: {
          ...FAILED_QUERY,
          sync: { status: 'queued', attempts: 0, lastError: /^code 99: proc/ },
        },
      },
    ],
  },
]
