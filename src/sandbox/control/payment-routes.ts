import { Hono } from 'hono'
import { readInput } from '../control-input.ts'
import { sendPaymentIpn } from '../ipn/send-ipn.ts'
import {
  addTransaction,
  deliveryPlanInput,
  paymentChange,
  showPayment,
  showTransaction,
  transactionInput,
} from '../paygate/transactions.ts'
import type { SandboxState } from '../state.ts'
import { findMerchant, findPayment, findTransaction } from './find-objects.ts'
import { respondJson } from './respond-json.ts'

/** Control routes of transactions, their payments and their notifications. */
export function makePaymentControlRoutes(state: SandboxState): Hono {
  const app = new Hono()

  app.post('/transactions', async (c) => {
    const input = readInput(transactionInput, await c.req.text())
    const transaction = addTransaction(state, findMerchant(state, input.merchantCode), input)
    if (input.ipn !== false) {
      const plan = input.ipn
      state.background.run(() => sendPaymentIpn(state, transaction, plan))
    }
    return respondJson(c, showTransaction(transaction), 201)
  })

  app.get('/transactions/:transactionId', (c) =>
    respondJson(c, showTransaction(findTransaction(state, c))),
  )

  app.post('/transactions/:transactionId/ipn', async (c) => {
    const transaction = findTransaction(state, c)
    const plan = readInput(deliveryPlanInput, await c.req.text())
    state.background.run(() => sendPaymentIpn(state, transaction, plan))
    return respondJson(c, showTransaction(transaction), 202)
  })

  app.patch('/payments/:paymentId', async (c) => {
    const payment = findPayment(state, c)
    const change = readInput(paymentChange, await c.req.text())
    Object.assign(payment, change)
    if (c.req.query('ipn') === 'true') {
      state.background.run(() => sendPaymentIpn(state, payment.transaction))
    }
    return respondJson(c, showPayment(payment))
  })

  return app
}
