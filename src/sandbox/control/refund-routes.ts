import { Hono } from 'hono'
import { z } from 'zod'
import { failureCode, jsonNumber, readInput } from '../control-input.ts'
import { sendRefundIpn } from '../ipn/send-ipn.ts'
import { makeRefundMode, refundModeInput } from '../paygate/refund-mode.ts'
import { describeOutcome, refundAtPortal, settleRefund, showRefund } from '../paygate/refunds.ts'
import { deliveryPlanInput, portalRefundInput } from '../paygate/transactions.ts'
import type { SandboxState } from '../state.ts'
import { findOpenRefund, findPayment, findRefund, readKey } from './find-objects.ts'
import { respondJson } from './respond-json.ts'

const settlementInput = z.strictObject({
  outcome: z.enum(['success', 'failure']),
  code: failureCode.default(1),
})
const notificationInput = deliveryPlanInput.extend({
  code: jsonNumber.pipe(z.number().int()).optional(),
  message: z.string().optional(),
})

/** Control routes of refunds. */
export function makeRefundControlRoutes(state: SandboxState): Hono {
  const app = new Hono()

  app.post('/payments/:paymentId/portal-refund', async (c) => {
    const payment = findPayment(state, readKey(c, 'paymentId'))
    const input = readInput(portalRefundInput, await c.req.text())
    const { refund, notified } = refundAtPortal(state, payment, input)
    state.background.run(() => notified)
    return respondJson(c, showRefund(refund), 201)
  })

  app.post('/refunds/:requestId/ipn', async (c) => {
    const { code, message, ...plan } = readInput(notificationInput, await c.req.text())
    const refund = findRefund(state, readKey(c, 'requestId'))
    const outcome = describeOutcome(code ?? (refund.status === 'failed' ? 1 : 0))
    const notified = { ...outcome, message: message ?? outcome.message }
    state.background.run(() => sendRefundIpn(state, refund, notified, plan))
    return respondJson(c, showRefund(refund), 202)
  })

  app.post('/refunds/:requestId/settle', async (c) => {
    const { outcome, code } = readInput(settlementInput, await c.req.text())
    const refund = findOpenRefund(state, readKey(c, 'requestId'))
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
