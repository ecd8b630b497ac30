/** Waiting for the payer, and processing (specification 7). */
const OPEN_CODES: readonly string[] = ['9', '99']

/** Whether a response code is no end yet: what it was said of may still succeed or fail. */
export function isOpenCode(code: string): boolean {
  return OPEN_CODES.includes(code)
}
