/** Waiting for payment, and processing (specification 7). */
const OPEN_CODES: readonly string[] = ['9', '99']

/** Returns whether a response code is not final: what it refers to may still succeed or fail. */
export function isOpenCode(code: string): boolean {
  return OPEN_CODES.includes(code)
}
