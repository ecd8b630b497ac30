import { describe, expect, it } from 'vitest'
import { readCardResponse } from '../../src/gateway/card-answers.ts'
import { build, DETAIL, ENVELOPE } from '../support/card-specification.ts'
import { alike, playRows } from '../support/specification-rows.ts'

/** Section 7.2: how reads of cards are refused; test/api/cards.test.ts plays what is asked and shown. */

const RULES = { prefix: 'svc', successCode: '1', notFoundCodes: ['7'] }

const CARD = build(DETAIL)

/** An answer as text; `code` is as it is written. */
function write(data: unknown, code = '1', more: object = {}): string {
  const text = JSON.stringify({ ...build(ENVELOPE), ...more, code: '(code)', data })
  return text.replace('"(code)"', code)
}

const read = (operation: 'detail' | 'list', body: string) =>
  readCardResponse({ status: 200, body: Buffer.from(body) }, RULES, operation)

it.each(['1.0', '1'])('7, no code other than success is one that equals it: %s', (code) => {
  expect(read('detail', write(CARD, code)).kind).toBe('answered')
})

type Refusal = { status: number; body: string }

playRows<Refusal>(
  '7.2, an answer with an error status',
  [
    {
      row: '404',
      documented: [
        [
          { status: 404, body: '' },
          { kind: 'missing', message: '' },
        ],
      ],
      odd: [
        [
          { status: 404, body: '<html>' },
          { kind: 'missing', message: '' },
        ],
        [
          { status: 404, body: write(CARD) },
          { kind: 'missing', message: 'Successful' },
        ],
        [
          { status: 400, body: '{"code":7,"message":"none"}' },
          { kind: 'missing', message: 'none' },
        ],
      ],
    },
    {
      row: 'another',
      documented: [
        [
          { status: 403, body: '{"code":9,"message":"no"}' },
          { kind: 'refused', status: 403, code: '9', message: 'no' },
        ],
      ],
      odd: [
        ...alike<Refusal>(
          { kind: 'refused', status: 422, message: '' },
          { status: 422, body: 'null' },
          { status: 422, body: '{"code":"9","message":[]}' },
          { status: 422, body: '\u0000' },
        ),
      ],
    },
  ],
  ({ status, body }) => readCardResponse({ status, body: Buffer.from(body) }, RULES, 'detail'),
)

describe('what is no answer', () => {
  it.each(['', 'rubbish', '[]', 'null', '5', '{}', '{"code":1}', '['.repeat(500_000)])(
    '%.20s',
    (body) => {
      for (const operation of ['detail', 'list'] as const) {
        expect(read(operation, body)).toMatchObject({ kind: 'failed', timedOut: false })
      }
    },
  )

  it('a code all but 1', () => {
    const reason = 'code is not a whole number'
    expect(read('detail', write(CARD, '1e-400'))).toMatchObject({ kind: 'failed', reason })
  })
})
