import { describe, expect, it } from 'vitest'
import { readPaymentsAnswer } from '../../src/gateway/answers.ts'
import { FAILURE_CODES, METHODS, STATUSES } from '../support/specification.ts'
import {
  alike,
  type Form,
  type Json,
  playRows,
  type Row,
  writeObject,
} from '../support/specification-rows.ts'

const ENTRY = {
  id: '"1439211"',
  status: '"SUCCESS"',
  amount: '20000000',
  paymentMethod: '"QR"',
  refundedAmount: '0',
}
const PAYMENT = {
  id: '1439211',
  status: 'SUCCESS',
  amount: '20000000',
  paymentMethod: 'QR',
  refundedAmount: '0',
}
const ANSWER = {
  svc_ResponseCode: '0',
  svc_ResponseData: `[${writeObject(ENTRY)}]`,
  svc_ResponseMsg: '"Success"',
}

const read = (body: string) => readPaymentsAnswer(Buffer.from(body), 'svc').answer
const readChanged = (json: Json, member: string) => read(writeObject(ANSWER, { [member]: json }))

/** What is read of an answer that lists one entry. */
function readEntry(json: Json, member: string) {
  const answer = readChanged(`[${writeObject(ENTRY, { [member]: json })}]`, 'svc_ResponseData')
  if (answer.kind !== 'answered') return answer
  const { payments, unreadable, rounded } = answer.value
  return { payments, reasons: unreadable.map(({ reason }) => reason), rounded }
}

/** The entry is a payment that differs in these members. */
const reads = (change: object, rounded: object[] = []) => ({
  payments: [{ ...PAYMENT, ...change }],
  reasons: [],
  rounded,
})
/** The entry is kept as evidence, and is no payment. */
const unreadable = (reason: string) => ({ payments: [], reasons: [reason], rounded: [] })

const NO_ID = unreadable('has no id')
const long = (length: number) => JSON.stringify('x'.repeat(length))

/** A member that is a word: no other value than a documented one may be read as that. */
const word = (name: string, documented: readonly string[], odd: readonly string[]): Row<Json> => {
  const as = (text: string): Form<Json> => [JSON.stringify(text), reads({ [name]: text })]
  const [first = '', ...rest] = documented
  return {
    row: name,
    documented: [as(first), ...rest.map(as)],
    odd: [
      ['null', reads({ [name]: '' })],
      [undefined, reads({ [name]: '' })],
      ['""', reads({ [name]: '' })],
      ...odd.map(as),
      ['1', reads({ [name]: '1' })],
      ['true', reads({ [name]: 'true' })],
      ['{}', reads({ [name]: '{}' })],
      [`["${first}"]`, reads({ [name]: `["${first}"]` })],
      [`"${first}\\u0000"`, reads({ [name]: `"${first}\ufffd"` })],
      ['"\\ud800"', reads({ [name]: '"\ufffd"' })],
      [long(129), reads({ [name]: `"${'x'.repeat(127)}` })],
    ],
  }
}

/** A member that is an amount. */
const amount = (name: string, more: readonly Form<Json>[]): Row<Json> => {
  const none = unreadable(`has a value as its ${name} that is no amount`)
  const rounded = (written: string, to: string): Form<Json> => [
    written,
    reads({ [name]: to }, [{ id: PAYMENT.id, field: name, written, amount: to }]),
  ]
  return {
    row: name,
    documented: [['5000000', reads({ [name]: '5000000' })]],
    odd: [
      ['10000.50', reads({ [name]: '10000.50' })],
      ['2.0E7', reads({ [name]: '20000000' })],
      ['999999999999999999.9999', reads({ [name]: '999999999999999999.9999' })],
      ['0', reads({ [name]: '0' })],
      rounded('0.30000000000000004', '0.3'),
      rounded('9.999999999999998', '10'),
      rounded('-1.1102230246251565e-16', '0'),
      rounded('4.9406564584124654e-32', '0'),
      rounded('0.0000009', '0'),
      ...more,
      ...alike<Json>(none, '"20000000"', '-1', '1e18', '1.23456', '1e999999999'),
      ...alike<Json>(none, 'null', 'true', '[5]', '{}'),
      [undefined, unreadable(`has no ${name}`)],
    ],
  }
}

playRows(
  '2.4, a payment',
  [
    {
      row: 'id',
      documented: [['"1439211"', reads({})]],
      odd: [
        ['"thẻ-1"', reads({ id: 'thẻ-1' })],
        [long(128), reads({ id: 'x'.repeat(128) })],
        [undefined, NO_ID],
        ...alike<Json>(NO_ID, 'null', '""', '["1439211"]', '1439211', 'true', '{}', '"\\ud800"'),
        [long(129), NO_ID],
        ['"1439211\\u0000"', NO_ID],
      ],
    },
    word('status', STATUSES, ['success', 'SUCCESS ', 'Failed', 'PENDING', 'REVERSED']),
    word('paymentMethod', METHODS, ['qr', 'WALLET', 'ATM ']),
    amount('amount', [['20000000.0', reads({ amount: '20000000.0' })]]),
    amount('refundedAmount', []),
  ],
  readEntry,
)

const answered = (more: object = {}) => ({ kind: 'answered', ...more })
const invalid = (reason: string) => ({ kind: 'unknown', reason })
const NO_LIST = invalid('svc_ResponseData is not an array')
const NO_NUMBER = invalid('svc_ResponseCode is not a number')
const NO_WHOLE_NUMBER = invalid('svc_ResponseCode is not a whole number')

playRows(
  '4.3.1, the answer to QUERY_PT',
  [
    {
      row: 'svc_ResponseCode',
      documented: [
        ['0', answered()],
        ...FAILURE_CODES.map(
          (code): Form<Json> => [
            String(code),
            { kind: 'rejected', code: String(code), message: 'Success' },
          ],
        ),
      ],
      odd: [
        ['0.0', answered()],
        ['-0', answered()],
        ['99.0', { kind: 'rejected', code: '99' }],
        ['4711', { kind: 'rejected', code: '4711' }],
        [undefined, NO_NUMBER],
        ...alike<Json>(NO_NUMBER, '"0"', 'null', 'false', '[0]', '{}'),
        ...alike<Json>(NO_WHOLE_NUMBER, '0.5', '-1.5', '1e-400'),
      ],
    },
    {
      row: 'svc_ResponseData',
      documented: [[ANSWER.svc_ResponseData, answered({ value: { payments: [PAYMENT] } })]],
      odd: [
        ['[]', answered({ value: { payments: [], unreadable: [] } })],
        [
          '[null,7,"x",[]]',
          answered({ value: { payments: [], unreadable: Array(4).fill({ id: undefined }) } }),
        ],
        [undefined, NO_LIST],
        ...alike<Json>(NO_LIST, 'null', '{}', '"[]"', '5', 'true'),
      ],
    },
    {
      row: 'svc_ResponseMsg',
      documented: [['"Success"', answered({ message: 'Success' })]],
      odd: [
        [undefined, answered({ message: '' })],
        ['null', answered({ message: '' })],
        ['{"vi":"ok"}', answered({ message: '' })],
        ...alike<Json>(answered({ message: '' }), '[]', '5', 'true'),
        ['"a\\u0000\\n\\ud800b"', answered({ message: 'a \ufffdb' })],
        ['"card 4111111111111111"', answered({ message: 'card 411111******1111' })],
        [long(600), answered({ message: 'x'.repeat(500) })],
      ],
    },
  ],
  readChanged,
)

describe('an answer to QUERY_PT', () => {
  it('has every documented status with every documented method', () => {
    const entries = STATUSES.flatMap((status) =>
      METHODS.map((paymentMethod) => {
        return { ...PAYMENT, id: status + paymentMethod, status, paymentMethod }
      }),
    )
    const written = entries.map((one) =>
      JSON.stringify({ ...one, amount: 20_000_000, refundedAmount: 0 }),
    )
    const answer = readChanged(`[${written.join(',')}]`, 'svc_ResponseData')
    expect(answer).toMatchObject({ value: { payments: entries, unreadable: [] } })
  })

  it('is kept as it was written, with members that no table lists', () => {
    const entry = writeObject(ENTRY, { extra: '{"bank":[1.50]}' })
    const more = { svc_New: '{}', note: 'null' }
    const body = writeObject(ANSWER, { ...more, svc_ResponseData: `[${entry}]` })
    expect(read(body)).toEqual({
      kind: 'answered',
      message: 'Success',
      value: {
        payments: [PAYMENT],
        unreadable: [],
        rounded: [],
        json: `[${entry}]`,
        omittedBytes: 0,
      },
    })
  })

  it('has a status that is nested thousands of levels deep, of which 64 are read', () => {
    const readDeep = () => readEntry(`${'['.repeat(2_000)}1${']'.repeat(2_000)}`, 'status')
    expect(readDeep).not.toThrow()
    expect(readDeep()).toEqual(reads({ status: `${'['.repeat(64)}"***"${']'.repeat(59)}` }))
  })

  it('lists no payment twice: neither entry of an id can be read', () => {
    const twice = writeObject(ENTRY, { amount: '11' })
    const data = `[${twice},${writeObject(ENTRY, { id: '"P-2"' })},${twice}]`
    const answer = readChanged(data, 'svc_ResponseData')
    expect(answer).toMatchObject({
      value: {
        payments: [{ id: 'P-2' }],
        unreadable: [1, 2].map(() => ({
          id: PAYMENT.id,
          reason: 'has an id that is listed twice',
        })),
      },
    })
  })

  it('is a refusal with its message also without any data', () => {
    const body = '{"svc_ResponseCode":32,"svc_ResponseMsg":"No such transaction"}'
    expect(read(body)).toEqual({ kind: 'rejected', code: '32', message: 'No such transaction' })
    expect(read('{"svc_ResponseCode":1}')).toEqual({ kind: 'rejected', code: '1', message: '' })
  })
})
