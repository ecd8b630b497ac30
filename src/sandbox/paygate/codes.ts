/**
 * The answers of the gateway operations by name. 1 to 37 are codes seen at gateways of this family;
 * from 200 on they are the sandbox's own, because the specification shows no table (section 7).
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
  exceedsBalance: { code: 213, message: 'The amount exceeds what is left of the payment' },
  badReceiver: { code: 214, message: 'The beneficiary information is missing or invalid' },
  duplicateRequest: { code: 215, message: 'The request id was used before' },
} satisfies Record<string, { code: number; message: string }>

export type AnswerName = keyof typeof ANSWERS

/** What an operation ends with, before it is written with the wire's names. */
export type Answer = { code: number; message: string; data?: unknown }

/** A successful answer carrying `data`. */
export function succeed(data: unknown): Answer {
  return { ...ANSWERS.success, data }
}

/** A refusal by name, with more about it when there is more to say. */
export function refuse(name: AnswerName, detail?: string): Answer {
  const { code, message } = ANSWERS[name]
  return { code, message: detail === undefined ? message : `${message}: ${detail}` }
}

/** A refusal with any code, as faults ask for; unlisted codes get the message of a plain failure. */
export function refuseWithCode(code: number): Answer {
  const known = Object.values(ANSWERS).find((answer) => answer.code === code)
  return { code, message: known?.message ?? ANSWERS.failed.message }
}
