import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Payment } from '../../../src/payments/view.ts'
import { Refund } from '../../../src/refunds/view.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { expectInvalid, expectProblem, NO_IDS, readPage, withKey } from '../../support/api.ts'
import { ask, expectTaken, moveTo, payQuietly } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { PATIENT_REFUNDS } from '../../support/refunds.ts'
import { addKey } from '../../support/service.ts'
import { makeDueNow, readItem, syncAgain } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'

const OPERATOR = 'key-of-operations-only-01234567890123456'

/** Syncs run only when the test starts them. */
const rig = useRig({ settings: { ...PATIENT_REFUNDS, ROLE: 'web' } })
beforeAll(async () => {
  await addKey(rig.database, OPERATOR, ['ops'])
})
beforeEach(() => emptyTables(rig.database))

function resolve(refundId: string, body: unknown = { outcome: 'failed', reason: 'asked them' }) {
  return fetch(`${rig.service.url}/v1/refunds/${refundId}/resolution`, {
    method: 'POST',
    ...withKey(OPERATOR, { 'content-type': 'application/json' }),
    body: JSON.stringify(body),
  })
}

/** Makes a refund of 30 out of 100 whose outcome is unknown; `there` patches the payment at the gateway. */
async function makeDoubtful(there: { refundedAmount?: string } = {}) {
  const payment = await payQuietly(rig, { paymentMethod: 'CC' })
  const asked = await ask({ url: rig.service.url }, payment.id, { amount: '30' })
  const { id } = await expectTaken(asked)
  await moveTo(rig.database, id, 'needs_review')
  await rig.control('PATCH', `/payments/${payment.id}`, there)
  return { id, payment }
}

async function readOne(refundId: string, query = '') {
  return Refund.parse(await (await rig.api(`/v1/refunds/${refundId}${query}`)).json())
}

async function readLeft(paymentId: string): Promise<string> {
  return Payment.parse(await (await rig.api(`/v1/payments/${paymentId}`)).json()).refundableAmount
}

describe("a person's decision", () => {
  it('about a refund that does not exist is 404, whatever its id looks like', async () => {
    for (const id of NO_IDS) await expectProblem(await resolve(id), 404, 'refund_not_found')
  })

  it('is refused by the name of the member that is wrong', async () => {
    const { id } = await makeDoubtful()
    const wrong: [string, unknown][] = [
      ['reason', { outcome: 'failed' }],
      ['reason', { outcome: 'failed', reason: '  ' }],
      ['reason', { outcome: 'failed', reason: 'x'.repeat(501) }],
      ['reason', { outcome: 'failed', reason: 'a\u0000b' }],
      ['reason', { outcome: 'failed', reason: 'a\ud800' }],
      ['outcome', { outcome: 'accepted', reason: 'x' }],
      ['outcome', { reason: 'x' }],
      ['note', { outcome: 'failed', reason: 'x', note: 'y' }],
    ]
    for (const [field, body] of wrong) await expectInvalid(await resolve(id, body), field)
    expect((await readOne(id)).status).toBe('needs_review')
  })

  it('that it failed releases the amount, and is shown with its reason', async () => {
    const { id, payment } = await makeDoubtful()
    expect(await readLeft(payment.id)).toBe('70')
    const response = await resolve(id)
    expect(response.status).toBe(200)
    const refund = Refund.strict().parse(await response.json())
    const failure = { source: 'service', code: 'resolved', message: 'asked them' }
    expect(refund).toMatchObject({ id, status: 'failed', failure })
    expect(await readLeft(payment.id)).toBe('100')
    await expectTaken(await ask({ url: rig.service.url }, payment.id, { amount: '100' }))
  })

  it('that it succeeded is matched to a delta that was unmatched before', async () => {
    const { id, payment } = await makeDoubtful({ refundedAmount: '30' })
    await syncAgain(rig, payment.transactionId)
    expect(await readOne(id)).toMatchObject({ status: 'needs_review' })
    expect(await readLeft(payment.id)).toBe('40')
    await resolve(id, { outcome: 'succeeded', reason: 'on their statement' })
    await makeDueNow(rig, payment.transactionId)
    const before = await readItem(rig, payment.transactionId)
    expect(await syncDue(rig.service.ctx)).toBe(1)
    expect(await readLeft(payment.id)).toBe('70')
    expect((await readItem(rig, payment.transactionId)).version).toBe(before.version + 1)
  })

  it('is seen in proof and timeline with the name of the key and the reason', async () => {
    const { id, payment } = await makeDoubtful()
    await resolve(id, { outcome: 'failed', reason: 'confirmed by their support' })
    const cause = 'resolved with API key test: confirmed by their support'
    const { proof } = await readOne(id, '?include=proof')
    expect(proof?.transitions.at(-1)).toMatchObject({ from: 'needs_review', to: 'failed', cause })
    expect(proof?.evidence).toBe(cause)
    const path = `/v1/transactions/${payment.transactionId}/timeline`
    const { data } = await readPage(await rig.api(path))
    expect(data.at(-1)).toMatchObject({ type: 'change', refundId: id, after: 'failed', cause })
  })

  it('changes the version, and the next sync queries the gateway', async () => {
    const { id, payment } = await makeDoubtful()
    await rig.database.sql`update transactions set due_at = null`
    const before = await readItem(rig, payment.transactionId)
    await resolve(id)
    const after = await readItem(rig, payment.transactionId)
    expect(after.version).toBe(before.version + 1)
    expect(after.dueInMs).toBeLessThan(60_000)
  })
})
