import { Hono } from 'hono'
import type { z } from 'zod'
import { addAmounts, compareAmounts } from '../../money.ts'
import { ControlError, readInput } from '../control-input.ts'
import { sendPaymentIpn } from '../ipn.ts'
import { refundAtPortal } from '../paygate/refunds.ts'
import {
  addTransaction,
  deliveryPlanInput,
  paymentChange,
  showPayment,
  showTransaction,
  transactionInput,
} from '../paygate/transactions.ts'
import type { SandboxState, SandboxTransaction } from '../state.ts'
import { findMerchant, findPayment, findTransaction, readKey, respondJson } from './requests.ts'

/** Control routes of transactions, their payments and their notifications. */
export function makePaymentControlRoutes(state: SandboxState): Hono {
  const app = new Hono()

  app.post('/transactions', async (c) => {
    const input = readInput(transactionInput, await c.req.text())
    refuseExcess(state, input.payments)
    const transaction = addTransaction(state, findMerchant(state, input.merchantCode), input)
    const refunded = refundEarly(state, transaction, input.payments)
    const plan = input.ipn
    state.background.run(async () => {
      await refunded
      if (plan !== false) await sendPaymentIpn(state, transaction, plan)
    })
    return respondJson(c, showTransaction(transaction), 201)
  })

  app.get('/transactions/:transactionId', (c) =>
    respondJson(c, showTransaction(findTransaction(state, readKey(c, 'transactionId')))),
  )

  app.post('/transactions/:transactionId/ipn', async (c) => {
    const transaction = findTransaction(state, readKey(c, 'transactionId'))
    const plan = readInput(deliveryPlanInput, await c.req.text())
    state.background.run(() => sendPaymentIpn(state, transaction, plan))
    return respondJson(c, showTransaction(transaction), 202)
  })

  app.patch('/payments/:paymentId', async (c) => {
    const payment = findPayment(state, readKey(c, 'paymentId'))
    const change = readInput(paymentChange, await c.req.text())
    Object.assign(payment, change)
    if (c.req.query('ipn') === 'true') {
      state.background.run(() => sendPaymentIpn(state, payment.transaction))
    }
    return respondJson(c, showPayment(payment))
  })

  return app
}

type MadePayments = z.output<typeof transactionInput>['payments']

/** @throws ControlError 409 when portal refunds exceed their payment, if the mode guards it */
function refuseExcess({ refundMode }: SandboxState, payments: MadePayments): void {
  if (!refundMode.guardsBalance) return
  for (const [index, { amount, portalRefunds = [] }] of payments.entries()) {
    const sum = addAmounts(portalRefunds.map((one) => one.amount))
    if (compareAmounts(sum, amount) <= 0) continue
    const path = `payments.${index}.portalRefunds`
    throw new ControlError(409, path, 'exceed the amount of the payment')
  }
}

/**
 * Makes the portal refunds of new payments.
 * @returns the first attempts to deliver their notifications
 */
function refundEarly(
  state: SandboxState,
  { payments }: SandboxTransaction,
  made: MadePayments,
): Promise<unknown> {
  const added = payments.slice(payments.length - made.length)
  const notified = added.flatMap((payment, index) =>
    (made[index]?.portalRefunds ?? []).map((one) => refundAtPortal(state, payment, one).notified),
  )
  return Promise.all(notified)
}
