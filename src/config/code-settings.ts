import { z } from 'zod'

const CODE = '(0|-?[1-9]\\d{0,8})'
const LIST = new RegExp(`^(none|${CODE}(,${CODE})*)$`)

/** A response code of the gateway: a whole number as it is written. */
export function responseCode() {
  return z.string().regex(new RegExp(`^${CODE}$`), 'must be a whole number; 1')
}

/** A comma-separated list of response codes; `none` is the empty list. */
export function responseCodes(example: string) {
  return z
    .string()
    .regex(LIST, `must be a comma-separated list of whole numbers, or none; ${example}`)
    .transform((value) => (value === 'none' ? [] : value.split(',')))
}

/**
 * A comma-separated list of response codes that may prove a failure; `none` is the empty list.
 * @param never codes that prove none
 */
function failureCodes(example: string, never: readonly string[]) {
  return responseCodes(example).refine(
    (codes) => !codes.some((code) => never.includes(code)),
    `must not contain ${never.join(', ')}, which never prove a failure; 31,32`,
  )
}

/** Codes of the answer to a refund. 19 may mean that the gateway has the request already. */
export function refusalCodes() {
  return failureCodes('31,32,33,34,37', ['0', '9', '19', '99'])
}

/** Codes of the notification of a refund. */
export function notifiedFailureCodes() {
  return failureCodes('-1,1,18,30,31,32,33,34,37', ['0', '9', '99'])
}
