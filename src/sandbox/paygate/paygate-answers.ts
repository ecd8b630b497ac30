import type { PaygateAnswer } from '../types.ts'

/**
 * Answers to QUERY_PT and REFUND by name. Codes 1 to 37 are used by gateways of this family; codes from
 * 200 on are the sandbox's own, because the specification has no table of codes (section 7).
 */
const ANSWERS = {
  success: { code: 0, message: 'Success' },
  failed: { code: 1, message: 'Failed' },
  unknownMerchant: { code: 30, message: 'Integration is not approved: unknown merchant code' },
  unknownTransaction: { code: 32, message: 'Invalid transaction id: no such transaction' },
  invalidAmount: { code: 33, message: 'Invalid amount' },
  tooManyDecimals: { code: 37, message: 'Invalid decimals: at most 4 are allowed' },
  unreadable: { code: 200, message: 'The body is neither a JSON object nor a form' },
  unknownCommand: { code: 201, message: 'Unknown command' },
  missingParameter: { code: 202, message: 'A required parameter is missing' },
  wrongType: { code: 202, message: 'A parameter has the wrong type' },
  unsupportedVersion: { code: 203, message: 'Unsupported version' },
  badSignature: { code: 204, message: 'Invalid signature' },
  unknownPayment: { code: 211, message: 'No such payment' },
  notRefundable: { code: 212, message: 'The payment is not successful' },
  exceedsBalance: { code: 213, message: 'The amount exceeds the remaining balance of the payment' },
  badReceiver: { code: 214, message: 'The beneficiary information is missing or invalid' },
  duplicateRequest: { code: 215, message: 'The request id was used before' },
} satisfies Record<string, { code: number; message: string }>

export type AnswerName = keyof typeof ANSWERS

/** Returns a successful answer with `data`. */
export function succeed(data: unknown): PaygateAnswer {
  return { ...ANSWERS.success, data }
}

/** Returns a refusal by name; `detail` is appended to its message. */
export function refuse(name: AnswerName, detail?: string): PaygateAnswer {
  const { code, message } = ANSWERS[name]
  return { code, message: detail === undefined ? message : `${message}: ${detail}` }
}

/** Returns a refusal with any code, for faults. Codes that are not listed get the generic message. */
export function refuseWithCode(code: number): PaygateAnswer {
  const known = Object.values(ANSWERS).find((answer) => answer.code === code)
  return { code, message: known?.message ?? ANSWERS.failed.message }
}
