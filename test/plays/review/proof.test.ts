import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { Refund } from '../../../src/refunds/view.ts'
import { readPage, withKey } from '../../support/api.ts'
import { computeShownHmac } from '../../support/body-hmac.ts'
import { PATIENT_REFUNDS } from '../../support/refunds.ts'
import { addKey } from '../../support/service.ts'
import { useRefundRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PAYMENTS = 'key-that-reads-payments-only-0123456789'

// No query between the growth at the gateway and the notification of it: the evidence is always the latter.
const rarely = { REFUND_BACKOFF_MS: '60000', REFUND_BACKOFF_MAX_MS: '60000' }
const rig = useRefundRig({
  settings: { ...PATIENT_REFUNDS, ...rarely, REFUND_RESEND_AFTER_MS: '3600000' },
})
beforeAll(async () => {
  await addKey(rig.database, PAYMENTS, ['payments:read'])
})

const untilUnknown = (refundId: string) =>
  waitUntil(async () => (await rig.readRefund(refundId)).status === 'unknown', {
    what: `refund ${refundId} is unknown`,
  })

async function readProof(refundId: string) {
  const response = await rig.api(`/v1/refunds/${refundId}?include=proof`)
  const { proof } = Refund.strict().parse(await response.json())
  if (!proof) throw new Error('no proof')
  return proof
}

async function readCall(refundId: string): Promise<string> {
  const calls = await rig.control('GET', '/calls?command=REFUND')
  const { data } = calls as { data: { requestId: string; rawBodySha256: string }[] }
  const found = data.find(({ requestId }) => requestId === refundId)
  return computeShownHmac(rig.service, found?.rawBodySha256)
}

async function readTimeline(transactionId: string, key?: string) {
  const path = `${rig.service.url}/v1/transactions/${transactionId}/timeline`
  return (await readPage(await fetch(path, withKey(key)))).data
}

describe('the proof of a refund', () => {
  it('shows who requested it and why, the bytes, the answer, the snapshot before, and the notification', async () => {
    const payment = await rig.pay({ amount: '100' })
    const { body } = await rig.refund(payment.id, { amount: '30', reason: 'returned goods' })
    await rig.untilEnded(body.id)
    const proof = await readProof(body.id)
    expect(proof).toMatchObject({
      requestId: body.id,
      requestedBy: 'first',
      requestedAt: body.requestedAt,
      reason: 'returned goods',
      discrepancies: [],
    })
    const listed = { id: payment.id, status: 'SUCCESS', amount: '100', refundedAmount: '0' }
    expect(proof.attempts).toMatchObject([
      {
        bodyHmac: await readCall(body.id),
        outcome: 'answered',
        code: '0',
        httpStatus: 200,
        snapshotBefore: { payments: [listed] },
      },
    ])
    expect(proof.transitions.map(({ from, to }) => [from, to])).toEqual([
      [null, 'pending'],
      ['pending', 'sending'],
      ['sending', 'accepted'],
      ['accepted', 'succeeded'],
    ])
    const [asked, sending, accepted, succeeded] = proof.transitions
    expect(asked?.cause).toBe('requested with API key first: returned goods')
    expect(sending?.snapshot).toMatchObject({ payments: [listed] })
    expect(accepted?.cause).toContain('code 0')
    expect(succeeded).toMatchObject({
      cause: 'the gateway notified that the refund succeeded',
      notification: { deliveries: 1, signature: 'verified', code: '0' },
    })
    expect(proof.evidence).toBe(succeeded?.cause)
    expect(JSON.stringify(proof)).not.toMatch(/SecureHash|secret/i)
  })

  it('shows why there was no valid answer, and the delta it was inferred from', async () => {
    await rig.control('PUT', '/refund-mode', { ipn: 'never', guardsBalance: false, settleMs: 0 })
    await rig.control('POST', '/faults', { command: 'REFUND', kind: 'acceptThenReset', times: 1 })
    const payment = await rig.pay({ amount: '100' })
    const { body } = await rig.refund(payment.id, { amount: '30' })
    await untilUnknown(body.id)
    await rig.api(`/v1/transactions/${payment.transactionId}/sync`, { method: 'POST' })
    const ended = await rig.untilEnded(body.id)
    await rig.control('PUT', '/refund-mode', { guardsBalance: false, settleMs: 50 })
    expect(ended).toMatchObject({ status: 'succeeded', inferred: true })
    const proof = await readProof(body.id)
    expect(proof.attempts).toMatchObject([{ outcome: 'unknown', code: null, httpStatus: null }])
    expect(proof.attempts[0]?.message).not.toBe('')
    const silence = proof.transitions.find(({ to }) => to === 'unknown')
    expect(silence?.cause).toContain(`no valid answer: ${proof.attempts[0]?.message}`)
    const end = proof.transitions.at(-1)
    expect(end).toMatchObject({ from: 'unknown', to: 'succeeded', notification: null })
    expect(end?.cause).toContain('grew to 30')
    const grown = { id: payment.id, refundedAmount: '30' }
    expect(end?.snapshot).toMatchObject({ payments: [grown] })
  })

  it('shows a refusal with the code and the message of the gateway', async () => {
    await rig.control('POST', '/faults', { command: 'REFUND', kind: 'code', code: 33, times: 1 })
    const payment = await rig.pay({ amount: '100' })
    const { body } = await rig.refund(payment.id, { amount: '30' })
    await untilUnknown(body.id)
    const { attempts, transitions } = await readProof(body.id)
    expect(attempts).toMatchObject([{ outcome: 'rejected', code: '33', httpStatus: 200 }])
    expect(attempts[0]?.message).not.toBe('')
    expect(transitions.at(-1)?.cause).toContain('code 33')
  })

  it('is not part of a response unless requested', async () => {
    const payment = await rig.pay({ amount: '100' })
    const { body } = await rig.refund(payment.id, { amount: '30' })
    expect(await rig.readRefund(body.id)).not.toHaveProperty('proof')
    expect((await rig.api(`/v1/refunds/${body.id}?include=all`)).status).toBe(422)
  })

  it('contains nothing of another refund of the same payment', async () => {
    const payment = await rig.pay({ amount: '100' })
    const one = await rig.refund(payment.id, { amount: '30' })
    const two = await rig.refund(payment.id, { amount: '40' })
    for (const { body } of [one, two]) await rig.untilEnded(body.id)
    for (const { body } of [one, two]) {
      const { attempts, transitions } = await readProof(body.id)
      expect(attempts).toHaveLength(1)
      expect(attempts[0]?.bodyHmac).toBe(await readCall(body.id))
      expect(transitions.filter(({ to }) => to === 'succeeded')).toHaveLength(1)
    }
  })
})

it("a timeline shows a refund's steps in their order to a key with refunds:read, and to no other", async () => {
  const payment = await rig.pay({ amount: '100' })
  const { body } = await rig.refund(payment.id, { amount: '30', reason: 'returned goods' })
  await rig.untilEnded(body.id)
  const all = await readTimeline(payment.transactionId)
  const steps = all.filter(({ refundId }) => refundId === body.id)
  expect(steps.filter(({ type }) => type === 'change').map(({ after }) => after)).toEqual([
    'pending',
    'sending',
    'accepted',
    'succeeded',
  ])
  const attempt = steps.find(({ type }) => type === 'refund_attempt')
  expect(attempt).toMatchObject({ outcome: 'answered', code: '0' })
  expect(attempt?.bodyHmac).toBe(await readCall(body.id))
  const notified = all.filter(({ kind }) => kind === 'refund')
  expect(notified).toMatchObject([
    { type: 'ipn', requestId: body.id, paymentId: payment.id, code: '0', amount: '30' },
  ])
  const few = await readTimeline(payment.transactionId, PAYMENTS)
  expect(few.length).toBeGreaterThan(0)
  expect(JSON.stringify(few)).not.toContain(body.id)
  expect(few.some(({ kind, type }) => kind === 'refund' || type === 'refund_attempt')).toBe(false)
})

it('the hash in the proof is made of the bytes sent, and no plain hash of them is shown', async () => {
  const payment = await rig.pay({ amount: '100' })
  await rig.database.sql`update transactions set currency = 'USD'`
  const { body } = await rig.refund(payment.id, { amount: '12.50' })
  await rig.untilEnded(body.id)
  const { attempts } = await readProof(body.id)
  const calls = await rig.control('GET', '/calls?command=REFUND')
  const { data } = calls as { data: { requestId: string; params: Record<string, unknown> }[] }
  const params = data.find(({ requestId }) => requestId === body.id)?.params
  const sent = JSON.stringify(params)
  expect(sent).toContain('"svc_Amount":12.5')
  const hash = createHash('sha256').update(sent).digest('hex')
  expect(attempts[0]?.bodyHmac).toBe(computeShownHmac(rig.service, hash))
  const timeline = JSON.stringify(await readTimeline(payment.transactionId))
  expect(timeline + JSON.stringify(attempts)).not.toContain(hash)
})
