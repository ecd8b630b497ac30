import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApp } from '../../src/app.ts'
import { type Answer, type Check, prepareCheck } from '../support/conformance/check.ts'
import { takeFaults } from '../support/conformance/faults.ts'
import { type BorrowedDatabase, borrowDatabase } from '../support/database.ts'
import { KEY, startTestService } from '../support/service.ts'

const ID = '240830080146NDTISR'
const SYNC = { status: 'queued', asOf: null, nextAttemptAt: null, attempts: 0, lastError: null }
const TIME = '2026-11-21T09:33:03.213Z'
const TRANSACTION = {
  ...{ transactionId: ID, merchantCode: 'UFLIYL', orderId: null, merchantTxnId: null },
  ...{ currency: null, state: 'pending', paidAmount: '0', expectedAmount: null },
  ...{ expectedAmountSource: null, amountMatches: null, refundedAmount: '0' },
  ...{ duplicatePayment: false, sameOrder: [], payments: [], final: false, sync: SYNC },
  ...{ ipnCount: 0, firstSeenAt: TIME, updatedAt: TIME },
}
const PROBLEM = {
  type: 'urn:ipn-processor:problem:transaction_not_found',
  title: 'No such transaction',
  status: 404,
  detail: `No transaction ${ID}`,
  code: 'transaction_not_found',
  requestId: 'r-1',
}
const JSON_TYPE = 'application/json'
const PROBLEM_TYPE = 'application/problem+json'

let database: BorrowedDatabase
let check: Check
let service: Awaited<ReturnType<typeof startTestService>>
beforeAll(async () => {
  database = await borrowDatabase()
  service = await startTestService(database, 'http://127.0.0.1:1', { settings: { ROLE: 'web' } })
  const document = await createApp(service.ctx).request(
    '/openapi.json',
    {},
    { incoming: { socket: {}, headers: {} } },
  )
  check = prepareCheck(await document.text(), () => true)
})
afterAll(async () => {
  await service.stop()
  await database.release()
})

type AnswerOverrides = Partial<Omit<Answer, 'body'>> & { body?: unknown; without?: string }

/** Checks an answer to `GET /v1/transactions/{id}`, unless overridden. */
function checkAnswer({
  body = TRANSACTION,
  headers = {},
  without,
  ...more
}: AnswerOverrides): string | undefined {
  const common = { 'x-request-id': 'r-1', etag: 'W/"0.1"', 'content-type': JSON_TYPE }
  return check({
    method: 'GET',
    target: `/v1/transactions/${ID}?wait=1`,
    status: 200,
    ...more,
    headers: Object.fromEntries(
      Object.entries({ ...common, ...headers }).filter(([name]) => name !== without),
    ),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}
const refused = {
  ...{ status: 404, headers: { 'content-type': PROBLEM_TYPE } },
  ...{ body: PROBLEM, without: 'etag' },
}

const NOT_ALLOWED = { ...refused, method: 'PUT', status: 405 }
const transaction = (more: object) => ({ body: { ...TRANSACTION, ...more } })
const problem = (more: object) => ({ ...refused, body: { ...PROBLEM, ...more } })

it.each<[string, AnswerOverrides]>([
  ['as declared', {}],
  ['without a body', { status: 304, headers: { 'content-type': '' }, body: '' }],
  ['that is one of the problems of its operation', refused],
  ['to HEAD, without a body', { method: 'HEAD', body: '' }],
  ['of a path that is not served', { ...problem({ code: 'not_found' }), target: '/nothing' }],
  [
    'to a method that is not allowed',
    { ...NOT_ALLOWED, headers: { ...refused.headers, allow: 'GET' } },
  ],
])('an answer %s conforms', (_, overrides) => {
  expect(checkAnswer(overrides)).toBeUndefined()
})

it.each<[string, AnswerOverrides, RegExp]>([
  ['with a status that is not declared', { status: 418 }, /has a status/],
  ['of another type', { headers: { 'content-type': 'text/html' } }, /is text\/html/],
  ['that is not JSON', { body: '{' }, /SyntaxError/],
  ['that lacks a member', transaction({ sync: undefined }), /required property 'sync'/],
  ['with a member that is not declared', transaction({ secret: 1 }), /additional properties/],
  [
    'with such a member further inside',
    transaction({ sync: { ...SYNC, x: 1 } }),
    /data\/sync must/,
  ],
  ['with a number for an amount', transaction({ paidAmount: 0 }), /paidAmount must be string/],
  ['with a null where none is allowed', transaction({ updatedAt: null }), /updatedAt must be/],
  ['with an invalid time', transaction({ updatedAt: 'now' }), /must match format/],
  ['with an unknown state', transaction({ state: 'lost' }), /state must be equal/],
  ['without a declared header', { without: 'etag' }, /^has no ETag$/],
  ['with a header that is not declared', { headers: { location: '/' } }, /^has Location, which/],
  ['with a problem of another operation', problem({ code: 'payment_not_found' }), /code/],
  ['with a problem of another status', problem({ status: 400 }), /status/],
  ['with an undeclared member of a problem', problem({ stack: 'x' }), /additional properties/],
  ['to a method that is not allowed, without Allow', NOT_ALLOWED, /has no Allow/],
  ['of a path that is not served, with success', { target: '/nothing' }, /success/],
])('an answer %s does not conform', (_, overrides, why) => {
  expect(checkAnswer(overrides)).toMatch(why)
})

it('the watch over every test detects an undeclared answer, whoever made the request, before its client sees it', async () => {
  await database.sql`
    insert into transactions (merchant_code, transaction_id) values ('UFLIYL', 'T-1')`
  const find = service.ctx.transactionLookups.add
  service.ctx.transactionLookups.add = async (...asked) => {
    const found = await find(...asked)
    return found.map(({ transaction, ...rest }) => ({
      ...rest,
      transaction: { ...transaction, paidAmount: 'much' },
    }))
  }
  const headers = { authorization: `Bearer ${KEY}` }
  // The framework looks up the key; the second read is served without the framework.
  for (const _ of ['framework', 'server']) {
    await fetch(`${service.url}/v1/transactions/T-1`, { headers })
    expect(await takeFaults()).toEqual([
      expect.stringMatching(/^200 of GET \/v1\/transactions\/T-1 data\/paidAmount must match/),
    ])
  }
  service.ctx.transactionLookups.add = find
  await fetch(`${service.url}/v1/transactions/T-1`, { headers })
  expect(await takeFaults()).toEqual([])
})
