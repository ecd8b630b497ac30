import { Hono } from 'hono'
import { z } from 'zod'
import { faultInput } from '../faults/faults.ts'
import { ControlError, readCode, readInput, readPositiveAmount } from '../input.ts'
import { notifyPayment } from '../ipn/notices.ts'
import { listEntries } from '../journal.ts'
import { makeRefundMode, refundModeInput } from '../paygate/refund-mode.ts'
import { fitsBalance, openRefund, settleRefund, showRefund } from '../paygate/refunds.ts'
import {
  addTransaction,
  paymentChange,
  planInput,
  showPayment,
  showTransaction,
  transactionInput,
} from '../paygate/transactions.ts'
import type { SandboxState } from '../state.ts'
import { answerControl } from './answer.ts'
import { makeCardControl } from './card-routes.ts'
import { findBook, findOpenRefund, findPayment, findTransaction } from './find.ts'
import { seedInput, seedSandbox } from './seed.ts'

const settlement = z.strictObject({
  outcome: z.enum(['success', 'failure']),
  code: readCode.default(1),
})
const portalRefund = z.strictObject({ amount: readPositiveAmount })

/**
 * The control routes under `/sandbox`. Bad input gets 422, an unknown id 404, what the state forbids
 * 409, each as `{path, message}`. A path id means the first account that holds it, or the account
 * named by `?merchantCode=`. Notifications go out in the background, no answer waits for them.
 */
export function makeControlRoutes(state: SandboxState): Hono {
  const app = new Hono()
  app.route('/', makeCardControl(state))

  app.onError((error, c) => {
    if (!(error instanceof ControlError)) throw error
    return answerControl(c, { path: error.path, message: error.message }, error.status)
  })

  app.post('/transactions', async (c) => {
    const input = readInput(transactionInput, await c.req.text())
    const transaction = addTransaction(state, findBook(state, input.merchantCode), input)
    if (input.ipn !== false) {
      const plan = input.ipn
      state.background.run(() => notifyPayment(state, transaction, plan))
    }
    return answerControl(c, showTransaction(transaction), 201)
  })

  app.get('/transactions/:transactionId', (c) =>
    answerControl(c, showTransaction(findTransaction(state, c))),
  )

  app.post('/transactions/:transactionId/ipn', async (c) => {
    const transaction = findTransaction(state, c)
    const plan = readInput(planInput, await c.req.text())
    state.background.run(() => notifyPayment(state, transaction, plan))
    return answerControl(c, showTransaction(transaction), 202)
  })

  app.patch('/payments/:paymentId', async (c) => {
    const payment = findPayment(state, c)
    const change = readInput(paymentChange, await c.req.text())
    Object.assign(payment, change)
    if (c.req.query('ipn') === 'true') {
      state.background.run(() => notifyPayment(state, payment.transaction))
    }
    return answerControl(c, showPayment(payment))
  })

  app.post('/payments/:paymentId/portal-refund', async (c) => {
    const payment = findPayment(state, c)
    const { amount } = readInput(portalRefund, await c.req.text())
    if (!fitsBalance(state, payment, amount)) {
      throw new ControlError(409, 'amount', 'exceeds what is left of the payment')
    }
    const refund = openRefund(state, payment, amount)
    state.background.run(() => settleRefund(state, refund))
    return answerControl(c, showRefund(refund), 201)
  })

  app.post('/refunds/:requestId/settle', async (c) => {
    const { outcome, code } = readInput(settlement, await c.req.text())
    const refund = findOpenRefund(state, c)
    state.background.run(() =>
      settleRefund(state, refund, outcome === 'failure' ? code : undefined),
    )
    return answerControl(c, showRefund(refund))
  })

  app.put('/refund-mode', async (c) => {
    const input = readInput(refundModeInput, await c.req.text())
    state.refundMode = makeRefundMode(input, state.settings.refundMs)
    return answerControl(c, state.refundMode)
  })

  app.post('/faults', async (c) => {
    const fault = readInput(faultInput, await c.req.text())
    state.faults.push(fault)
    return answerControl(c, fault, 201)
  })

  app.delete('/faults', (c) => {
    state.faults.length = 0
    return c.body(null, 204)
  })

  app.get('/calls', (c) =>
    answerControl(c, { data: listEntries(state.journal, c.req.query('command')) }),
  )

  app.post('/seed', async (c) => {
    const input = readInput(seedInput, await c.req.text())
    const { population, transactions } = seedSandbox(state, input)
    const { ipn } = input
    if (ipn !== false) {
      for (const one of transactions) state.background.run(() => notifyPayment(state, one, ipn))
    }
    return answerControl(c, population, 201)
  })

  app.get('/ledger', (c) => answerControl(c, { data: state.ledger }))

  return app
}
