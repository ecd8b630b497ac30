import { describe, expect, it } from 'vitest'
import { makeClient, serve } from '../../support/gateway.ts'
import { MERCHANT } from '../../support/service.ts'
import {
  FAILURE_CODES,
  fill,
  listWrong,
  METHODS,
  type Member,
  OPERATIONS,
  type Operation,
  STATUSES,
} from './tables.ts'

type Answer = Record<string, unknown>

/** The client's verdict on an answer to the operation. */
async function call({ command }: Operation, answer: Answer) {
  const { url, seen } = await serve((response) => response.end(JSON.stringify(answer)))
  const { client } = makeClient(url)
  const { merchantCode } = MERCHANT
  const { outcome } =
    command === 'QUERY_PT'
      ? await client.queryPayments({ merchantCode, transactionId: 'T1' })
      : await client
          .prepareRefund({ merchantCode, refundId: 'R1', paymentId: '1', amount: '1' })
          .send()
  expect(seen).toHaveLength(1)
  return outcome
}

/** A right answer whose data is one entry, where it is a list. */
function makeAnswer(
  { response, data }: Operation,
  changes: Answer = {},
  entry: Answer = {},
): Answer {
  const filled = { ...fill(data), ...entry }
  const list = response.some(({ name, type }) => name === 'svc_ResponseData' && type === 'array')
  return { ...fill(response), svc_ResponseData: list ? [filled] : filled, ...changes }
}

const without = (answer: Answer, name: string) =>
  Object.fromEntries(Object.entries(answer).filter(([one]) => one !== name))

/** The expected outcome when this member of an answer is not as specified. */
function verdict({ name, tolerated, ofEntry }: Member) {
  if (tolerated) return { kind: 'answered' }
  if (!ofEntry) return { kind: 'unknown', reason: expect.stringContaining(name) }
  const unreadable = [{ reason: expect.stringContaining(name) }]
  return { kind: 'answered', value: { payments: [], unreadable } }
}

describe.each(OPERATIONS)('$command ($section)', (operation) => {
  const { response, data } = operation

  it('the right answer is one', async () => {
    expect(await call(operation, makeAnswer(operation))).toMatchObject({
      kind: 'answered',
      message: 'Success',
    })
  })

  describe.each(response)('$name of the answer', (member) => {
    const { name, type } = member

    it('left out', async () => {
      const answer = without(makeAnswer(operation), name)
      expect(await call(operation, answer)).toMatchObject(verdict(member))
    })

    it.each([{ value: null }, ...listWrong(type)])(
      `$value, which is no ${type}`,
      async ({ value }) => {
        const answer = makeAnswer(operation, { [name]: value })
        expect(await call(operation, answer)).toMatchObject(verdict(member))
      },
    )
  })

  describe.each(data)('$name of the data', (member) => {
    const { name, type } = member

    it('left out', async () => {
      const { svc_ResponseData: entry } = makeAnswer(operation)
      const rest = Array.isArray(entry) ? [without(fill(data), name)] : without(fill(data), name)
      const answer = makeAnswer(operation, { svc_ResponseData: rest })
      expect(await call(operation, answer)).toMatchObject(verdict(member))
    })

    it.each([{ value: null }, ...listWrong(type)])(
      `$value, which is no ${type}`,
      async ({ value }) => {
        const answer = makeAnswer(operation, {}, { [name]: value })
        expect(await call(operation, answer)).toMatchObject(verdict(member))
      },
    )
  })

  it.each(FAILURE_CODES)('the code %i is a refusal with its message', async (code) => {
    const refusal = { svc_ResponseCode: code, svc_ResponseMsg: 'no' }
    const expected = { kind: 'rejected', code: String(code), message: 'no' }
    expect(await call(operation, makeAnswer(operation, refusal))).toEqual(expected)
    expect(await call(operation, refusal)).toEqual(expected)
  })

  it('members that no table lists are tolerated, at the top and in the data', async () => {
    const answer = makeAnswer(operation, { svc_New: {}, note: null }, { extra: [1] })
    expect(await call(operation, answer)).toMatchObject({ kind: 'answered' })
  })
})

describe('QUERY_PT: every documented value of a payment is taken as it is', () => {
  const pairs = STATUSES.flatMap((status) =>
    METHODS.map((paymentMethod) => ({ status, paymentMethod })),
  )
  const [query] = OPERATIONS

  it.each(pairs)('$status $paymentMethod', async (given) => {
    if (!query) throw new Error('no operation')
    const outcome = await call(query, makeAnswer(query, {}, given))
    expect(outcome).toMatchObject({ kind: 'answered', value: { payments: [given] } })
  })
})

it('REFUND: an accepted refund carries the id, when there is one to read', async () => {
  const refund = OPERATIONS.find(({ command }) => command === 'REFUND')
  if (!refund) throw new Error('no operation')
  expect(await call(refund, makeAnswer(refund))).toMatchObject({ value: '5SYNM1OELUND' })
  const outcome = await call(refund, makeAnswer(refund, {}, { transId: 5 }))
  expect(outcome).toMatchObject({ kind: 'answered', value: '5' })
  const unread = await call(refund, makeAnswer(refund, {}, { transId: true }))
  expect(unread).toMatchObject({ kind: 'answered', value: undefined })
})
