/** The values that the gateway documents (specification 2.6). */
export const STATUSES = ['SUCCESS', 'FAILED', 'PROCESSING'] as const
export const METHODS = ['QR', 'ATM', 'CC'] as const

const KNOWN: readonly string[] = STATUSES
const KNOWN_METHODS: readonly string[] = METHODS

/** Whether the status of a payment is one that the gateway documents. */
export function isKnownStatus(status: string): boolean {
  return KNOWN.includes(status)
}

/** Whether a payment's status and method are both among those that the gateway documents. */
export function isRecognised({
  status,
  paymentMethod,
}: {
  status: string
  paymentMethod: string
}): boolean {
  return isKnownStatus(status) && KNOWN_METHODS.includes(paymentMethod)
}
