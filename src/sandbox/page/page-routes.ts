import { Hono } from 'hono'
import { secureHeaders } from 'hono/secure-headers'
import { z } from 'zod'
import { findMerchant } from '../control/find-objects.ts'
import { requireSameOrigin } from '../control/require-same-origin.ts'
import { positiveAmount } from '../control-input.ts'
import { sendPaymentIpn } from '../ipn/send-ipn.ts'
import { addTransaction } from '../paygate/transactions.ts'
import type { SandboxState } from '../state.ts'
import { PAGE_STYLE } from './page-style.ts'
import { METHODS, renderPage, STATUSES } from './render-page.ts'

/** How long the form waits for the first delivery attempt, so that the page can show its outcome. */
const DELIVERY_WAIT_MS = 2_000

const paymentForm = z.object({
  amount: positiveAmount,
  paymentMethod: z.enum(METHODS),
  status: z.enum(STATUSES),
  merchantCode: z.string().optional(),
})

/** `same-origin`, because under `no-referrer` browsers send `Origin: null` with our own form. */
const headers = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    styleSrc: ["'self'"],
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

  app.get('/', headers, (c) => {
    c.header('cache-control', 'no-store')
    return c.html(renderPage(state, { made: c.req.query('made') }))
  })

  app.get('/style.css', (c) =>
    c.body(PAGE_STYLE, 200, { 'content-type': 'text/css; charset=utf-8' }),
  )

  app.post('/', headers, requireSameOrigin, async (c) => {
    const given = await c.req.parseBody()
    const { data: input, error: invalid } = paymentForm.safeParse(given)
    if (invalid !== undefined) {
      const [issue] = invalid.issues
      const error = `${issue?.path.join('.')}: ${issue?.message}`
      const amount = typeof given.amount === 'string' ? given.amount : ''
      return c.html(renderPage(state, { error, amount }), 422)
    }
    const { merchantCode, ...payment } = input
    const transaction = addTransaction(state, findMerchant(state, merchantCode), {
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
