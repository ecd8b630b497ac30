import { describe, expect, it } from 'vitest'
import { readPaymentsAnswer, readRefundAnswer } from '../../src/gateway/answers.ts'
import { FAILURE_CODES } from '../support/specification.ts'
import {
  alike,
  type Form,
  type Json,
  playRows,
  writeObject,
} from '../support/specification-rows.ts'

const ANSWER = {
  svc_ResponseCode: '0',
  svc_ResponseData: '{"transId":"5SYNM1OELUND"}',
  svc_ResponseMsg: '"Success"',
}

const read = (body: string) => readRefundAnswer(Buffer.from(body), 'svc').answer
const readChanged = (json: Json, member: string) => read(writeObject(ANSWER, { [member]: json }))

/** Code 0 accepts the refund, with or without an id: what is missing must not make its outcome unknown. */
const accepted = (id: string | undefined) => ({ kind: 'answered', value: id })
const NO_ID = accepted(undefined)
const SILENT = { ...accepted('5SYNM1OELUND'), message: '' }
const invalid = (reason: string) => ({ kind: 'unknown', reason })

playRows(
  '2.5, the result of a refund',
  [
    {
      row: 'transId',
      documented: [['"5SYNM1OELUND"', accepted('5SYNM1OELUND')]],
      odd: [
        ['4711', accepted('4711')],
        ['9007199254740993', accepted('9007199254740993')],
        [undefined, accepted(undefined)],
        ...alike<Json>(NO_ID, 'null', '""', 'true', '["A"]', '{}', '"A\\u0000"', '"\\ud800"'),
        [JSON.stringify('x'.repeat(129)), accepted(undefined)],
      ],
    },
  ],
  (json, member) => readChanged(writeObject({ [member]: json }), 'svc_ResponseData'),
)

const NO_NUMBER = invalid('svc_ResponseCode is not a number')

playRows(
  '4.3.2, the answer to REFUND',
  [
    {
      row: 'svc_ResponseCode',
      documented: [
        ['0', accepted('5SYNM1OELUND')],
        ...FAILURE_CODES.map(
          (code): Form<Json> => [
            String(code),
            { kind: 'rejected', code: String(code), message: 'Success' },
          ],
        ),
      ],
      odd: [
        ['0.0', accepted('5SYNM1OELUND')],
        ['-0', accepted('5SYNM1OELUND')],
        ['4711', { kind: 'rejected', code: '4711' }],
        [undefined, NO_NUMBER],
        ...alike<Json>(NO_NUMBER, '"0"', 'null', 'true', '[0]', '{}'),
        ['0.5', invalid('svc_ResponseCode is not a whole number')],
      ],
    },
    {
      row: 'svc_ResponseData',
      documented: [['{"transId":"A"}', accepted('A')]],
      odd: [
        ['{"transId":"A","bank":{"ref":1}}', accepted('A')],
        [undefined, accepted(undefined)],
        ['null', accepted(undefined)],
        ...alike<Json>(accepted(undefined), '[{"transId":"A"}]', '"A"', '5', 'true'),
      ],
    },
    {
      row: 'svc_ResponseMsg',
      documented: [['"Success"', { ...accepted('5SYNM1OELUND'), message: 'Success' }]],
      odd: alike<Json>(SILENT, undefined, 'null', '5', 'true', '[]', '{}'),
    },
  ],
  readChanged,
)

it('a refund that is refused has the code and the message, card numbers masked, whatever the data', () => {
  const body = '{"svc_ResponseCode":33,"svc_ResponseMsg":"card 4111111111111111"'
  const refused = { kind: 'rejected', code: '33', message: 'card 411111******1111' }
  for (const data of ['}', ',"svc_ResponseData":{}}', ',"svc_ResponseData":[]}']) {
    expect(read(body + data)).toEqual(refused)
  }
})

describe('what is no answer in the sense of the specification', () => {
  const whole = writeObject(ANSWER, { svc_ResponseData: '[]' })
  const NO_OBJECT = 'the answer is not a JSON object'

  it.each([
    ['an empty body', '', NO_OBJECT],
    ['a page', '<html>ok</html>', NO_OBJECT],
    ['half of it', whole.slice(0, -5), NO_OBJECT],
    ['a list', `[${whole}]`, NO_OBJECT],
    ['null', 'null', NO_OBJECT],
    ['a number', '0', NO_OBJECT],
    ['more after it', `${whole}x`, NO_OBJECT],
    ['bytes that are no UTF-8', Buffer.from(whole.replace('Succ', '\xff'), 'latin1'), NO_OBJECT],
    ['nesting without end', '['.repeat(100_000), NO_OBJECT],
    ['a member twice', whole.replace('{', '{"svc_ResponseCode":1,'), NO_OBJECT],
    ['a code of another prefix', whole.replaceAll('svc', 'x'), 'svc_ResponseCode is not a number'],
    ['members by inheritance', `{"__proto__":${whole}}`, 'svc_ResponseCode is not a number'],
  ])('%s', (_, body, reason) => {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    for (const readAnswer of [readPaymentsAnswer, readRefundAnswer]) {
      expect(readAnswer(bytes, 'svc').answer).toEqual({ kind: 'unknown', reason })
    }
  })
})
