import type { Context } from '../context.ts'

const CONSEQUENCE = {
  required: undefined,
  optional:
    'IPN_SIGNATURE=optional accepts notifications without a hash: anyone who reaches /ipn can make the service query and store; set it to required',
  off: 'IPN_SIGNATURE=off accepts every notification, whatever its hash is: anyone who reaches /ipn can make the service query and store; set it to required',
} as const

/** Logs a warning if notifications are accepted without a verified hash. Call it at start. */
export function warnOfUnsigned({ config, log }: Pick<Context, 'config' | 'log'>): void {
  const consequence = CONSEQUENCE[config.IPN_SIGNATURE]
  if (consequence && config.ROLE !== 'worker') log.warn(consequence)
}
