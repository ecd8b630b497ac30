import { beforeEach, describe, expect, it } from 'vitest'
import { reconcileUnqueried } from '../../../src/maintenance/rechecks.ts'
import { withKey } from '../../support/api.ts'
import { addPrincipal, openIn, type TestKey } from '../../support/approvals.ts'
import { expectRefused } from '../../support/ask.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab({
  settings: { REFUND_APPROVAL_ABOVE: 'VND:50', REFUND_APPROVAL_WITHIN_MS: '3600000' },
})

let other: TestKey
beforeEach(async () => {
  other = await addPrincipal(lab.database)
})

const post = (path: string, body: object) =>
  fetch(`${lab.service.url}/v1${path}`, {
    method: 'POST',
    ...withKey(other.key, { 'content-type': 'application/json' }),
    body: JSON.stringify({ reason: 'ticket 4711', ...body }),
  })

type Route = 'cancellation' | 'decline' | 'approval'
const end = (id: string, route: Route) => post(`/refunds/${id}/${route}`, {})

const refuseGrowth = async (id: string, route: Route) =>
  await expectRefused(await end(id, route), 409, 'growth_may_be_its_own')

/** The amount of a refund that ends unsent: the larger one awaits approval. */
const AMOUNTS = { cancellation: '30', decline: '60' } as const

/** Keeps a refund from being sent. */
async function holdBack(id: string): Promise<void> {
  await lab.api(`/v1/holds/refund/${id}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: '{"reason":"not yet"}',
  })
}

/** A refund that was not sent from here, of a payment of 100 whose refunded amount has grown to this. */
async function makeGrown(
  amount: string,
  refundedAmount: string,
): Promise<{ payment: LabPayment; id: string }> {
  const payment = await openIn(lab, 'VND')
  const id = await lab.ask(payment, amount)
  await holdBack(id)
  await lab.passShowing(payment, refundedAmount)
  expect(await lab.status(id)).toBe(amount === '60' ? 'awaiting_approval' : 'pending')
  return { payment, id }
}

async function explainGrowth(payment: LabPayment): Promise<void> {
  const [found] = await lab.database.sql<{ id: string }[]>`
    select id from discrepancies where payment_id = ${payment.id} and kind = 'unexplained_growth'`
  expect((await post(`/discrepancies/${found?.id}/resolution`, {})).status).toBe(200)
}

describe('while growth of the payment may be the refund itself, sent by a row that was lost', () => {
  it.each(['cancellation', 'decline'] as const)(
    'its %s is refused, until a person has explained the growth',
    async (route) => {
      const amount = AMOUNTS[route]
      const { payment, id } = await makeGrown(amount, amount)
      const { detail } = await refuseGrowth(id, route)
      expect(detail).toContain(`${amount} of the refunded amount ${amount}`)
      expect(detail).toContain('resolve the discrepancy `unexplained_growth`')
      expect((await lab.row(id)).failureSource).toBeNull()
      await explainGrowth(payment)
      expect((await end(id, route)).status).toBe(200)
      expect(await lab.left(payment)).toBe(String(100 - Number(amount)))
    },
  )

  it.each(['cancellation', 'decline'] as const)(
    'its %s is refused, until a person has confirmed the refund that was inferred from the growth',
    async (route) => {
      const payment = await openIn(lab, 'VND', { amount: '200' })
      const amount = AMOUNTS[route]
      const inferred = await lab.send(payment, amount)
      if (route === 'decline') {
        expect((await end(inferred, 'approval')).status).toBe(200)
        await lab.pass(payment)
      }
      await lab.passShowing(payment, amount)
      expect(await lab.row(inferred)).toMatchObject({ status: 'succeeded', inferred: true })
      const id = await lab.ask(payment, amount)
      await holdBack(id)
      const { detail } = await refuseGrowth(id, route)
      expect(detail).toContain(`POST /v1/refunds/${inferred}/resolution`)
      expect(detail).not.toContain('unexplained_growth')
      const confirmed = await post(`/refunds/${inferred}/resolution`, { outcome: 'succeeded' })
      expect(confirmed.status).toBe(200)
      await lab.pass(payment)
      expect((await end(id, route)).status).toBe(200)
    },
  )

  it.each(['cancellation', 'decline'] as const)(
    'its %s is possible where the growth is less than its amount',
    async (route) => {
      const { id } = await makeGrown(AMOUNTS[route], '29')
      expect((await end(id, route)).status).toBe(200)
    },
  )
})

describe('a refund that nobody approved in time', () => {
  const age = () =>
    lab.database.sql`update refunds set requested_at = requested_at - interval '1 hour'`

  it('goes to a person while growth may be its own, who may decide that it failed', async () => {
    const { payment, id } = await makeGrown('60', '60')
    await age()
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(1)
    expect(await lab.row(id)).toMatchObject({ status: 'needs_review', review: 'contradicted' })
    const [step] = await lab.database.sql`
      select cause from changes where refund_id = ${id} and after = 'needs_review'`
    expect(step?.cause).toContain('may be this refund')
    expect(await lab.left(payment)).toBe('0')
    const against = { outcome: 'failed', againstEvidence: true }
    expect((await post(`/refunds/${id}/resolution`, against)).status).toBe(200)
    expect(await lab.left(payment)).toBe('40')
  })

  it.each([
    ['is gone', (payment: LabPayment) => lab.lose(payment)],
    [
      'is left out of one answer',
      async (payment: LabPayment) => {
        await lab.control('PATCH', `/payments/${payment.id}`, { listed: false })
        await lab.pass(payment)
      },
    ],
    [
      'cannot be read',
      async (payment: LabPayment) => {
        await lab.database.sql`
          update payments set unreadable = true where payment_id = ${payment.id}`
      },
    ],
  ] as const)('goes to a person while its payment %s', async (_, spoil) => {
    const payment = await openIn(lab, 'VND')
    const id = await lab.ask(payment, '60')
    await spoil(payment)
    await age()
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(1)
    expect(await lab.row(id)).toMatchObject({ status: 'needs_review', review: 'contradicted' })
    const [step] = await lab.database.sql`
      select cause from changes where refund_id = ${id} and after = 'needs_review'`
    expect(step?.cause).toContain('does not list its payment')
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(0)
  })

  it('fails where the growth is less than its amount', async () => {
    const { id } = await makeGrown('60', '59')
    await age()
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(1)
    expect(await lab.row(id)).toMatchObject({ status: 'failed', failureReason: 'approval_expired' })
  })
})

describe('a notification whose request id is written in upper case', () => {
  it('keeps the refund from being cancelled', async () => {
    const payment = await openIn(lab, 'VND')
    const id = await lab.ask(payment, '30')
    await lab.notify(payment, id, '30', { requestId: id.toUpperCase() })
    await expectRefused(await end(id, 'cancellation'), 409, 'already_sent')
  })

  it('keeps it from being approved, declined or expired', async () => {
    const payment = await openIn(lab, 'VND')
    const id = await lab.ask(payment, '60')
    await lab.notify(payment, id, '60', { requestId: id.toUpperCase() })
    for (const route of ['approval', 'decline'] as const) {
      await expectRefused(await end(id, route), 409, 'not_awaiting_approval')
    }
    await lab.database.sql`update refunds set requested_at = requested_at - interval '1 hour'`
    await reconcileUnqueried(lab.service.ctx)
    expect(await lab.row(id)).toMatchObject({ status: 'succeeded', attempts: 0 })
  })

  it('counts as one of the refund in the proof', async () => {
    const payment = await openIn(lab, 'VND')
    const id = await lab.ask(payment, '30')
    await lab.notify(payment, id, '30', { requestId: id.toUpperCase() })
    const shown = await (await lab.api(`/v1/refunds/${id}?include=proof`)).text()
    expect(shown).toMatch(/"kind":"notification","at":"[^"]+","supports":"succeeded"/)
  })
})
