import { stringify } from 'lossless-json'
import { describe, expect, it } from 'vitest'
import { buildCardPath } from '../../src/gateway/card-request.ts'
import { readCardAnswer, readCardRefusal } from '../../src/gateway/read-card-answer.ts'
import {
  build,
  CARD_STATUSES,
  type CardMember,
  DETAIL,
  ENVELOPE,
  ITEM,
  OTHER_STATUSES,
  PAGE,
} from '../support/card-specification.ts'
import { alike, type Json, playRows } from '../support/specification-rows.ts'

/** Sections 2.1 to 2.3, 4.1, 4.2 and 7.2. Order systems get a card as the gateway wrote it, card data masked. */

const RULES = { prefix: 'svc', successCode: '1', notFoundCodes: ['7'] }

type Operation = {
  operation: 'detail' | 'list'
  table: readonly CardMember[]
  /** The data of an answer with this card. */
  wrap: (card: object) => object
  path: string
}

const OPERATIONS: readonly Operation[] = [
  { operation: 'detail', table: DETAIL, wrap: (card) => card, path: 'data' },
  {
    operation: 'list',
    table: ITEM,
    wrap: (card) => ({ ...build(PAGE), docs: [card] }),
    path: 'data.docs.0',
  },
]

const MARK = '(member)'

/** An answer as text, with `json` in the place of the member that is marked. */
function write(data: unknown, json: Json, envelope = build(ENVELOPE)): string {
  const text = JSON.stringify({ ...envelope, ...(data === undefined ? {} : { data }) })
  return json === undefined ? text : text.replace(`"${MARK}"`, () => json)
}

/** `MARK` where there is a value; a member that is left out is left out of the object. */
const mark = (json: Json) => (json === undefined ? undefined : MARK)

/** The verdict, and the text that an order system gets. */
function read(operation: Operation['operation'], body: string) {
  const answer = readCardAnswer(Buffer.from(body), RULES, operation)
  return answer.kind === 'answered'
    ? { kind: answer.kind, text: stringify(answer.envelope) }
    : answer
}

/** Left out, null, and values of every type. */
const FORMS: readonly Json[] = [
  ...[undefined, 'null', '"text"', '""', '"2026-11-20T09:33:03.254Z"', '17', '0.1000', '-1'],
  ...['12345678901234567890.5', 'true', 'false', '[]', '["text"]', '[5411]', '{}'],
  '{"deep":[{"unknown":null}]}',
]

function typeOf(json: Json): string {
  const value: unknown = json === undefined ? undefined : JSON.parse(json)
  return value === null || value === undefined
    ? 'nothing'
    : Array.isArray(value)
      ? 'array'
      : typeof value
}

/** Whether the client takes the answer with this in the place of the member. */
function takes({ client, type, name }: CardMember, json: Json): boolean {
  const given = typeOf(json)
  if (client === 'any') return true
  if (given === 'nothing') return client !== 'required'
  if (name === 'code') return json === '1'
  return given === type || (client === 'identifier' && given === 'number')
}

/** Their values are compared below. */
const MASKED = ['cardData.cardNumber', 'cardData.cardCVV']

describe.each(OPERATIONS)('the answer to $operation', ({ operation, table, wrap, path }) => {
  const data = wrap(build(table))

  it('is passed on as it was written, with members that no table lists, at every level', () => {
    const card = { ...build(table), new: [{ any: null }] }
    const body = write({ ...wrap(card), page: 1 }, undefined, { ...build(ENVELOPE), svcNew: {} })
    expect(read(operation, body)).toEqual({ kind: 'answered', text: body })
  })

  it.each(ENVELOPE.filter(({ name }) => name !== 'data'))('$name of the envelope', (member) => {
    const sample = JSON.stringify(member.sample)
    for (const json of [sample, ...FORMS]) {
      const envelope = build(ENVELOPE, { name: member.name, value: mark(json) })
      const body = write(data, json, envelope)
      const found = read(operation, body)
      if (takes(member, json)) expect(found).toEqual({ kind: 'answered', text: body })
      else if (member.name === 'code' && /^-?\d+$/.test(json ?? '')) {
        expect(found).toMatchObject({ kind: 'refused', status: 200, code: json })
      } else {
        const reason = expect.stringContaining(member.name)
        expect(found).toEqual({ kind: 'failed', reason, timedOut: false })
      }
    }
  })

  it('data of the envelope', () => {
    for (const json of FORMS.filter((one) => typeOf(one) !== 'object')) {
      const envelope = build(ENVELOPE, { name: 'data', value: mark(json) })
      const reason = expect.stringMatching(/^data\b/)
      expect(read(operation, write(undefined, json, envelope))).toMatchObject({
        kind: 'failed',
        reason,
      })
    }
  })

  it.each(table)('$name of the card', (member) => {
    for (const json of [JSON.stringify(member.sample), ...FORMS]) {
      const card = build(table, { name: member.name, value: mark(json) })
      const body = write(wrap(card), json)
      const found = read(operation, body)
      if (!takes(member, json)) {
        const reason = expect.stringContaining(`${path}.${member.name}`)
        expect(found).toMatchObject({ kind: 'failed', reason })
      } else if (!MASKED.includes(member.name)) {
        expect(found).toEqual({ kind: 'answered', text: body })
      } else expect(found.kind).toBe('answered')
    }
  })

  it.each([...CARD_STATUSES, ...OTHER_STATUSES, 'NEVER_SEEN'])('with the status %s', (status) => {
    const body = write(wrap(build(table, { name: 'status', value: status })), undefined)
    expect(read(operation, body)).toEqual({ kind: 'answered', text: body })
  })

  it('names the owner of each card, where there is one', () => {
    const ownerOf = (json: Json) => {
      const card = build(table, { name: 'merchantCode', value: mark(json) })
      const answer = readCardAnswer(Buffer.from(write(wrap(card), json)), RULES, operation)
      return answer.kind === 'answered' ? answer.owners : answer.kind
    }
    expect(ownerOf('"UFLIYL"')).toEqual(['UFLIYL'])
    expect(ownerOf('12345678901234567890')).toEqual(['12345678901234567890'])
    for (const none of [undefined, 'null']) expect(ownerOf(none)).toEqual([undefined])
  })
})

describe.each(PAGE)('$name of the list', (member) => {
  it.each(FORMS.map((json) => ({ json })))('$json', ({ json }) => {
    const body = write(build(PAGE, { name: member.name, value: mark(json) }), json)
    const reason = expect.stringContaining(`data.${member.name}`)
    const isTaken = member.name === 'docs' ? json === '[]' : takes(member, json)
    expect(read('list', body)).toEqual(
      isTaken ? { kind: 'answered', text: body } : { kind: 'failed', reason, timedOut: false },
    )
  })
})

it.each(['null', '"VC-1"', '5', 'true', '[]'])('%s in the place of a card of the list', (json) => {
  const reason = expect.stringContaining('data.docs.1 is not an object')
  const body = write({ ...build(PAGE), docs: [build(ITEM), MARK] }, json)
  expect(read('list', body)).toMatchObject({ kind: 'failed', reason })
})

describe('what looks like the number of a card', () => {
  const NUMBER = '4111111111111111'
  const KEPT = [
    ...[
      'requestId',
      'virtualCardRequestId',
      'merchantId',
      'merchantCode',
      'createdAt',
      'updatedAt',
    ],
    ...['cardData.cardExpiryDate', 'cardPolicy.policyRequestId', 'cardPolicy.policyRevision'],
    ...['cardPolicy.cardCurrency', 'cardPolicy.cardLimit', 'cardPolicy.minTransAmount'],
    ...['cardPolicy.maxTransAmount', 'cardPolicy.autoCloseCard', 'cardPolicy.activeOnCreate'],
    'cardPolicy.supportedMccGroup',
  ]
  const FORMS_OF_IT = [
    NUMBER,
    `"${NUMBER}"`,
    `["${NUMBER}"]`,
    '4.111111111111111e15',
    `${NUMBER}.00`,
  ]

  it.each(OPERATIONS)(
    'is kept in the members of a $operation that could not be used masked',
    ({ operation, table, wrap }) => {
      for (const { name, client } of table) {
        for (const json of FORMS_OF_IT.slice(0, client === 'any' ? undefined : 2)) {
          const body = write(wrap(build(table, { name, value: MARK })), json)
          const found = read(operation, body)
          if (KEPT.includes(name)) expect(found).toEqual({ kind: 'answered', text: body })
          else expect(JSON.stringify(found)).not.toMatch(/4\.?111111/)
        }
      }
    },
  )

  it('is masked under the same names elsewhere, and in what no table lists', () => {
    for (const more of [
      { extraInfo: { requestId: NUMBER } },
      { cardPolicy: { pan: NUMBER } },
      { new: [{ deep: NUMBER }] },
    ]) {
      const body = write({ ...build(DETAIL), ...more }, undefined)
      const text = JSON.stringify(read('detail', body))
      expect(text).not.toContain('4111111')
      expect(text).toContain('411111******1111')
    }
  })

  it.each([
    ['"411111******1111"', '"411111******1111"'],
    [`"${NUMBER}"`, '"411111******1111"'],
    [NUMBER, '"411111******1111"'],
    ['"4111 1111 1111 1111"', '"4111 11** **** 1111"'],
    ['null', 'null'],
  ])('as the number, %s, is shown as %s', (json, shown) => {
    const card = build(DETAIL, { name: 'cardData.cardNumber', value: MARK })
    expect(read('detail', write(card, json))).toEqual({
      kind: 'answered',
      text: write(card, shown),
    })
  })

  it.each(['"***"', '"987"', '987', '"0"', '["987"]'])('as the CVV, %s, shows nothing', (json) => {
    const body = write(build(DETAIL, { name: 'cardData.cardCVV', value: MARK }), json)
    const masked = write(build(DETAIL, { name: 'cardData.cardCVV', value: '***' }), undefined)
    expect(read('detail', body)).toEqual({ kind: 'answered', text: masked })
  })
})

describe('7, a code other than success', () => {
  const refuse = (operation: Operation['operation'], code: string) =>
    read(
      operation,
      write(null, code, { ...build(ENVELOPE), code: MARK, message: 'no card 4111111111111111' }),
    )
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
    const body = write(build(DETAIL), code, { ...build(ENVELOPE), code: MARK })
    expect(read('detail', body)).toEqual({ kind: 'answered', text: body })
  })

  it('is 1 where the settings name another', () => {
    const rules = { ...RULES, successCode: '0' }
    const body = (code: number) =>
      Buffer.from(write(build(DETAIL), undefined, { ...build(ENVELOPE), code }))
    expect(readCardAnswer(body(0), rules, 'detail').kind).toBe('answered')
    expect(readCardAnswer(body(1), rules, 'detail')).toMatchObject({ kind: 'refused', code: '1' })
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
          { status: 404, body: write(build(DETAIL), undefined) },
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
        // With an error status the code of a success means nothing.
        [
          { status: 403, body: '{"code":1,"message":"no"}' },
          { kind: 'refused', message: 'no' },
        ],
        ...alike<Refusal>(
          { kind: 'refused', status: 422, message: '' },
          { status: 422, body: 'null' },
          { status: 422, body: '{"code":"9","message":[]}' },
          { status: 422, body: '\u0000' },
        ),
      ],
    },
  ],
  ({ status, body }) => readCardRefusal({ status, body: Buffer.from(body) }, RULES, 'detail'),
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

  it('a code all but 1, and a response id of another type under the name of the prefix', () => {
    const body = write(build(DETAIL), '1e-400', { ...build(ENVELOPE), code: MARK })
    expect(read('detail', body)).toMatchObject({
      kind: 'failed',
      reason: 'code is not a whole number',
    })
    const brand = Buffer.from(
      write(build(DETAIL), undefined).replace('svcResponseId":"RESP-1"', 'brandResponseId":[5]'),
    )
    expect(readCardAnswer(brand, RULES, 'detail').kind).toBe('answered')
    const failed = readCardAnswer(brand, { ...RULES, prefix: 'brand' }, 'detail')
    expect(failed).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('brandResponseId'),
    })
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
