import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { movePayments } from '../../../src/transactions/move-payments.ts'
import { readPage, withKey } from '../../support/api.ts'
import { computeShownHmac } from '../../support/body-hmac.ts'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import { type LabPayment, makeDue, RESEND_MS, RESOLVE_MS } from '../../support/refund-lab.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'
import { passSending } from '../pass-sending.ts'

const PAYMENTS = 'key-that-reads-payments-only-0123456789'

const lab = useFreshLab()
const operator = usePerson(lab)
beforeAll(() => addKey(lab.database, PAYMENTS, ['payments:read']))

const Calls = z.object({
  data: z.array(
    z.object({
      ...{ requestId: z.string().nullish(), rawBodySha256: z.string(), params: z.unknown() },
    }),
  ),
})

async function readCall(refundId: string) {
  const { data } = Calls.parse(await lab.control('GET', '/calls?command=REFUND'))
  const found = data.find(({ requestId }) => requestId === refundId)
  return { hmac: computeShownHmac(lab.service, found?.rawBodySha256), params: found?.params }
}

/** A refund that was sent, and whose success was notified, and nothing else. */
async function makeEnded({
  payment,
  amount = '30',
}: {
  payment?: LabPayment
  amount?: string
} = {}) {
  const of = payment ?? (await lab.open())
  const { body } = await lab.refund(of.id, { amount, reason: 'returned goods' })
  await lab.pass(of)
  await lab.passNotified(of, body.id, amount)
  return { payment: of, id: body.id, body }
}

describe('the proof of a refund', () => {
  it('shows who requested it and why, the bytes, the answer, the snapshot before, and the notification', async () => {
    const { payment, id, body } = await makeEnded()
    const proof = await lab.proof(id)
    expect(proof).toMatchObject({
      ...{ requestId: id, requestedBy: 'first', requestedAt: body.requestedAt },
      ...{ reason: 'returned goods', discrepancies: [] },
    })
    const listed = { id: payment.id, status: 'SUCCESS', amount: '100', refundedAmount: '0' }
    expect(proof.attempts).toMatchObject([
      {
        bodyHmac: (await readCall(id)).hmac,
        ...{ outcome: 'answered', code: '0', httpStatus: 200 },
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
    const { payment, refundId } = await lab.openInferred('acceptThenReset')
    const { attempts, transitions } = await lab.proof(refundId)
    expect(attempts).toMatchObject([{ outcome: 'unknown', code: null, httpStatus: null }])
    expect(attempts[0]?.message).not.toBe('')
    const silence = transitions.find(({ to }) => to === 'unknown')
    expect(silence?.cause).toContain(`no valid answer: ${attempts[0]?.message}`)
    const end = transitions.at(-1)
    expect(end).toMatchObject({ from: 'unknown', to: 'succeeded', notification: null })
    expect(end?.cause).toContain('grew to 30')
    expect(end?.snapshot).toMatchObject({ payments: [{ id: payment.id, refundedAmount: '30' }] })
  })

  it('shows a refusal with the code and the message of the gateway', async () => {
    const { refundId } = await lab.openSent('code', { code: 33 })
    const { attempts, transitions } = await lab.proof(refundId)
    expect(attempts).toMatchObject([{ outcome: 'rejected', code: '33', httpStatus: 200 }])
    expect(attempts[0]?.message).not.toBe('')
    expect(transitions.at(-1)?.cause).toContain('code 33')
  })

  it('is not part of a response unless requested', async () => {
    const { refundId } = await lab.openAsked()
    expect(await lab.readRefund(refundId)).not.toHaveProperty('proof')
    expect((await lab.api(`/v1/refunds/${refundId}?include=all`)).status).toBe(422)
  })

  it('contains nothing of another refund of the same payment', async () => {
    const one = await makeEnded()
    const two = await makeEnded({ payment: one.payment, amount: '40' })
    for (const { id } of [one, two]) {
      const { attempts, transitions } = await lab.proof(id)
      expect(attempts).toMatchObject([{ bodyHmac: (await readCall(id)).hmac }])
      expect(transitions.filter(({ to }) => to === 'succeeded')).toHaveLength(1)
    }
  })
})

describe('the refunded amount in the proof speaks against a success', () => {
  const UNANSWERED = 'no answer about the payment has come since it was sent'

  const readGrowth = async (refundId: string) => {
    const { indications } = await lab.proof(refundId)
    const growth = indications.find(({ kind }) => kind === 'growth')
    return [growth?.supports, growth?.text.includes(UNANSWERED)]
  }

  it('only once an answer has come since the refund was sent', async () => {
    const { payment, refundId } = await lab.openSent('acceptThenReset')
    expect(await readGrowth(refundId)).toEqual(['neither', true])
    await lab.pass(payment)
    expect(await readGrowth(refundId)).toEqual(['failed', false])
  })

  it('only once an answer has come since it was sent again, whatever the clock says of the time', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await lab.pass(payment)
    await lab.age(refundId, RESEND_MS)
    await lab.fault('acceptThenReset')
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ status: 'unknown', attempts: 2 })
    await lab.age(refundId, RESEND_MS)
    expect(await readGrowth(refundId)).toEqual(['neither', true])
    await lab.database.sql`delete from gateway_calls`
    await lab.database.sql`update refunds set last_sent_at = now()`
    expect(await readGrowth(refundId)).toEqual(['neither', true])
    await lab.pass(payment)
    expect(await readGrowth(refundId)).toEqual(['failed', false])
  })

  it('also where a later attempt wrote nothing, of which it says so', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await lab.pass(payment)
    await lab.age(refundId, RESEND_MS)
    const refuse = async () => ({ kind: 'unavailable', reason: 'ECONNREFUSED' }) as const
    await makeDue(lab, payment)
    await passSending(lab, payment, refuse)
    const { attempts, indications } = await lab.proof(refundId)
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['unknown', 'unavailable'])
    expect(await readGrowth(refundId)).toEqual(['failed', false])
    const answers = indications.filter(({ kind }) => kind === 'answer')
    expect(answers.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^no answer: /),
      'not sent: ECONNREFUSED',
    ])
  })

  it('not while another refund that came back may hide its growth', async () => {
    const { payment, refundId: first } = await lab.openMatched()
    await done(operator.decide(first, 'returned'))
    await lab.fault('acceptThenReset')
    const refundId = await lab.send(payment, '30')
    await lab.pass(payment)
    expect(await readGrowth(refundId)).toEqual(['neither', false])
    await lab.database.sql`update refunds set return_sightings = 2 where refund_id = ${first}`
    expect(await readGrowth(refundId)).toEqual(['neither', false])
    await lab.database.sql`update refunds set return_seen_at = now() where refund_id = ${first}`
    expect(await readGrowth(refundId)).toEqual(['failed', false])
  })

  it('not by an answer whose lower amount does not count yet', async () => {
    const { payment, refundId } = await lab.openSent('acceptThenReset')
    await lab.passShowing(payment, '20')
    expect(await readGrowth(refundId)).toEqual(['failed', false])
    await lab.passShowing(payment, '10')
    expect(await readGrowth(refundId)).toEqual(['neither', false])
  })
})

/** Answers list the payment under the transaction of another one, and no longer under its own. */
async function moveTo(payment: LabPayment): Promise<LabPayment> {
  const { merchantCode } = MERCHANT
  const { sql } = lab.database
  const { transactionId } = await lab.open()
  await sql`update payments set missing = true where payment_id = ${payment.id}`
  const to = { merchantCode, transactionId }
  await runInTransaction(sql, (tx) => movePayments(tx, to, [payment.id], [payment.transactionId]))
  return { ...payment, transactionId }
}

it('the proof of a refund whose payment has moved keeps its steps and discrepancies, and a decision resolves them', async () => {
  const { payment, refundId } = await lab.openSent()
  await lab.age(refundId, RESOLVE_MS)
  await lab.pass(payment)
  const before = await lab.proof(refundId)
  expect(before.transitions).toHaveLength(3)
  expect(before.discrepancies).toMatchObject([{ kind: 'refund_without_end' }])
  await moveTo(await moveTo(payment))
  const after = await lab.proof(refundId)
  expect(after.transitions).toEqual(before.transitions)
  expect(after.discrepancies[0]).toEqual(before.discrepancies[0])
  await done(operator.decide(refundId, 'failed', AGAINST))
  const open = await lab.database.sql`
    select from discrepancies where kind = 'refund_without_end' and resolved_at is null`
  expect(open).toHaveLength(0)
})

it("a timeline shows a refund's steps in their order to a key with refunds:read, and to no other", async () => {
  const { payment, id } = await makeEnded()
  const all = await lab.timeline(payment)
  const steps = all.filter(({ refundId }) => refundId === id)
  expect(steps.filter(({ type }) => type === 'change').map(({ after }) => after)).toEqual([
    ...['pending', 'sending', 'accepted', 'succeeded'],
  ])
  const attempt = steps.find(({ type }) => type === 'refund_attempt')
  const bodyHmac = (await readCall(id)).hmac
  expect(attempt).toMatchObject({ outcome: 'answered', code: '0', bodyHmac })
  expect(all.filter(({ kind }) => kind === 'refund')).toMatchObject([
    { type: 'ipn', requestId: id, paymentId: payment.id, code: '0', amount: '30' },
  ])
  const path = `/v1/transactions/${payment.transactionId}/timeline`
  const { data: few } = await readPage(await lab.api(path, withKey(PAYMENTS)))
  expect(few.length).toBeGreaterThan(0)
  expect(JSON.stringify(few)).not.toContain(id)
  expect(few.some(({ kind, type }) => kind === 'refund' || type === 'refund_attempt')).toBe(false)
})

it('the hash in the proof is made of the bytes sent, and no plain hash of them is shown', async () => {
  const payment = await lab.open()
  await lab.database.sql`update transactions set currency = 'USD'`
  const { id } = await makeEnded({ payment, amount: '12.50' })
  const { attempts } = await lab.proof(id)
  const sent = JSON.stringify((await readCall(id)).params)
  expect(sent).toContain('"svc_Amount":12.5')
  const hash = createHash('sha256').update(sent).digest('hex')
  expect(attempts[0]?.bodyHmac).toBe(computeShownHmac(lab.service, hash))
  const timeline = JSON.stringify(await lab.timeline(payment))
  expect(timeline + JSON.stringify(attempts)).not.toContain(hash)
})
