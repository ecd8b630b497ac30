import { z } from 'zod'
import { readCode, readCount, readNumber } from '../input.ts'

/** Of a `delay` that does not say how long: a person notices it, and no time-out is reached (ms). */
const DELAY_MS = 1_000

/** How a client sees each kind stands in `misbehave.ts`; what it does to a notification in `ipn/notify.ts`. */
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
    times: readCount.pipe(z.number().min(1)).optional(),
    probability: readNumber.pipe(z.number().min(0).max(1)).default(1),
    delayMs: readCount.optional(),
    code: readCode.default(1),
  })
  .refine(({ kind, delayMs }) => kind !== 'delay' || delayMs !== 0, {
    path: ['delayMs'],
    message: 'a delay needs delayMs above 0',
  })
  .transform(({ delayMs, ...fault }) => ({
    ...fault,
    delayMs: delayMs ?? (fault.kind === 'delay' ? DELAY_MS : 0),
  }))

export type Fault = z.output<typeof faultInput>
export type FaultKind = Fault['kind']

/**
 * Takes the first fault, in the order they were set, that applies to `command` and whose dice fall
 * so. Counts it down, and drops it when it is used up.
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
