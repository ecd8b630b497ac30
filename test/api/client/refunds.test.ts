import {
  ConflictError,
  ConnectionError,
  createClient,
  ExceedsRefundableError,
  ForbiddenError,
  IdempotencyKeyReusedError,
} from '@ipn-processor/client'
import { describe, expect, it } from 'vitest'
import { addPrincipal } from '../../support/approvals.ts'
import { MASKED, RECEIVER } from '../../support/ask.ts'
import { answerWith, catchError, connectFaulty } from '../../support/faulty-fetch.ts'
import { PATIENT_REFUNDS } from '../../support/refunds.ts'
import { useRefundRig } from '../../support/use-started.ts'

const rig = useRefundRig({
  settings: { ...PATIENT_REFUNDS, REFUND_APPROVAL_ABOVE: 'VND:1000000,USD:1000000' },
})

const connect = (options: { retries?: number } = {}) => connectFaulty(rig.service.url, options)

const pay = async (options?: Parameters<typeof rig.pay>[0]) => (await rig.pay(options)).id

describe('a refund', () => {
  it('whose response was lost twice is retried under its key and moves money once', async () => {
    const { client, faults, seen } = connect()
    const paymentId = await pay()
    faults.push('lose_answer', 'lose_answer')
    const refund = await client.refunds.create(paymentId, { amount: '40', reason: 'returned' })
    expect(refund).toMatchObject({ amount: '40', reason: 'returned', replayed: true })
    const keys = seen.map(({ headers }) => headers.get('idempotency-key'))
    expect(keys).toEqual(Array(3).fill(`"${refund.idempotencyKey}"`))
    expect(await client.refunds.wait(refund.id)).toMatchObject({ status: 'succeeded' })
    expect(await rig.moved(paymentId)).toEqual(['40'])
  })

  it.each([408, 429])('is retried after %i', async (status) => {
    const { client, faults, seen } = connect()
    faults.push(answerWith(status, 'in_passing'))
    const refund = await client.refunds.create(await pay(), { amount: '40' })
    expect(refund.replayed).toBe(false)
    expect(new Set(seen.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(1)
    expect(seen).toHaveLength(2)
  })

  it('that failed carries its key in the error: repeated under it, the money moves once', async () => {
    const { client, faults } = connect({ retries: 0 })
    const paymentId = await pay()
    faults.push('lose_answer')
    const lost = await catchError(client.refunds.create(paymentId, { amount: '40' }))
    if (!(lost instanceof ConnectionError)) throw lost
    const { idempotencyKey } = lost
    const again = await client.refunds.create(paymentId, { amount: '40' }, { idempotencyKey })
    expect(again).toMatchObject({ idempotencyKey, replayed: true })
    await rig.untilEnded(again.id)
    expect(await rig.moved(paymentId)).toEqual(['40'])
  })

  it('that is prepared can be stored as JSON and sent by another client', async () => {
    const { client, seen } = connect()
    const prepared = client.refunds.prepare(await pay(), { amount: '40' })
    expect(seen).toEqual([])
    const stored = JSON.parse(JSON.stringify(prepared))
    const first = await client.refunds.send(stored)
    expect(await connect().client.refunds.send(stored)).toMatchObject({
      id: first.id,
      idempotencyKey: prepared.idempotencyKey,
      replayed: true,
    })
  })

  it('is sent under exactly its key', async () => {
    const { client } = connect()
    const paymentId = await pay()
    for (const key of ['order 1', '"quoted"', 'back\\slash"', ' edges ']) {
      const one = await client.refunds.create(paymentId, { amount: '1' }, { idempotencyKey: key })
      const quoted = `"${key.replace(/["\\]/g, '\\$&')}"`
      expect((await rig.refund(paymentId, { amount: '1' }, quoted)).body.id).toBe(one.id)
      expect(one.idempotencyKey).toBe(key)
    }
  })

  it('keeps its exact amount, and has a proof on request', async () => {
    const { client } = connect()
    const paymentId = await pay({ amount: '20000.50', paymentMethod: 'QR' })
    await rig.database.sql`update transactions set currency = 'USD'`
    await rig.database.sql`update ipn_events set currency = 'USD'`
    const params = { amount: '10000.50', receiver: RECEIVER }
    const { id } = await client.refunds.create(paymentId, params)
    expect(await client.refunds.wait(id)).toMatchObject({ amount: '10000.50', receiver: MASKED })
    const { proof } = await client.refunds.get(id, { proof: true })
    expect(proof?.attempts).toHaveLength(1)
    expect((await client.refunds.get(id)).proof).toBeUndefined()
    expect(await client.refunds.list({ paymentId }).page()).toMatchObject({ data: [{ id }] })
  })
})

describe('a refund that awaits approval', () => {
  it('is approved or declined by another principal, and asked for on behalf of a person', async () => {
    const { client } = connect()
    const { key } = await addPrincipal(rig.database)
    const second = createClient({ baseUrl: rig.service.url, apiKey: key })
    const wish = { amount: '1000001', onBehalfOf: 'Tran Thi B' }
    const paymentId = await pay({ amount: '3000000' })
    const declined = await client.refunds.create(paymentId, wish)
    expect(declined).toMatchObject({ status: 'awaiting_approval', onBehalfOf: 'Tran Thi B' })
    expect(await second.refunds.decline(declined.id, 'not returned')).toMatchObject({
      status: 'failed',
      failure: { source: 'merchant', message: 'not returned' },
    })
    const approved = await client.refunds.create(paymentId, wish)
    const refusal = await catchError(client.refunds.approve(approved.id))
    expect(refusal).toBeInstanceOf(ForbiddenError)
    expect(refusal).toMatchObject({ code: 'same_person' })
    expect((await second.refunds.approve(approved.id)).approval?.decision).toBe('approved')
    expect(await client.refunds.wait(approved.id)).toMatchObject({ status: 'succeeded' })
    const late = await catchError(second.refunds.decline(approved.id))
    expect(late).toBeInstanceOf(ConflictError)
  })
})

describe('a refusal', () => {
  it('has the refundable amount and the key, and is not retried', async () => {
    const { client, seen } = connect()
    const refused = await catchError(client.refunds.create(await pay(), { amount: '101' }))
    if (!(refused instanceof ExceedsRefundableError)) throw refused
    expect(refused).toMatchObject({ status: 409, code: 'exceeds_refundable' })
    expect(refused.refundableAmount).toBe('100')
    expect(refused.idempotencyKey).toMatch(/^[\da-f-]{36}$/)
    expect(seen).toHaveLength(1)
  })

  it('of a key used for another refund has its own class', async () => {
    const { client } = connect()
    const paymentId = await pay()
    const options = { idempotencyKey: 'order-1' }
    await client.refunds.create(paymentId, { amount: '1' }, options)
    const refused = await catchError(client.refunds.create(paymentId, { amount: '2' }, options))
    expect(refused).toBeInstanceOf(IdempotencyKeyReusedError)
    expect(refused).toMatchObject(options)
  })

  it('of a key that no header can carry is thrown before anything is sent', async () => {
    const { client, seen } = connect()
    for (const idempotencyKey of ['', ' ', 'é', 'a\nb', 'x'.repeat(256)]) {
      await expect(client.refunds.create('P', {}, { idempotencyKey })).rejects.toThrow(TypeError)
    }
    expect(seen).toEqual([])
  })
})

it('a preview returns what would be sent and stores nothing', async () => {
  const { client } = connect()
  const paymentId = await pay()
  expect(await client.refunds.preview(paymentId, { amount: '40' })).toEqual({
    wouldSend: { amount: '40', currency: 'VND', paymentId },
    refundableAmount: '100',
    refundableAfter: '60',
    hints: [],
  })
  expect(await client.refunds.list({ paymentId }).page()).toEqual({ data: [], nextCursor: null })
})
