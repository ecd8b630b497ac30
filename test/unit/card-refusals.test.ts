import { expect, it } from 'vitest'
import { readCardResponse } from '../../src/gateway/card-answers.ts'
import { build, DETAIL, ENVELOPE } from '../support/card-specification.ts'

/** Section 7.2: how reads of cards are refused; test/api/cards.test.ts plays what is asked and shown. */

const RULES = {
  GATEWAY_FIELD_PREFIX: 'svc',
  GATEWAY_CARDS_SUCCESS_CODE: '1',
  GATEWAY_CARDS_NOT_FOUND_CODES: ['7'],
}

/** An answer with a card, whose code is as it is written. */
const write = (code = '1') =>
  JSON.stringify({ ...build(ENVELOPE), code: '(code)', data: build(DETAIL) }).replace(
    '"(code)"',
    code,
  )

const read = (body: string, status = 200, operation: 'detail' | 'list' = 'detail') =>
  readCardResponse({ status, body: Buffer.from(body) }, RULES, operation)

it.each(['1.0', '1'])('7, no code other than success is one that equals it: %s', (code) => {
  expect(read(write(code)).kind).toBe('answered')
})

const missing = (message: string) => ({ kind: 'missing', message })
const REFUSED = { kind: 'refused', status: 422, message: '' }

it.each([
  [404, '', missing('')],
  [404, '<html>', missing('')],
  [404, write(), missing('Successful')],
  [400, '{"code":7,"message":"none"}', missing('none')],
  [403, '{"code":9,"message":"no"}', { ...REFUSED, status: 403, code: '9', message: 'no' }],
  [422, 'null', REFUSED],
  [422, '{"code":"9","message":[]}', REFUSED],
  [422, '\u0000', REFUSED],
])('7.2, HTTP %i with the body %.40j', (status, body, found) => {
  expect(read(body, status)).toMatchObject(found)
})

it.each([
  '',
  'rubbish',
  '[]',
  'null',
  '5',
  '{}',
  '{"code":1}',
  '['.repeat(500_000),
  write('1e-400'),
])('%.20s is no answer', (body) => {
  for (const operation of ['detail', 'list'] as const) {
    expect(read(body, 200, operation)).toMatchObject({ kind: 'failed', timedOut: false })
  }
})
