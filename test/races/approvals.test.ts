import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sql } from '../../src/platform/postgres/types.ts'
import { expectProblem, withKey } from '../support/api.ts'
import { addPrincipal, openIn, type TestKey } from '../support/approvals.ts'
import { ask, expectTaken } from '../support/ask.ts'
import { emptyTables } from '../support/database.ts'
import { atOnce } from '../support/locks.ts'
import type { LabPayment } from '../support/refund-lab.ts'
import { useRefundLab } from '../support/use-started.ts'

const lab = useRefundLab({
  settings: { REFUND_APPROVAL_ABOVE: 'VND:50', REFUND_APPROVAL_WITHIN_MS: '3600000' },
})
afterEach(() => emptyTables(lab.database))

let asker: TestKey
let approver: TestKey
beforeEach(async () => {
  asker = await addPrincipal(lab.database)
  approver = await addPrincipal(lab.database)
})

const call = (method: string, path: string, { key }: TestKey = approver) =>
  fetch(`${lab.service.url}/v1/${path}`, {
    method,
    ...withKey(key, { 'content-type': 'application/json' }),
    body: '{"reason":"ticket 4711"}',
  })

const decide = (id: string, step: 'approval' | 'decline' | 'cancellation', key?: TestKey) =>
  call('POST', `refunds/${id}/${step}`, key)

/** Requests a refund of 60 out of 100, which awaits approval. */
async function request(idempotencyKey?: string) {
  const payment = await openIn(lab, 'VND')
  const { url } = lab.service
  const asked = idempotencyKey === undefined ? { url } : { url, idempotencyKey }
  const taken = await ask({ ...asked, key: asker.key }, payment.id, { amount: '60' })
  return { payment, id: (await expectTaken(taken)).id }
}

const lock = (payment: LabPayment) => (held: Sql) =>
  held`select from payments where payment_id = ${payment.id} for update`

async function readSteps(id: string) {
  return await lab.database.sql`
    select before, after from changes where refund_id = ${id} and field = 'status' order by id`
}

describe('an approval at the same time as', () => {
  it.each([
    [['approval', 'cancellation']],
    [['cancellation', 'approval']],
    [['decline', 'cancellation']],
    [['cancellation', 'decline']],
    [['decline', 'approval']],
  ] as const)('%j: what is recorded first is done, the rest follows from it', async (steps) => {
    const { payment, id } = await request()
    const started = steps.map((step) => () => decide(id, step))
    const [first, second] = await atOnce(lab.database, lock(payment), started)
    expect(first?.status).toBe(200)
    const isBoth = steps[0] === 'approval'
    expect(second?.status).toBe(isBoth ? 200 : 409)
    const { status } = await lab.readRefund(id)
    expect(status).toBe('failed')
    expect(await readSteps(id)).toHaveLength(isBoth ? 3 : 2)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
    expect((await lab.payment(payment.id)).refundableAmount).toBe('100')
  })

  it('a hold of the payment: approved, and not sent until it is released', async () => {
    const { payment, id } = await request()
    expect((await call('PUT', `holds/payment/${payment.id}`)).status).toBe(200)
    expect((await decide(id, 'approval')).status).toBe(200)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
    expect((await call('DELETE', `holds/payment/${payment.id}`)).status).toBe(200)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
    expect(await lab.moved(payment.id)).toEqual([])
  })
})

describe('a refund that was not approved', () => {
  it.each(['cancellation', 'decline'] as const)(
    'is replayed as it is after its %s, and nothing is asked for again',
    async (step) => {
      const { payment, id } = await request(`after-${step}`)
      expect((await decide(id, step)).status).toBe(200)
      const again = { url: lab.service.url, key: asker.key, idempotencyKey: `after-${step}` }
      const response = await ask(again, payment.id, { amount: '60' })
      expect(await expectTaken(response, true)).toMatchObject({ id, status: 'failed' })
      await lab.pass(payment)
      expect(await lab.sent(id)).toBe(0)
    },
  )
})

describe('an approved refund', () => {
  it('of a key that is revoked is 401 for that key, and stays approved by it', async () => {
    const { payment, id } = await request()
    expect((await decide(id, 'approval')).status).toBe(200)
    const other = await request()
    await lab.database.sql`update actors set ended_at = now() where id = ${approver.id}`
    await expectProblem(await decide(other.id, 'approval'), 401, 'unauthenticated')
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
    expect((await lab.readRefund(id)).approval).toMatchObject({ by: approver.name })
  })

  it('is none if the key is revoked before the approval is recorded', async () => {
    const { payment, id } = await request()
    const [response] = await atOnce(lab.database, lock(payment), [
      () => decide(id, 'approval'),
      async () => {
        await lab.database.sql`update actors set ended_at = now() where id = ${approver.id}`
        return await decide(id, 'cancellation', asker)
      },
    ])
    if (!response) throw new Error('no answer')
    await expectProblem(response, 401, 'unauthenticated')
    expect((await lab.readRefund(id)).approval).toMatchObject({ decision: null })
  })
})
