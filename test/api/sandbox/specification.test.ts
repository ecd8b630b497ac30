import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { computeSecureHash, NotSignableError } from '../../../src/gateway/signature.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start.ts'
import { MERCHANT } from '../../support/service.ts'
import {
  FAILURE_CODES,
  fill,
  listWrong,
  METHODS,
  type Member,
  OPERATIONS,
  type Operation,
  PAYMENT,
  STATUSES,
  TRANSACTION,
} from '../../support/specification.ts'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await startSandbox({ accounts: [MERCHANT], refundMs: 5 })
  const payments = STATUSES.flatMap((status) =>
    METHODS.map((paymentMethod) => ({ amount: '100', status, paymentMethod })),
  )
  await control('/transactions', { transactionId: 'ALL', payments, ipn: false })
  await control('/transactions', {
    transactionId: TRANSACTION,
    payments: [{ id: PAYMENT, amount: '1000000', status: 'SUCCESS', paymentMethod: 'CC' }],
    ipn: false,
  })
})
afterAll(() => sandbox.stop())

async function control(path: string, body: object) {
  const response = await fetch(`${sandbox.url}/sandbox${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${path}: ${response.status}`)
}

type Params = Record<string, unknown>

/** The params with the right hash, or with zeros if they cannot be signed. */
function sign(params: Params, { hashExclude: exclude }: Operation): Params {
  const { svc_SecureHash: _, ...bare } = params
  try {
    const hash = computeSecureHash(bare, MERCHANT.secret, { prefix: 'svc', exclude })
    return { ...bare, svc_SecureHash: hash }
  } catch (error) {
    if (error instanceof NotSignableError) return { ...bare, svc_SecureHash: '0'.repeat(64) }
    throw error
  }
}

/** A request id of its own, so that no two requests of a refund meet. */
let requests = 0
function makeRequest(operation: Operation, changes: Params = {}): Params {
  requests += 1
  const params = fill(operation.request)
  if ('svc_RequestID' in params) params.svc_RequestID = `request-${requests}`
  return sign({ ...params, ...changes }, operation)
}

const Answer = z.record(z.string(), z.unknown())

async function send(params: Params, encoding: 'json' | 'form' = 'json') {
  const body = encoding === 'json' ? JSON.stringify(params) : toForm(params)
  const headers = encoding === 'json' ? { 'content-type': 'application/json' } : {}
  const url = `${sandbox.url}/api/v1/paygate/svcpay`
  const response = await fetch(url, { method: 'POST', headers, body })
  expect(response.status).toBe(200)
  return Answer.parse(await response.json())
}

function toForm(params: Params): URLSearchParams {
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) form.append(name, String(value))
  return form
}

const omit = (params: Params, name: string) =>
  Object.fromEntries(Object.entries(params).filter(([one]) => one !== name))

const typeOf = (value: unknown) => (Array.isArray(value) ? 'array' : typeof value)

function expectTable(value: unknown, table: readonly Member[]): void {
  const members = Object.entries(Answer.parse(value)).map(([name, one]) => [name, typeOf(one)])
  const wanted = table.map(({ name, type }) => [name, type])
  expect(Object.fromEntries(members)).toEqual(Object.fromEntries(wanted))
}

describe.each(OPERATIONS)('$command ($section)', (operation) => {
  const { request, response, data } = operation
  const required = request.filter(({ optional }) => !optional)

  it.each(['json', 'form'] as const)(
    'is answered as the tables specify, sent as %s',
    async (encoding) => {
      const answer = await send(makeRequest(operation), encoding)
      expect(answer.svc_ResponseCode).toBe(0)
      expectTable(answer, response)
      const found = answer.svc_ResponseData
      for (const entry of Array.isArray(found) ? found : [found]) expectTable(entry, data)
    },
  )

  it.each(required)('without $name is refused, and names it', async ({ name }) => {
    const missing = {
      svc_ResponseCode: 202,
      svc_ResponseMsg: `A required parameter is missing: ${name}`,
    }
    const signed = sign(omit(fill(request), name), operation)
    const without = name === 'svc_SecureHash' ? omit(signed, name) : signed
    for (const encoding of ['json', 'form'] as const) {
      const answer = await send(without, encoding)
      expect(answer).toMatchObject(missing)
      const isCommand = name === 'svc_Command'
      expectTable(
        answer,
        response.map((one) => (isCommand ? anyData(one) : one)),
      )
    }
    for (const nothing of [null, '']) {
      const given = { ...makeRequest(operation, { [name]: nothing }), [name]: nothing }
      expect(await send(given)).toMatchObject(missing)
    }
  })

  it.each(request)(
    'with $name of another type is refused, and names it',
    async ({ name, type }) => {
      for (const { value } of listWrong(type)) {
        const params = { ...makeRequest(operation, { [name]: value }), [name]: value }
        expect(await send(params)).toMatchObject({
          svc_ResponseCode: 202,
          svc_ResponseMsg: `A parameter has the wrong type: ${name} must be a ${type}`,
        })
      }
    },
  )

  it('parameters that no table lists are tolerated when they are signed', async () => {
    const more = makeRequest(operation, { svc_New: 'x', note: { any: 'thing' } })
    expect(await send(more)).toMatchObject({ svc_ResponseCode: 0 })
    expect(await send({ ...more, svc_New: 'y' })).toMatchObject({ svc_ResponseCode: 204 })
  })

  it('can be made to answer each code of a failure', async () => {
    for (const code of FAILURE_CODES) {
      await control('/faults', { command: operation.command, kind: 'code', code, times: 1 })
      const answer = await send(makeRequest(operation))
      expect(answer.svc_ResponseCode).toBe(code)
      expectTable(answer, response)
    }
  })
})

/** Where the command is not known, nor is the type of its data. */
function anyData(member: Member): Member {
  return member.name === 'svc_ResponseData' ? { ...member, type: 'object' } : member
}
