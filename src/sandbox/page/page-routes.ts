import { Hono } from 'hono'
import { secureHeaders } from 'hono/secure-headers'
import { z } from 'zod'
import { BASE_STYLE } from '../../platform/html/style.ts'
import { findMerchant } from '../control/find-objects.ts'
import { requireSameOrigin } from '../control/require-same-origin.ts'
import { ControlError, positiveAmount } from '../control-input.ts'
import { sendPaymentIpn } from '../ipn/send-ipn.ts'
import { addTransaction } from '../paygate/transactions.ts'
import type { SandboxState } from '../state.ts'
import { METHODS, renderPage, STATUSES } from './render-page.tsx'
import { runAction } from './run-action.ts'

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
