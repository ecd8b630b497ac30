import { isLosslessNumber, parse } from 'lossless-json'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  CARDS,
  makeItem,
  serveCards,
  startCards,
  writeDetail,
  writeList,
} from '../../support/cards.ts'
import { takeFaults } from '../../support/conformance/faults.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { type Form, type Json, playRows, type Row, writeObject } from './rows.ts'

const database = useTestDatabase()

type Answer = { body: string; status?: number }

type Cards = {
  answer: Answer
  get(path: string): Promise<Response>
  /** The paths and tokens of the reads since it was called last. */
  asked(): { path: string; authorization: string | undefined }[]
}

let cards: Cards | undefined

/** Starts a gateway that answers with `answer`, and a service, until the test ends. */
async function start(tokens?: Parameters<typeof serveCards>[1]): Promise<Cards> {
  const gateway = await serveCards(
    (response) => response.writeHead(started.answer.status ?? 200).end(started.answer.body),
    tokens,
  )
  const { get } = await startCards(database, gateway.url)
  const asked = () =>
    gateway.reads.splice(0).map(({ path, headers }) => ({
      path: path.slice(CARDS.length),
      authorization: headers.authorization,
    }))
  const started: Cards = { answer: { body: '' }, get, asked }
  onTestFinished(() => {
    cards = undefined
  })
  return started
}

/** Reads a card or a list from a gateway that answers so. */
async function read(path: string, answer: Answer) {
  cards ??= await start()
  cards.answer = answer
  const response = await cards.get(path)
  const shown = z.record(z.string(), z.unknown()).parse(readNumbersAsText(await response.text()))
  // A member of a card is passed on also where its type is not that of the table.
  expect((await takeFaults()).filter((fault) => !fault.includes(' data/data/'))).toEqual([])
  return { ...shown, status: response.status, asked: cards.asked() }
}

/** So that no digit is lost in a comparison. */
function readNumbersAsText(text: string): unknown {
  return parse(text, (_, value) => (isLosslessNumber(value) ? value.value : value))
}

const REPLACED = '(replaced)'

/** Replaces the JSON of a member, named by its path in the object. */
function replaceMember(object: string, path: string, json: Json): string {
  const value = json === undefined ? undefined : REPLACED
  const whole = replaceAt(JSON.parse(object), path.split('.'), value)
  return JSON.stringify(whole).replace(`"${REPLACED}"`, json ?? '')
}

function replaceAt(whole: unknown, [name, ...inner]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value
  if (Array.isArray(whole)) {
    return whole.map((one, n) => (String(n) === name ? replaceAt(one, inner, value) : one))
  }
  const members = z.record(z.string(), z.unknown()).parse(whole)
  return { ...members, [name]: replaceAt(members[name], inner, value) }
}

/** The data with this value at this path. */
function showAt(path: string, value: unknown): object {
  const data = path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value)
  return { status: 200, data }
}

/** A member that order systems get as the gateway wrote it, whatever that is. */
function passOn(
  path: string,
  documented: string,
  odd: readonly [string, string, string, ...string[]],
): Row<Json> {
  const form = (json: string): Form<Json> => [json, showAt(path, readNumbersAsText(json))]
  const [first, second, third, ...more] = odd
  return {
    row: path,
    documented: [form(documented)],
    odd: [form(first), form(second), form(third), ...more.map(form)],
  }
}

const TEXTS = ['null', '17', '""', '["text"]'] as const
const NUMBERS = ['null', '"17"', '1234567890128', '0.1000', '12345678901234567890.5'] as const
const BOOLEANS = ['null', '"true"', '1'] as const
const IDS = ['null', '12345678901234567', '"41111111111111111"'] as const
const TIMES = ['null', '"20261120093303"', '1795512783'] as const

const SHARED: readonly Row<Json>[] = [
  passOn('requestId', '"REQ-1"', IDS),
  passOn('virtualCardRequestId', '"VC-1"', IDS),
  passOn('merchantCode', '"UFLIYL"', ['null', '17', '"uflIyl"', '""']),
  passOn('cardData.cardHolderName', '"NGUYỄN VĂN A"', TEXTS),
  passOn('cardData.cardBrand', '"visa"', TEXTS),
  passOn('cardPolicy.policyRequestId', '"POL-1"', IDS),
  passOn('cardPolicy.policyRevision', '3', NUMBERS),
  passOn('cardPolicy.cardCurrency', '"VND"', TEXTS),
  passOn('cardPolicy.cardLimit', '10000.50', NUMBERS),
  passOn('cardPolicy.minTransAmount', '0.10', NUMBERS),
  passOn('cardPolicy.maxTransAmount', '99.99', NUMBERS),
  passOn('cardPolicy.autoCloseCard', 'false', BOOLEANS),
  passOn('status', '"ACTIVED"', ['"LOCKED"', 'null', '7']),
  passOn('extraInfo', '{"note":"kept"}', ['null', '"text"', '{"deep":[{"unknown":null}]}']),
  passOn('createdAt', '"2026-11-20T09:33:03.254Z"', TIMES),
  passOn('updatedAt', '"2026-11-21T09:33:03.254Z"', TIMES),
]

const MASKED_NUMBER = showAt('cardData.cardNumber', '411111******1111')

const DETAIL: readonly Row<Json>[] = [
  ...SHARED,
  {
    row: 'cardData.cardNumber',
    documented: [['"411111******1111"', MASKED_NUMBER]],
    odd: [
      ['"4111111111111111"', MASKED_NUMBER],
      ['4111111111111111', MASKED_NUMBER],
      ['"4111 1111 1111 1111"', { status: 200, data: { virtualCardRequestId: 'VC-1' } }],
      ['null', showAt('cardData.cardNumber', null)],
    ],
  },
  {
    row: 'cardData.cardCVV',
    documented: [['"***"', showAt('cardData.cardCVV', '***')]],
    odd: [
      ['"987"', showAt('cardData.cardCVV', '***')],
      ['987', showAt('cardData.cardCVV', '***')],
      ['"0"', showAt('cardData.cardCVV', '***')],
    ],
  },
  passOn('cardData.cardExpiryDate', '"2028-12"', ['"12/28"', 'null', '202812']),
  passOn('cardPolicy.activeOnCreate', 'true', BOOLEANS),
  passOn('cardPolicy.supportedMccGroup', '["5411","5812"]', ['[]', 'null', '[5411]']),
]

playRows('2.2, a card', DETAIL, (json, path) =>
  read('/VC-1', { body: replaceMember(writeDetail(), `data.${path}`, json) }),
)

const Page = z.object({ docs: z.array(z.unknown()) })
const LISTED = writeList([makeItem()])

const ITEM: readonly Row<Json>[] = [
  ...SHARED,
  passOn('merchantId', '"64f1a2b3c4d5e6f708192a3b"', IDS),
  passOn('merchantEmail', '"shop@example.com"', TEXTS),
]

playRows('2.3, a card in a list', ITEM, async (json, path) => {
  const body = replaceMember(LISTED, `data.docs.0.${path}`, json)
  const { data, ...rest } = z.looseObject({ data: Page }).parse(await read('', { body }))
  return { ...rest, data: data.docs[0] }
})

/** The gateway's answer is none. */
const NO_ANSWER = { status: 502, code: 'gateway_failed' }
const ONE = { status: 200, data: { docs: [{ virtualCardRequestId: 'VC-1' }] } }

const PAGE: readonly Row<Json>[] = [
  {
    row: 'docs',
    documented: [['[]', { status: 200, data: { docs: [] } }]],
    odd: [
      ['null', NO_ANSWER],
      [undefined, NO_ANSWER],
      ['{}', NO_ANSWER],
      ['[null]', NO_ANSWER],
      ['["VC-1"]', NO_ANSWER],
    ],
  },
  {
    row: 'totalDocs',
    documented: [['1', ONE]],
    odd: [
      ['null', ONE],
      [undefined, ONE],
      ['"1"', ONE],
    ],
  },
  {
    row: 'totalPages',
    documented: [['1', ONE]],
    odd: [
      ['null', ONE],
      [undefined, ONE],
      ['-1', ONE],
    ],
  },
]

playRows('2.3, a list of cards', PAGE, (json, member) =>
  read('', { body: replaceMember(LISTED, `data.${member}`, json) }),
)

const ENVELOPE = {
  code: '1',
  state: '2',
  data: JSON.stringify(JSON.parse(writeDetail()).data),
  message: '"Successful"',
  svcResponseId: '"RESP-1"',
}
const CARD = { status: 200, data: { virtualCardRequestId: 'VC-1' } }

function refuse(gatewayCode: string) {
  return { status: 502, code: 'card_refused', gatewayCode }
}

const ENVELOPES: readonly Row<Json>[] = [
  {
    row: 'code',
    documented: [['1', CARD]],
    odd: [
      ['1.0', CARD],
      ['0', refuse('0')],
      ['404', refuse('404')],
      ['-1', refuse('-1')],
      ['"1"', NO_ANSWER],
      ['null', NO_ANSWER],
      [undefined, NO_ANSWER],
    ],
  },
  {
    row: 'state',
    documented: [['2', { ...CARD, state: '2' }]],
    odd: [
      ['null', { ...CARD, state: null }],
      [undefined, CARD],
      ['7', { ...CARD, state: '7' }],
    ],
  },
  {
    row: 'data',
    documented: [[ENVELOPE.data, CARD]],
    odd: [
      ['null', NO_ANSWER],
      [undefined, NO_ANSWER],
      ['[]', NO_ANSWER],
      ['"VC-1"', NO_ANSWER],
      ['{}', { status: 200, data: {} }],
    ],
  },
  {
    row: 'message',
    documented: [['"Successful"', { ...CARD, message: 'Successful' }]],
    odd: [
      ['null', { ...CARD, message: null }],
      [undefined, CARD],
      ['"thành công"', { ...CARD, message: 'thành công' }],
    ],
  },
  {
    row: 'svcResponseId',
    documented: [['"RESP-1"', { ...CARD, svcResponseId: 'RESP-1' }]],
    odd: [
      ['12345678901234567', { ...CARD, svcResponseId: '12345678901234567' }],
      ['null', { ...CARD, svcResponseId: null }],
      [undefined, CARD],
    ],
  },
]

playRows('2.1, the envelope', ENVELOPES, (json, member) =>
  read('/VC-1', { body: writeObject(ENVELOPE, member, json) }),
)

const WHOLE = { body: writeDetail() }
const NOT_FOUND = { status: 404, code: 'card_not_found' }

const STATUSES: readonly Row<Answer>[] = [
  {
    row: 'HTTP 200',
    documented: [[WHOLE, CARD]],
    odd: [
      [{ status: 404, ...WHOLE }, NOT_FOUND],
      [{ status: 404, body: '<html>' }, NOT_FOUND],
      [{ status: 500, ...WHOLE }, NO_ANSWER],
      [{ status: 302, ...WHOLE }, NO_ANSWER],
      [
        { status: 422, body: 'null' },
        { status: 422, code: 'invalid_request' },
      ],
      [{ status: 200, body: '' }, NO_ANSWER],
    ],
  },
]

playRows('7.2, errors of virtual cards', STATUSES, (answer) => read('/VC-1', answer))

const INVALID = { status: 422, code: 'invalid_request', asked: [] }

const IDS_ASKED: readonly Row<string>[] = [
  {
    row: 'virtualCardRequestId',
    documented: [['VC-1', { ...CARD, asked: [{ path: '/VC-1' }] }]],
    odd: [
      ['12345678901234567', { ...CARD, asked: [{ path: '/12345678901234567' }] }],
      ['ĐH 1?a=b#c', { ...CARD, asked: [{ path: `/${encodeURIComponent('ĐH 1?a=b#c')}` }] }],
      ['../../admin', INVALID],
      ['a\\b', INVALID],
      ['V'.repeat(129), INVALID],
    ],
  },
]

playRows('4.1, the detail of a card', IDS_ASKED, (id) => read(`/${encodeURIComponent(id)}`, WHOLE))

/** A parameter that is passed on. */
function showQuery(query: Readonly<Record<string, string>>) {
  return { status: 200, asked: [{ path: `?${new URLSearchParams(query)}` }] }
}

const PARAMETERS: readonly Row<string>[] = [
  {
    row: 'pageIndex',
    documented: [['pageIndex=2', showQuery({ pageIndex: '2' })]],
    odd: [
      ['pageIndex=-1', INVALID],
      ['pageIndex=1.5', INVALID],
      ['pageIndex=two', INVALID],
      ['pageIndex=1&pageIndex=2', INVALID],
    ],
  },
  {
    row: 'pageSize',
    documented: [['pageSize=5', showQuery({ pageSize: '5' })]],
    odd: [
      ['pageSize=0', INVALID],
      ['pageSize=101', INVALID],
      ['pageSize=0x5', INVALID],
    ],
  },
  {
    row: 'dateFr',
    documented: [['dateFr=2026-01-02', showQuery({ dateFr: '2026-01-02' })]],
    odd: [
      ['dateFr=2026-02-30', INVALID],
      ['dateFr=2026-1-2', INVALID],
      ['dateFr=', INVALID],
    ],
  },
  {
    row: 'dateTo',
    documented: [['dateTo=2026-01-08', showQuery({ dateTo: '2026-01-08' })]],
    odd: [
      ['dateTo=2026-13-01', INVALID],
      ['dateTo=01/02/2026', INVALID],
      ['dateTo=tomorrow', INVALID],
    ],
  },
  {
    row: 'requestId',
    documented: [['requestId=REQ-1', showQuery({ requestId: 'REQ-1' })]],
    odd: [
      ['requestId=12345678901234567', showQuery({ requestId: '12345678901234567' })],
      ['requestId=a&requestId=b', INVALID],
      ['requestId=', INVALID],
    ],
  },
  {
    row: 'status',
    documented: [['status=ACTIVED', showQuery({ status: 'ACTIVED' })]],
    odd: [
      ['status=LOCKED', showQuery({ status: 'LOCKED' })],
      ['status=ACTIVED&status=LOCKED', INVALID],
      ['status=', INVALID],
    ],
  },
  {
    row: 'cardBrand',
    documented: [['cardBrand=visa', showQuery({ cardBrand: 'visa' })]],
    odd: [
      ['cardBrand=jcb', showQuery({ cardBrand: 'jcb' })],
      ['cardBrand=visa&cardBrand=jcb', INVALID],
      ['brand=visa', INVALID],
    ],
  },
]

playRows('4.2, the list of cards', PARAMETERS, (query) => read(`?${query}`, { body: LISTED }))

const GRANTED = { ...CARD, asked: [{ authorization: 'Bearer TOKEN-1' }] }
const NO_TOKEN = { status: 502, code: 'gateway_token_refused', asked: [] }

const TOKENS: readonly Row<string>[] = [
  {
    row: 'Authorization',
    documented: [['{"access_token":"TOKEN-1","token_type":"Bearer","expires_in":3600}', GRANTED]],
    odd: [
      ['{"access_token":"TOKEN-1","token_type":"bearer","expires_in":"3600"}', GRANTED],
      ['{"access_token":"TOKEN-1"}', GRANTED],
      [
        '{"code":1,"message":"ok","data":{"access_token":"TOKEN-1","token_type":"Bearer"}}',
        GRANTED,
      ],
      ['{"access_token":"","token_type":"Bearer"}', NO_TOKEN],
      ['{"access_token":"two\\nlines","token_type":"Bearer"}', NO_TOKEN],
      ['{"access_token":"TOKEN-1","token_type":"mac"}', NO_TOKEN],
      ['{"access_token":17}', NO_TOKEN],
    ],
  },
]

playRows('5.1, the token of virtual cards', TOKENS, async (token) => {
  cards = await start((response) => response.end(token))
  return await read('/VC-1', WHOLE)
})
