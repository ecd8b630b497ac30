import { Hono } from 'hono'
import { ControlError, readInput } from '../control-input.ts'
import { faultInput } from '../faults/take-fault.ts'
import { sendPaymentIpn } from '../ipn/send-ipn.ts'
import { listEntries } from '../journal.ts'
import type { SandboxState } from '../state.ts'
import { makeCardControlRoutes } from './card-routes.ts'
import { makePaymentControlRoutes } from './payment-routes.ts'
import { makeRefundControlRoutes } from './refund-routes.ts'
import { respondJson } from './respond-json.ts'
import { seedInput, seedSandbox } from './seed-sandbox.ts'

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
