import { z } from 'zod'
import { countOrMs, failureCode, jsonNumber } from '../control-input.ts'
import type { Fault } from '../types.ts'

/** Default `delayMs` of kind `delay`: noticeable to a person, below all time-outs. */
const DELAY_MS = 1_000

/**
 * The body of `POST /sandbox/faults`. `apply-fault.ts` defines the effect of each kind on a request,
 * `ipn/deliver-ipn.ts` the effect on a notification.
 */
export const faultInput = z
  .strictObject({
    command: z.enum(['QUERY_PT', 'REFUND', 'cards', 'token', 'ipn', '*']),
    kind: z.enum([
      'delay',
      'http500',
      'reset',
      'garbage',
      'truncate',
      'acceptThenReset',
      'acceptThenHang',
      'acceptThenCode',
      'code',
    ]),
    times: countOrMs.pipe(z.number().min(1)).optional(),
    probability: jsonNumber.pipe(z.number().min(0).max(1)).default(1),
    delayMs: countOrMs.optional(),
    code: failureCode.default(1),
  })
  .refine(({ kind, delayMs }) => kind !== 'delay' || delayMs !== 0, {
    path: ['delayMs'],
    message: 'a delay needs delayMs above 0',
  })
  .transform(({ delayMs, ...fault }) => ({
    ...fault,
    delayMs: delayMs ?? (fault.kind === 'delay' ? DELAY_MS : 0),
  }))

/**
 * Returns the first fault, in the order they were added, that matches `command` and whose probability
 * is met. Decrements its `times` and removes it at zero.
 */
export function takeFault(
  faults: Fault[],
  command: string,
  random: () => number,
): Fault | undefined {
  const index = faults.findIndex(
    (fault) =>
      (fault.command === '*' || fault.command === command) &&
      (fault.probability === 1 || random() < fault.probability),
  )
  const fault = faults[index]
  if (fault?.times !== undefined) {
    fault.times -= 1
    if (fault.times === 0) faults.splice(index, 1)
  }
  return fault
}
