import { Hono } from 'hono'
import { z } from 'zod'
import { ControlError, failureCode, positiveAmount, readInput } from '../control-input.ts'
import { fitsBalance } from '../paygate/balance.ts'
import { makeRefundMode, refundModeInput } from '../paygate/refund-mode.ts'
import { openRefund, settleRefund, showRefund } from '../paygate/refunds.ts'
import { deliveryPlanInput } from '../paygate/transactions.ts'
import type { SandboxState } from '../state.ts'
import { findOpenRefund, findPayment } from './find-objects.ts'
import { respondJson } from './respond-json.ts'

const settlementInput = z.strictObject({
  outcome: z.enum(['success', 'failure']),
  code: failureCode.default(1),
})
/** Without `ipn` its notification follows the refund mode. */
const portalRefundInput = z.strictObject({
  amount: positiveAmount,
  ipn: z.union([deliveryPlanInput, z.literal(false)]).optional(),
})

/** Control routes of refunds. */
export function makeRefundControlRoutes(state: SandboxState): Hono {
  const app = new Hono()

  app.post('/payments/:paymentId/portal-refund', async (c) => {
    const payment = findPayment(state, c)
    const { amount, ipn } = readInput(portalRefundInput, await c.req.text())
    if (!fitsBalance(state, payment, amount)) {
      throw new ControlError(409, 'amount', 'exceeds the remaining balance of the payment')
    }
    const refund = openRefund(state, payment, amount)
    state.background.run(() => settleRefund(state, refund, undefined, ipn))
    return respondJson(c, showRefund(refund), 201)
  })

  app.post('/refunds/:requestId/settle', async (c) => {
    const { outcome, code } = readInput(settlementInput, await c.req.text())
    const refund = findOpenRefund(state, c)
    const failedWith = outcome === 'failure' ? code : undefined
    state.background.run(() => settleRefund(state, refund, failedWith))
    return respondJson(c, showRefund(refund))
  })

  app.put('/refund-mode', async (c) => {
    const input = readInput(refundModeInput, await c.req.text())
    state.refundMode = makeRefundMode(input, state.settings.refundMs)
    return respondJson(c, state.refundMode)
  })

  return app
}
