import { expect, it } from 'vitest'
import { parseFormParams, parseJsonParams } from '../../../src/gateway/parse-body.ts'
import { createMaskNotification, maskStored } from '../../../src/gateway/stored-body.ts'

const mask = createMaskNotification({
  kind: 'payment',
  known: [],
  refundHashExclude: [],
  signature: { prefix: 'svc', exclude: ['TransAmount', 'ExtData'] },
})

const TOKEN = 'tok-5f1c9a'
const HELD = { payToken: TOKEN, note: 'ok' }

/** As a gateway would write it: what is nested becomes JSON. */
function writeForm(params: Record<string, unknown>): string {
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) {
    form.append(name, typeof value === 'string' ? value : JSON.stringify(value))
  }
  return form.toString()
}

function store(text: string, format: 'json' | 'form'): string {
  const parsed = format === 'json' ? parseJsonParams(text) : parseFormParams(text)
  if ('problem' in parsed) throw new Error(parsed.problem)
  return mask(text, format, parsed.params)
}

/** What is readable of a text once its percent-encoding and all of it that looks like Base64 are decoded. */
function* readAll(text: string): Generator<string> {
  yield text
  yield decodeURIComponent(text)
  for (const [part] of text.matchAll(/[\w+/]{16,}/g)) yield Buffer.from(part, 'base64').toString()
}

it.each<[string, Record<string, unknown>]>([
  ['in capitals', { SVC_PAYTOKEN: TOKEN }],
  ['in small letters', { svc_paytoken: TOKEN }],
  ['without the prefix', { PayToken: TOKEN }],
  ['with more in its name', { svc_PayTokenOfCard2: TOKEN }],
  ['in a list', { svc_PayToken: [TOKEN] }],
  ['nested deeply', { svc_ExtData: { a: [{ b: HELD }] } }],
  ['in a text of JSON after white space', { svc_ExtData: ` \n${JSON.stringify(HELD)}` }],
  ['in JSON in JSON', { svc_ExtData: JSON.stringify(JSON.stringify(HELD)) }],
  ['in a text of JSON in a member', { svc_ExtData: { raw: JSON.stringify(HELD) } }],
  ['as a form', { svc_ExtData: `a=1&pay_token=${TOKEN}&b=2` }],
  ['as JSON, percent-encoded', { svc_ExtData: encodeURIComponent(JSON.stringify(HELD)) }],
  ['as JSON in Base64', { svc_ExtData: Buffer.from(JSON.stringify(HELD)).toString('base64') }],
  ['in a name', { [`token=${TOKEN}`]: 'x' }],
  ['in the words of a message', { svc_ResponseMsg: `token: ${TOKEN}` }],
  ['at the start of a long value', { svc_ExtData: { ...HELD, raw: 'x'.repeat(5_000) } }],
  ['at the end of a long value', { svc_ExtData: { raw: 'x'.repeat(5_000), ...HELD } }],
])('a token %s is not stored, in JSON and in a form', (_, fields) => {
  const params = { svc_TransactionID: 'T-1', svc_Amount: 10, ...fields }
  for (const [text, format] of [
    [JSON.stringify(params), 'json'],
    [writeForm(params), 'form'],
  ] as const) {
    const stored = store(text, format)
    expect(stored).toContain('T-1')
    for (const readable of readAll(stored)) expect(readable).not.toContain(TOKEN)
  }
})

it('a token with a signature of its own (JWT) is not stored', () => {
  const jwt = `eyJhbGciOiJIUzI1NiJ9.${Buffer.from('{"a":1}').toString('base64url')}.c2ln`
  expect(JSON.parse(store(JSON.stringify({ svc_ExtData: jwt }), 'json'))).toEqual({
    svc_ExtData: '***',
  })
})

it.each(['eyJhIjoxfQ==', '50% off = good', 'a: b', '{"a":[1.50]}', '%7B%22a%22%3A1%7D', '"x:y"'])(
  '%j stays as it was written',
  (text) => {
    const body = JSON.stringify({ svc_OrderInfo: text, svc_ExtData: text })
    expect(store(body, 'json')).toBe(body)
  },
)

it.each<[string, string, string]>([
  [
    'JSON',
    '{"svc_Amount":1000, "svc_RequestID":"1000", "svc_ResponseMsg":"to 1000", "svc_ExtData":{"to":[1000]}}',
    '{"svc_Amount":1000,"svc_RequestID":"1000","svc_ResponseMsg":"to ***","svc_ExtData":{"to":["***"]}}',
  ],
  ['a form', 'svc_Amount=1000&svc_ResponseMsg=to+%31000', 'svc_Amount=1000&svc_ResponseMsg=to+***'],
  ['an unreadable body', '{"svc_ResponseMsg":"to 1000…', '{"svc_ResponseMsg":"to ***…'],
  ['a name', 'to+1000=(not+kept)', 'to+***=%28not+kept%29'],
  ['JSON without it', '{ "svc_Amount": 1000 }', '{ "svc_Amount": 1000 }'],
])('a stored notification in %s is masked beside its evidence', (_, body, masked) => {
  expect(maskStored(body, (text) => text.replaceAll('1000', '***'))).toBe(masked)
})
