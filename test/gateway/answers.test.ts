import { describe, expect, it } from 'vitest'
import { makeClient, serve } from '../support/gateway.ts'

const PAYMENT =
  '{"id":"7","status":"SUCCESS","amount":10.50,"refundedAmount":0,"paymentMethod":"QR"}'

const listing = (...payments: string[]) =>
  `{"svc_ResponseCode":0,"svc_ResponseMsg":"ok","svc_ResponseData":[${payments.join(',')}]}`
const change = (from: string, to: string) => listing(PAYMENT.replace(from, to))

async function ask(body: string | Buffer, status = 200, headers: Record<string, string> = {}) {
  const { url, seen } = await serve((response) => response.writeHead(status, headers).end(body))
  const { outcome } = await makeClient(url).ask()
  expect(seen).toHaveLength(1)
  return outcome
}

describe('an answer as specified', () => {
  it('keeps amounts as they were written', async () => {
    expect(await ask(listing(PAYMENT))).toEqual({
      kind: 'answered',
      message: 'ok',
      value: {
        payments: [
          { id: '7', status: 'SUCCESS', amount: '10.50', refundedAmount: '0', paymentMethod: 'QR' },
        ],
        unreadable: [],
        rounded: [],
        json: `[${PAYMENT}]`,
        omittedBytes: 0,
      },
    })
  })

  it('2.0E7 is 20000000', async () => {
    const outcome = await ask(change('10.50', '2.0E7'))
    expect(outcome).toMatchObject({ value: { payments: [{ amount: '20000000' }] } })
  })

  it('18 digits and 4 decimals lose nothing', async () => {
    const outcome = await ask(change('10.50', '999999999999999999.9999'))
    expect(outcome).toMatchObject({
      value: { payments: [{ amount: '999999999999999999.9999' }] },
    })
  })

  it('undocumented values and additional members are accepted', async () => {
    const odd = PAYMENT.replace('SUCCESS', 'VOIDED').replace('"id"', '"extra":{},"id"')
    expect(await ask(listing(odd))).toMatchObject({
      value: { payments: [{ id: '7', status: 'VOIDED' }] },
    })
  })

  it.each([201, 299])('status %i is a success as well', async (status) => {
    expect(await ask(listing(), status)).toMatchObject({
      kind: 'answered',
      value: { payments: [] },
    })
  })

  it('a message is cut and cleaned for the log, and may be missing', async () => {
    const long = `{"svc_ResponseCode":1,"svc_ResponseMsg":"a\\u0000\\n\\ud800${'x'.repeat(600)}"}`
    const outcome = await ask(long)
    expect(outcome).toMatchObject({ kind: 'rejected', code: '1' })
    expect('message' in outcome && outcome.message).toMatch(/^a \ufffdx{497}$/)
    expect(await ask('{"svc_ResponseCode":1}')).toMatchObject({ kind: 'rejected', message: '' })
  })

  it.each([
    ['0.0', { kind: 'answered' }],
    ['-0', { kind: 'answered' }],
    ['99.0', { kind: 'rejected', code: '99' }],
  ])('the code %s counts by its value', async (code, expected) => {
    expect(await ask(listing().replace(':0,', `:${code},`))).toMatchObject(expected)
  })
})

describe('no answer in the sense of the specification is unknown', () => {
  it.each([
    ['an empty body', '', /not a JSON object/],
    ['half of it', listing(PAYMENT).slice(0, -5), /not a JSON object/],
    ['a list', '[]', /not a JSON object/],
    ['null', 'null', /not a JSON object/],
    ['a number', '0', /not a JSON object/],
    ['more after it', `${listing()}x`, /not a JSON object/],
    [
      'bytes that are no UTF-8',
      Buffer.from(change('SUCCESS', '\xff'), 'latin1'),
      /not a JSON object/,
    ],
    ['nesting without end', '['.repeat(100_000), /not a JSON object/],
    ['a member twice', '{"svc_ResponseCode":0,"svc_ResponseCode":1}', /not a JSON object/],
    ['no code', '{"svc_ResponseData":[]}', /svc_ResponseCode is not a number/],
    ['a code of another prefix', listing().replaceAll('svc', 'x'), /svc_ResponseCode is not a/],
    ['a code as text', '{"svc_ResponseCode":"0","svc_ResponseData":[]}', /svc_ResponseCode is not/],
    ['a code of null', '{"svc_ResponseCode":null}', /svc_ResponseCode is not a number/],
    ['a code all but 0', listing().replace(':0,', ':1e-400,'), /svc_ResponseCode is not a whole/],
    ['a code between codes', listing().replace(':0,', ':0.5,'), /svc_ResponseCode is not a whole/],
    [
      'members by inheritance',
      '{"__proto__":{"svc_ResponseCode":0,"svc_ResponseData":[]}}',
      /svc_ResponseCode is not a number/,
    ],
    ['no list', '{"svc_ResponseCode":0}', /svc_ResponseData is not an array/],
    ['an object for a list', listing().replace('[]', '{}'), /svc_ResponseData is not an array/],
  ])('%s', async (_what, body, reason) => {
    expect(await ask(body)).toEqual({ kind: 'unknown', reason: expect.stringMatching(reason) })
  })

  it.each([302, 400, 401, 404, 429, 500, 503])('status %i, whatever its body', async (status) => {
    expect(await ask(listing(PAYMENT), status)).toEqual({
      kind: 'unknown',
      reason: `HTTP status ${status}`,
    })
  })

  it('a redirect, which is not followed', async () => {
    const elsewhere = await serve((response) => response.end(listing(PAYMENT)))
    const outcome = await ask('', 307, { location: elsewhere.url })
    expect(outcome).toEqual({ kind: 'unknown', reason: 'HTTP status 307' })
    expect(elsewhere.seen).toEqual([])
  })

  it.each([
    ['announced', { 'content-length': String(2 * 1024 * 1024) }],
    ['in pieces', { 'transfer-encoding': 'chunked' }],
  ])('2 MiB of it, %s, which is not read to its end', async (_how, headers) => {
    const big = Buffer.from(listing(PAYMENT).padEnd(2 * 1024 * 1024))
    expect(await ask(big, 200, headers)).toMatchObject({
      kind: 'unknown',
      reason: 'the answer exceeds 1048576 bytes',
    })
  })

  it('but just below 1 MiB is read', async () => {
    const big = listing(PAYMENT).padEnd(1024 * 1024)
    expect(await ask(big)).toMatchObject({ kind: 'answered' })
  })
})
