import { stringify } from 'lossless-json'
import { describe, expect, it } from 'vitest'
import { readCardResponse } from '../../src/gateway/card-answers.ts'
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
import type { Json } from '../support/specification-rows.ts'

/** Sections 2.1 to 2.3. Order systems get a card as the gateway wrote it, card data masked. */

const RULES = {
  GATEWAY_FIELD_PREFIX: 'svc',
  GATEWAY_CARDS_SUCCESS_CODE: '1',
  GATEWAY_CARDS_NOT_FOUND_CODES: [],
}

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
  const answer = readCardResponse({ status: 200, body: Buffer.from(body) }, RULES, operation)
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
      const body = Buffer.from(write(wrap(card), json))
      const answer = readCardResponse({ status: 200, body }, RULES, operation)
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
      ...['requestId', 'virtualCardRequestId', 'merchantId', 'merchantCode', 'createdAt'],
      ...['updatedAt'],
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

it.each(OPERATIONS)(
  'a PIN and other credentials are hidden in what the gateway adds to a card of a $operation',
  ({ operation, table, wrap }) => {
    const name = 'extraInfo'
    const added = '{"cardPIN":"1234","all":[{"pin":9876,"password":null}],"shopping":"1234"}'
    const shown = '{"cardPIN":"***","all":[{"pin":"***","password":null}],"shopping":"1234"}'
    const card = wrap(build(table, { name, value: MARK }))
    const text = write(card, shown)
    expect(read(operation, write(card, added))).toEqual({ kind: 'answered', text })
  },
)
