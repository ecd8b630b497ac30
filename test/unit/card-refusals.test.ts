import { describe, expect, it } from 'vitest'
import { readCardResponse } from '../../src/gateway/card-answers.ts'
import { buildCardPath } from '../../src/gateway/cards.ts'
import { build, DETAIL, ENVELOPE } from '../support/card-specification.ts'
import { alike, playRows } from '../support/specification-rows.ts'

/** Sections 4.1, 4.2 and 7.2: what is asked about cards, and how that is refused. */

const RULES = { prefix: 'svc', successCode: '1', notFoundCodes: ['7'] }

const CARD = build(DETAIL)

/** An answer as text; `code` is as it is written. */
function write(data: unknown, code = '1', more: object = {}): string {
  const text = JSON.stringify({ ...build(ENVELOPE), ...more, code: '(code)', data })
  return text.replace('"(code)"', code)
}

const read = (operation: 'detail' | 'list', body: string, rules = RULES) =>
  readCardResponse({ status: 200, body: Buffer.from(body) }, rules, operation)

describe('7, a code other than success', () => {
  const refuse = (operation: 'detail' | 'list', code: string) =>
    read(operation, write(null, code, { message: 'no card 4111111111111111' }))
  const message = 'no card 411111******1111'

  it.each(['0', '404', '-1'])('%s is a refusal with its message, masked', (code) => {
    for (const operation of ['detail', 'list'] as const) {
      expect(refuse(operation, code)).toEqual({ kind: 'refused', status: 200, code, message })
    }
  })

  it('that the settings list means that there is no such card; a list has no such code', () => {
    expect(refuse('detail', '7')).toEqual({ kind: 'missing', message })
    expect(refuse('list', '7')).toMatchObject({ kind: 'refused', code: '7' })
  })

  it.each(['1.0', '1'])('is none that equals it: %s', (code) => {
    expect(read('detail', write(CARD, code)).kind).toBe('answered')
  })

  it('is 1 where the settings name another', () => {
    const rules = { ...RULES, successCode: '0' }
    expect(read('detail', write(CARD, '0'), rules).kind).toBe('answered')
    expect(read('detail', write(CARD), rules)).toMatchObject({ kind: 'refused', code: '1' })
  })
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

it('with an error status the code of a success means nothing', () => {
  const refused = { status: 403, body: Buffer.from('{"code":1,"message":"no"}') }
  const read = readCardResponse(refused, RULES, 'detail')
  expect(read).toEqual({ kind: 'refused', status: 403, message: 'no' })
})

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

playRows<string>(
  '4.1, the path of a card',
  [
    {
      row: 'virtualCardRequestId',
      documented: [['VC-1', { path: '/cards/VC-1' }]],
      odd: [
        ['12345678901234567', { path: '/cards/12345678901234567' }],
        ['ĐH 1?a=b#c', { path: `/cards/${encodeURIComponent('ĐH 1?a=b#c')}` }],
        ['%2e%2e%2f', { path: '/cards/%252e%252e%252f' }],
        ['../secret', { path: '/cards/..%2Fsecret' }],
      ],
    },
  ],
  (virtualCardRequestId) => ({
    path: buildCardPath('/cards', { merchantCode: undefined, virtualCardRequestId }),
  }),
)

it('4.2, the path of a list has the parameters that are given, in their order', () => {
  const query = { pageIndex: '2', pageSize: undefined, requestId: 'R&1', status: 'ACTIVED' }
  expect(buildCardPath('/cards', { merchantCode: undefined, query })).toBe(
    '/cards?pageIndex=2&requestId=R%261&status=ACTIVED',
  )
  expect(buildCardPath('/cards', { merchantCode: undefined })).toBe('/cards')
})
