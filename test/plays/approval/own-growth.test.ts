import { describe, expect, it } from 'vitest'
import { reconcileUnqueried } from '../../../src/maintenance/rechecks.ts'
import { openIn } from '../../support/approvals.ts'
import { expectRefused } from '../../support/ask.ts'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab({
  settings: { REFUND_APPROVAL_ABOVE: 'VND:50', REFUND_APPROVAL_WITHIN_MS: '3600000' },
})
const other = usePerson(lab)

type Route = 'cancellation' | 'decline' | 'approval'
const end = (id: string, route: Route) => other.post(`refunds/${id}/${route}`)

const refuseGrowth = async (id: string, route: Route) =>
  await expectRefused(await end(id, route), 409, 'growth_may_be_its_own')

/** The amount of a refund that ends unsent: the larger one awaits approval. */
const AMOUNTS = { cancellation: '30', decline: '60' } as const
const ROUTES = ['cancellation', 'decline'] as const

/** A refund that was not sent from here, of a payment of 100 whose refunded amount has grown to this. */
async function makeGrown(amount: string, refundedAmount: string) {
  const payment = await openIn(lab, 'VND')
  const id = await lab.ask(payment, amount)
  await done(other.hold(`refund/${id}`))
  await lab.passShowing(payment, refundedAmount)
  expect(await lab.status(id)).toBe(amount === '60' ? 'awaiting_approval' : 'pending')
  return { payment, id }
}

describe('while growth of the payment may be the refund itself, sent by a row that was lost', () => {
  it.each(ROUTES)('its %s is refused, until a person has explained the growth', async (route) => {
    const amount = AMOUNTS[route]
    const { payment, id } = await makeGrown(amount, amount)
    const { detail } = await refuseGrowth(id, route)
    expect(detail).toContain(`${amount} of the refunded amount ${amount}`)
    expect(detail).toContain('resolve the discrepancy `unexplained_growth`')
    expect((await lab.row(id)).failureSource).toBeNull()
    await done(other.enterGrowth(payment))
    await done(end(id, route))
    expect(await lab.left(payment)).toBe(String(100 - Number(amount)))
  })

  it.each(ROUTES)(
    'its %s is refused, until a person has confirmed the refund that was inferred from the growth',
    async (route) => {
      const payment = await openIn(lab, 'VND', { amount: '200' })
      const amount = AMOUNTS[route]
      const inferred = await lab.send(payment, amount)
      if (route === 'decline') {
        await done(other.approve(inferred))
        await lab.pass(payment)
      }
      await lab.passShowing(payment, amount)
      await lab.expectRefund(inferred, 'succeeded', { inferred: true })
      const id = await lab.ask(payment, amount)
      await done(other.hold(`refund/${id}`))
      const { detail } = await refuseGrowth(id, route)
      expect(detail).toContain(`POST /v1/refunds/${inferred}/resolution`)
      expect(detail).not.toContain('unexplained_growth')
      await done(other.decide(inferred, 'succeeded'))
      await lab.pass(payment)
      await done(end(id, route))
    },
  )

  it.each(ROUTES)('its %s is possible where the growth is less than its amount', async (route) => {
    const { id } = await makeGrown(AMOUNTS[route], '29')
    await done(end(id, route))
  })
})

describe('a refund that nobody approved in time', () => {
  const HOUR_MS = 3_600_000
  const readCause = async (id: string) => {
    const { cause } = (await lab.proof(id)).transitions.at(-1) ?? {}
    return cause
  }

  it('goes to a person while growth may be its own, who may decide that it failed', async () => {
    const { payment, id } = await makeGrown('60', '60')
    await lab.ageRequest(id, HOUR_MS)
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(1)
    await lab.expectRefund(id, 'needs_review', { review: 'contradicted' })
    expect(await readCause(id)).toContain('may be this refund')
    expect(await lab.left(payment)).toBe('0')
    await done(other.decide(id, 'failed', AGAINST))
    expect(await lab.left(payment)).toBe('40')
  })

  it.each([
    ['is gone', (payment: LabPayment) => lab.lose(payment)],
    [
      'is left out of one answer',
      async (payment: LabPayment) => {
        await lab.change(payment, { listed: false })
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
    await lab.ageRequest(id, HOUR_MS)
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(1)
    await lab.expectRefund(id, 'needs_review', { review: 'contradicted' })
    expect(await readCause(id)).toContain('does not list its payment')
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(0)
  })

  it('fails where the growth is less than its amount', async () => {
    const { id } = await makeGrown('60', '59')
    await lab.ageRequest(id, HOUR_MS)
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(1)
    await lab.expectRefund(id, 'failed', { failureReason: 'approval_expired' })
  })
})

it('a notification whose request id is written in upper case counts as one of the refund in the proof', async () => {
  const payment = await openIn(lab, 'VND')
  const id = await lab.ask(payment, '30')
  await lab.notify(payment, id, '30', { requestId: id.toUpperCase() })
  const { indications } = await lab.proof(id)
  const told = { kind: 'notification', supports: 'succeeded' }
  expect(indications).toContainEqual(expect.objectContaining(told))
})
