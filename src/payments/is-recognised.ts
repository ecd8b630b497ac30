const STATUSES = ['SUCCESS', 'FAILED', 'PROCESSING']
const METHODS = ['QR', 'ATM', 'CC']

/** Whether a payment's status and method are both among those that the gateway documents. */
export function isRecognised({
  status,
  paymentMethod,
}: {
  status: string
  paymentMethod: string
}): boolean {
  return STATUSES.includes(status) && METHODS.includes(paymentMethod)
}
