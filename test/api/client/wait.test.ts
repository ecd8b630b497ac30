import {
  AbortError,
  type ClientOptions,
  ForbiddenError,
  NotFoundError,
  TimeoutError,
} from '@ipn-processor/client'
import { describe, expect, it } from 'vitest'
import { answerWith, connectFaulty } from '../../support/faulty-fetch.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig()

const connect = (options?: Partial<ClientOptions>) => connectFaulty(rig.service.url, options)

let orders = 0

/** Makes a payment in progress at the sandbox; it notifies the service unless `quiet`. */
async function beginToPay({ quiet = false } = {}) {
  orders += 1
  const [transactionId, id] = [`T-${orders}`, `P-${orders}`]
  await rig.control('POST', '/transactions', {
    transactionId,
    payments: [{ id, amount: '100', paymentMethod: 'CC', status: 'PROCESSING' }],
    ...(quiet ? { ipn: false } : {}),
  })
  const known = async () => (await rig.api(`/v1/payments/${id}`)).status === 200
  if (!quiet) await waitUntil(known, { what: `payment ${id}` })
  const finish = () => rig.control('PATCH', `/payments/${id}?ipn=true`, { status: 'SUCCESS' })
  return { transactionId, finish }
}

describe('a wait', () => {
  it('ends as soon as the transaction is final, with two requests', async () => {
    const { client, seen } = connect()
    const { transactionId, finish } = await beginToPay()
    const waiting = client.transactions.wait(transactionId)
    await waitUntil(() => seen.length === 2, { what: 'the second request' })
    await finish()
    expect(await waiting).toMatchObject({ transactionId, state: 'paid', final: true })
    expect(seen.map(({ url }) => url.searchParams.get('wait'))).toEqual([null, '25'])
  })

  it('ends with the first request if the condition is met', async () => {
    const { client, seen } = connect()
    const { transactionId, finish } = await beginToPay()
    await finish()
    await client.transactions.wait(transactionId)
    seen.length = 0
    await client.transactions.wait(transactionId, { until: ({ state }) => state === 'paid' })
    expect(seen).toHaveLength(1)
  })

  it('ends when a given function returns true, called only after changes', async () => {
    const { client, seen } = connect()
    const { transactionId, finish } = await beginToPay()
    await finish()
    const [payment] = (await client.transactions.wait(transactionId)).payments
    seen.length = 0
    const waiting = client.transactions.wait(transactionId, {
      until: ({ refundedAmount }) => refundedAmount === '40',
    })
    await waitUntil(() => seen.length === 2, { what: 'the second request' })
    expect(seen[1]?.headers.get('if-none-match')).toMatch(/^W\/"0\.\d+"$/)
    await rig.control('POST', `/payments/${payment?.id}/portal-refund`, { amount: '40' })
    expect(await waiting).toMatchObject({ state: 'partially_refunded' })
  })

  it('is held for longer than the time-out of other attempts', async () => {
    const { client, seen } = connect({ attemptTimeoutMs: 300 })
    const { transactionId, finish } = await beginToPay()
    const waiting = client.transactions.wait(transactionId)
    const isHeld = () => seen.at(-1)?.url.searchParams.get('wait') === '25'
    await waitUntil(isHeld, { what: 'a request that is held' })
    const [sent, since] = [seen.length, performance.now()]
    await waitUntil(() => performance.now() - since > 700, { what: 'the time-out of an attempt' })
    expect(seen).toHaveLength(sent)
    await finish()
    expect(await waiting).toMatchObject({ state: 'paid' })
  })

  it('can begin before the service knows the transaction', async () => {
    const { client, seen } = connect()
    const { transactionId, finish } = await beginToPay({ quiet: true })
    await expect(client.transactions.wait(transactionId)).rejects.toThrow(NotFoundError)
    const waiting = client.transactions.wait(transactionId, { untilKnown: true })
    await waitUntil(() => seen.length === 2, { what: 'a request that is held' })
    await finish()
    expect(await waiting).toMatchObject({ state: 'paid' })
    expect(seen.slice(1).every(({ url }) => url.searchParams.get('wait') === '25')).toBe(true)
  })

  it('ends at its time-out, for a transaction that is not final or not known', async () => {
    const { client } = connect()
    const { transactionId } = await beginToPay()
    const timeoutMs = 300
    const { transactions } = client
    await expect(transactions.wait(transactionId, { timeoutMs })).rejects.toThrow(TimeoutError)
    const options = { timeoutMs, untilKnown: true }
    await expect(transactions.wait('T-NOBODY', options)).rejects.toThrow(TimeoutError)
  })

  it('survives transient failures, whatever `retries` is, and ends with others', async () => {
    const { client, faults, seen } = connect({ retries: 0 })
    const { transactionId, finish } = await beginToPay()
    faults.push('refuse', answerWith(503, 'unavailable'), 'lose_answer')
    const waiting = client.transactions.wait(transactionId)
    await waitUntil(() => seen.length >= 4, { what: 'the faults are over' })
    await finish()
    expect(await waiting).toMatchObject({ state: 'paid' })
    faults.push(answerWith(403, 'scope_missing'), answerWith(404, 'merchant_not_found'))
    const { transactions } = client
    await expect(transactions.wait(transactionId)).rejects.toThrow(ForbiddenError)
    const options = { untilKnown: true }
    await expect(transactions.wait(transactionId, options)).rejects.toThrow(NotFoundError)
  })

  it('ends when its signal is aborted', async () => {
    const { client, seen } = connect()
    const { transactionId } = await beginToPay()
    const end = new AbortController()
    const waiting = client.transactions.wait(transactionId, { signal: end.signal })
    await waitUntil(() => seen.length === 2, { what: 'the second request' })
    end.abort()
    await expect(waiting).rejects.toThrow(AbortError)
  })

  it('slows down if requests are not held', async () => {
    const { client, faults, seen } = connect()
    const { transactionId } = await beginToPay()
    const etag = (await rig.api(`/v1/transactions/${transactionId}`)).headers.get('etag') ?? ''
    const unchanged = () => new Response(null, { status: 304, headers: { etag } })
    faults.push(...Array(1_000).fill(unchanged))
    const waiting = client.transactions.wait(transactionId, { timeoutMs: 1_000 })
    await expect(waiting).rejects.toThrow(TimeoutError)
    expect(seen.length).toBeLessThan(10)
  })
})

it('a wait for a refund is held and survives transient failures, too', async () => {
  const { client, faults, seen } = connect({ retries: 0 })
  const { transactionId, finish } = await beginToPay()
  await finish()
  const [payment] = (await client.transactions.wait(transactionId)).payments
  await rig.control('PUT', '/refund-mode', { settleMs: null })
  const { id } = await client.refunds.create(payment?.id ?? '', { amount: '40' })
  faults.push('refuse', answerWith(503, 'unavailable'))
  seen.length = 0
  const waiting = client.refunds.wait(id)
  await waitUntil(() => seen.length === 3, { what: 'the faults are over' })
  const open = async () => (await client.refunds.get(id)).status === 'accepted'
  await waitUntil(open, { what: 'the gateway has it' })
  await rig.control('POST', `/refunds/${id}/settle`, { outcome: 'success' })
  expect(await waiting).toMatchObject({ id, status: 'succeeded' })
  expect(seen[2]?.url.searchParams.get('wait')).toBe('25')
})
