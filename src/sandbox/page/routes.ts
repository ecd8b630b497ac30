import { Hono } from 'hono'
import { secureHeaders } from 'hono/secure-headers'
import { z } from 'zod'
import { findBook } from '../control/find.ts'
import { requireSameOrigin } from '../control/same-origin.ts'
import { readPositiveAmount } from '../input.ts'
import { notifyPayment } from '../ipn/notices.ts'
import { addTransaction } from '../paygate/transactions.ts'
import type { SandboxState } from '../state.ts'
import { PAGE_STYLE } from './style.ts'
import { METHODS, STATUSES, showPage } from './view.ts'

/** How long the form waits for the notification to be answered, so that the page can tell. */
const TELL_WITHIN_MS = 2_000

const form = z.object({
  amount: readPositiveAmount,
  paymentMethod: z.enum(METHODS),
  status: z.enum(STATUSES),
  merchantCode: z.string().optional(),
})

/** With the policy `no-referrer` a browser would say `Origin: null` about our own form. */
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

/** The start page for people: what the gateway holds, what it did, and a form that makes a payment. */
export function makePageRoutes(state: SandboxState): Hono {
  const app = new Hono()

  app.get('/', headers, (c) => {
    c.header('cache-control', 'no-store')
    return c.html(showPage(state, { made: c.req.query('made') }))
  })

  app.get('/style.css', (c) =>
    c.body(PAGE_STYLE, 200, { 'content-type': 'text/css; charset=utf-8' }),
  )

  app.post('/', headers, requireSameOrigin, async (c) => {
    const given = await c.req.parseBody()
    const { data: input, error } = form.safeParse(given)
    if (error !== undefined) {
      const [issue] = error.issues
      const wrong = `${issue?.path.join('.')}: ${issue?.message}`
      const amount = typeof given.amount === 'string' ? given.amount : ''
      return c.html(showPage(state, { wrong, amount }), 422)
    }
    const { merchantCode, ...payment } = input
    const transaction = addTransaction(state, findBook(state, merchantCode), {
      currency: 'VND',
      payments: [payment],
    })
    const told = notifyPayment(state, transaction)
    state.background.run(() => told)
    await Promise.race([told, state.background.wait(TELL_WITHIN_MS)])
    return c.redirect(`/?made=${encodeURIComponent(transaction.transactionId)}`, 303)
  })

  return app
}
