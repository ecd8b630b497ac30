import { Hono } from 'hono'
import { z } from 'zod'
import { cardInput, putCard } from '../cards/make-cards.ts'
import { showCard } from '../cards/show-cards.ts'
import { expireTokens, tokenModeInput } from '../cards/tokens.ts'
import { ControlError, failureCode, jsonNumber, readInput } from '../control-input.ts'
import { faultInput } from '../faults.ts'
import { sendPaymentIpn, sendRefundIpn } from '../ipn.ts'
import { listEntries } from '../journal.ts'
import {
  describeOutcome,
  makeRefundMode,
  refundAtPortal,
  refundModeInput,
  settleRefund,
  showRefund,
} from '../paygate/refunds.ts'
import { deliveryPlanInput, portalRefundInput } from '../paygate/transactions.ts'
import type { SandboxState } from '../state.ts'
import { makePaymentControlRoutes } from './payment-routes.ts'
import {
  findMerchant,
  findOpenRefund,
  findPayment,
  findRefund,
  readKey,
  respondJson,
} from './requests.ts'
import { seedInput, seedSandbox } from './seed-sandbox.ts'

/** Control routes of virtual cards and their tokens. Responses never contain members of `raw`. */
export function makeCardControlRoutes(state: SandboxState): Hono {
  const app = new Hono()

  app.post('/cards', async (c) => {
    const input = readInput(cardInput, await c.req.text())
    const merchant = findMerchant(state, input.merchantCode)
    const { card, isNew } = putCard(state, merchant, input)
    return respondJson(c, showCard(merchant, { ...card, raw: {} }), isNew ? 201 : 200)
  })

  app.put('/token-mode', async (c) => {
    state.tokens.mode = readInput(tokenModeInput, await c.req.text())
    return respondJson(c, state.tokens.mode)
  })

  app.post('/tokens/expire', (c) => respondJson(c, { expired: expireTokens(state.tokens) }))

  return app
}

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

/**
 * The control routes under `/sandbox`. Refusals are `{path, message}`: 422 for invalid input, 404 for
 * an unknown id, 409 for a conflict with the state. An id in the path belongs to the account in
 * `?merchantCode=`, or to the first account that has it. No response waits for notifications.
 */
export function makeControlRoutes(state: SandboxState): Hono {
  const app = new Hono()
  app.onError((error, c) => {
    if (!(error instanceof ControlError)) throw error
    return respondJson(c, { path: error.path, message: error.message }, error.status)
  })
  app.route('/', makePaymentControlRoutes(state))
  app.route('/', makeRefundControlRoutes(state))
  app.route('/', makeCardControlRoutes(state))

  app.post('/faults', async (c) => {
    const fault = readInput(faultInput, await c.req.text())
    state.faults.push(fault)
    return respondJson(c, fault, 201)
  })

  app.delete('/faults', (c) => {
    state.faults.length = 0
    return c.body(null, 204)
  })

  app.get('/calls', (c) =>
    respondJson(c, { data: listEntries(state.journal, c.req.query('command')) }),
  )

  app.get('/ledger', (c) => respondJson(c, { data: state.ledger }))

  app.post('/seed', async (c) => {
    const input = readInput(seedInput, await c.req.text())
    const { population, transactions } = seedSandbox(state, input)
    const { ipn } = input
    if (ipn !== false) {
      for (const one of transactions) state.background.run(() => sendPaymentIpn(state, one, ipn))
    }
    return respondJson(c, population, 201)
  })

  return app
}
