/** Waiting for payment, and processing (specification 7). */
const OPEN_CODES: readonly string[] = ['9', '99']

/** As gateways of this family publish them; the specification has no table (section 7). */
const MEANINGS: Readonly<Record<string, string | undefined>> = {
  0: 'success',
  1: 'failed',
  9: 'waiting for payment',
  18: 'cancelled by the customer',
  19: 'duplicate merchant transaction id',
  30: 'integration not approved',
  31: 'invalid order id',
  32: 'invalid transaction id',
  33: 'invalid amount',
  34: 'invalid currency',
  37: 'invalid decimals',
  99: 'processing',
  '-1': 'expired',
}

/** Whether what the code is about may still succeed or fail. */
export function isOpenCode(code: string): boolean {
  return OPEN_CODES.includes(code)
}

/** Whether a text is a code as the gateway writes it. `05` is not: it may be a `0` that was cut elsewhere. */
export function isResultCode(text: string): boolean {
  return /^(0|-?[1-9]\d{0,8})$/.test(text)
}

/** The gateway's message, or the published meaning, marked as such. For people only: it decides nothing. */
export function explainCode(code: string, message: string): string {
  if (message.trim() !== '') return message
  const meaning = Object.hasOwn(MEANINGS, code) ? MEANINGS[code] : undefined
  return meaning === undefined
    ? ''
    : `${meaning} (published meaning of the code; the gateway sent no message)`
}

export function describeCode(code: string, message: string): string {
  const explanation = explainCode(code, message)
  return explanation === '' ? `code ${code}` : `code ${code}: ${explanation}`
}
