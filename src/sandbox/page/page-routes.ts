import { Hono } from 'hono'
import { secureHeaders } from 'hono/secure-headers'
import { z } from 'zod'
import { BASE_STYLE } from '../../platform/html/style.ts'
import {
  findMerchant,
  findOpenRefund,
  findPayment,
  findTransaction,
  requireSameOrigin,
} from '../control/requests.ts'
import { ControlError, positiveAmount, readInput } from '../control-input.ts'
import { faultInput } from '../faults.ts'
import { sendPaymentIpn } from '../ipn.ts'
import { refundAtPortal, settleRefund } from '../paygate/refunds.ts'
import { addTransaction } from '../paygate/transactions.ts'
import type { SandboxState } from '../state.ts'
import { METHODS, renderPage, STATUSES } from './render-page.tsx'

const key = { id: z.string(), merchantCode: z.string() }

/** What the buttons of the page send, by the member `action`. */
const actionInput = z.discriminatedUnion('action', [
  z.object({ action: z.literal('refund'), ...key, amount: positiveAmount }),
  z.object({ action: z.literal('settle'), ...key, outcome: z.enum(['success', 'failure']) }),
  z.object({ action: z.literal('change'), ...key, status: z.enum(['SUCCESS', 'FAILED']) }),
  z.object({ action: z.literal('notify'), ...key }),
  z.object({
    action: z.literal('fault'),
    command: z.string(),
    kind: z.string(),
    times: z.string(),
  }),
  z.object({ action: z.literal('behave') }),
])

type Action = z.output<typeof actionInput>

/** The response code of a refund that a person lets fail. */
const FAILED = 1

/**
 * Does what a button of the page asks for. Notifications are sent in the background.
 * @returns what was done, for the page
 * @throws ControlError naming the invalid field, or an object that is unknown or has ended
 */
export function runAction(state: SandboxState, given: Record<string, unknown>): string {
  const { data: action, error } = actionInput.safeParse(given)
  if (action === undefined) {
    const [issue] = error.issues
    throw new ControlError(422, issue?.path.join('.') ?? '', issue?.message ?? 'invalid')
  }
  switch (action.action) {
    case 'fault':
      return addFault(state, action)
    case 'behave':
      state.faults.length = 0
      return 'The gateway behaves again.'
    default:
      return changeObject(state, action)
  }
}

function changeObject(
  state: SandboxState,
  action: Exclude<Action, { action: 'fault' | 'behave' }>,
): string {
  const { background } = state
  switch (action.action) {
    case 'refund': {
      const payment = findPayment(state, action)
      const input = { amount: action.amount }
      const { notified } = refundAtPortal(state, payment, input)
      background.run(() => notified)
      return `${action.amount} of payment ${payment.id} was refunded at the portal.`
    }
    case 'settle': {
      const refund = findOpenRefund(state, action)
      const code = action.outcome === 'failure' ? FAILED : undefined
      background.run(() => settleRefund(state, refund, code))
      return `Refund ${refund.requestId} ended: ${action.outcome}.`
    }
    case 'change': {
      const payment = findPayment(state, action)
      payment.status = action.status
      background.run(() => sendPaymentIpn(state, payment.transaction))
      return `Payment ${payment.id} is ${action.status}, and its notification is sent.`
    }
    case 'notify': {
      const transaction = findTransaction(state, action)
      background.run(() => sendPaymentIpn(state, transaction))
      return `The notification of ${transaction.transactionId} is sent again.`
    }
  }
}

function addFault(
  { faults }: SandboxState,
  { command, kind, times }: Extract<Action, { action: 'fault' }>,
): string {
  const number = times.trim() === '' ? {} : { times: Number(times) }
  const fault = readInput(faultInput, JSON.stringify({ command, kind, ...number }))
  faults.push(fault)
  const often = fault.times === undefined ? 'until the faults are cleared' : `${fault.times} times`
  return `${command} answers with the fault "${kind}" ${often}.`
}

/** How long the form waits for the first delivery attempt, so that the page can show its outcome. */
const DELIVERY_WAIT_MS = 2_000

/** Actions whose outcome can be shown after the redirect. */
const MAX_RECENT = 20

const paymentForm = z.object({
  amount: positiveAmount,
  orderId: z
    .string()
    .max(128)
    .transform((id) => id.trim() || undefined)
    .optional(),
  paymentMethod: z.enum(METHODS),
  status: z.enum(STATUSES),
  merchantCode: z.string().optional(),
})

/** `same-origin`, because under `no-referrer` browsers send `Origin: null` with our own form. */
const headers = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    styleSrc: ["'self'"],
    imgSrc: ['data:'],
    formAction: ["'self'"],
    baseUri: ["'none'"],
    frameAncestors: ["'none'"],
  },
  referrerPolicy: 'same-origin',
  strictTransportSecurity: false,
})

/** The start page: the gateway's records, its journal, and a form that makes a payment. */
export function makePageRoutes(state: SandboxState): Hono {
  const app = new Hono()
  // Only what was done here is shown, whatever a link to the page contains.
  const recent: string[] = []

  app.get('/', headers, (c) => {
    c.header('cache-control', 'no-store')
    const { made, done, still } = c.req.query()
    const known = done !== undefined && recent.includes(done) ? done : undefined
    return c.html(renderPage(state, { made, done: known, still: still !== undefined }))
  })

  app.post('/actions', headers, requireSameOrigin, async (c) => {
    try {
      const done = runAction(state, await c.req.parseBody())
      recent.push(done)
      if (recent.length > MAX_RECENT) recent.shift()
      return c.redirect(`/?done=${encodeURIComponent(done)}`, 303)
    } catch (error) {
      if (!(error instanceof ControlError)) throw error
      const text = `Nothing was done. ${error.path}: ${error.message}`
      return c.html(renderPage(state, { error: text, still: true }), error.status)
    }
  })

  app.get('/style.css', (c) =>
    c.body(BASE_STYLE, 200, { 'content-type': 'text/css; charset=utf-8' }),
  )

  app.post('/', headers, requireSameOrigin, async (c) => {
    const given = await c.req.parseBody()
    const { data: input, error: invalid } = paymentForm.safeParse(given)
    if (invalid !== undefined) {
      const [issue] = invalid.issues
      const error = `No payment was made. ${issue?.path.join('.')}: ${issue?.message}`
      const entered = { amount: asText(given.amount), orderId: asText(given.orderId) }
      return c.html(renderPage(state, { ...entered, error, still: true }), 422)
    }
    const { merchantCode, orderId, ...payment } = input
    const transaction = addTransaction(state, findMerchant(state, merchantCode), {
      orderId,
      currency: 'VND',
      payments: [payment],
    })
    const attempted = sendPaymentIpn(state, transaction)
    state.background.run(() => attempted)
    await Promise.race([attempted, state.background.wait(DELIVERY_WAIT_MS)])
    return c.redirect(`/?made=${encodeURIComponent(transaction.transactionId)}`, 303)
  })

  return app
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
