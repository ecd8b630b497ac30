import { expect } from 'vitest'
import type { Service } from '../../src/service.ts'
import { syncDue } from '../../src/sync/sync-due.ts'
import { type LabPayment, makeDue, type RefundLab } from './refund-lab.ts'

/** A sync that has the gateway's answer in its hands. */
export type HeldPass = {
  /** Lets it go on with the answer; resolves when the sync is done. */
  finish(): Promise<void>
}

/** As `beginSync`, of this payment's transaction. */
export async function beginPass(
  lab: Pick<RefundLab, 'database' | 'service'>,
  payment: LabPayment,
  held: 'QUERY_PT' | 'REFUND',
): Promise<HeldPass> {
  await makeDue(lab, payment)
  return await beginSync(lab.service, held)
}

/**
 * Starts a sync of the one transaction that is due, and holds the answer to its query or to its refund: it was given, and
 * the process does not know it yet.
 */
export async function beginSync({ ctx }: Service, held: 'QUERY_PT' | 'REFUND'): Promise<HeldPass> {
  let tellAnswered = () => {}
  let release = () => {}
  const answered = new Promise<void>((resolve) => {
    tellAnswered = resolve
  })
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const hold = async <T>(answer: Promise<T>): Promise<T> => {
    const known = await answer
    tellAnswered()
    await released
    return known
  }
  const gateway: typeof ctx.gateway = {
    ...ctx.gateway,
    queryPayments(...given) {
      const answer = ctx.gateway.queryPayments(...given)
      return held === 'QUERY_PT' ? hold(answer) : answer
    },
    prepareRefund(order) {
      const prepared = ctx.gateway.prepareRefund(order)
      return held === 'REFUND'
        ? { ...prepared, send: (...given) => hold(prepared.send(...given)) }
        : prepared
    },
  }
  const passing = syncDue({ ...ctx, gateway })
  const first = await Promise.race([answered, passing])
  expect(first, `the ${held} of the sync`).toBeUndefined()
  return {
    async finish() {
      release()
      expect(await passing).toBe(1)
    },
  }
}
