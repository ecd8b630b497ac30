import { expect } from 'vitest'
import type { GatewayOutcome } from '../../src/gateway/types.ts'
import { syncDue } from '../../src/sync/sync-due.ts'
import type { LabPayment, RefundLab } from '../support/refund-lab.ts'
import { changeLifecycle } from '../support/service.ts'

type Outcome = GatewayOutcome<string | undefined>

/**
 * Syncs the payment's transaction once.
 * @param send replaces the call that sends the refund; it gets a function that makes the real one
 */
export async function passSending(
  lab: RefundLab,
  { transactionId }: LabPayment,
  send: (sendNow: () => Promise<Outcome>) => Promise<Outcome>,
  givingUp = lab.service.ctx.lifecycle.givingUp,
): Promise<void> {
  const { ctx } = lab.service
  const gateway: typeof ctx.gateway = {
    ...ctx.gateway,
    prepareRefund(order) {
      const prepared = ctx.gateway.prepareRefund(order)
      const { bodyHmac } = prepared
      const record = { command: 'REFUND' as const, bodyHmac, durationMs: 0, httpStatus: undefined }
      return {
        ...prepared,
        send: async (...given) => {
          const outcome = await send(async () => (await prepared.send(...given)).outcome)
          return { outcome, record }
        },
      }
    },
  }
  await lab.database.sql`
    update transactions set due_at = now() - interval '1 s' where transaction_id = ${transactionId}`
  expect(await syncDue({ ...changeLifecycle(ctx, { givingUp }), gateway })).toBe(1)
}
