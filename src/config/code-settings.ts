import { z } from 'zod'

/** 0 accepts a refund, 9 and 99 leave it open, and 19 is a code for a refund that may be under way. */
const NEVER_FINAL: readonly string[] = ['0', '9', '19', '99']

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

/** A comma-separated list of response codes that prove a refusal; `none` is the empty list. */
export function finalCodes() {
  const never = `must not contain ${NEVER_FINAL.join(', ')}, which never prove a refusal; 31,32`
  return responseCodes('31,32,33,34,37').refine(
    (codes) => !codes.some((code) => NEVER_FINAL.includes(code)),
    never,
  )
}
