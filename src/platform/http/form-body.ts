import type { IncomingMessage } from 'node:http'
import { DomainError } from '../../errors.ts'
import { type BodyBudget, readBody } from './body.ts'
import { decodeBody, MAX_BODY_BYTES, refuseBody } from './json-body.ts'

const FORM_TYPE = 'application/x-www-form-urlencoded'

/**
 * Reads the fields of a form that a browser sent, by name; of a repeated field the last. Without a body there are none.
 * @param budget shared with every other reader of bodies
 * @throws DomainError `unsupported_media_type`, `body_too_large`, `body_too_slow`, `invalid_json` for text that is not
 *   UTF-8, or `unavailable` when the budget is exhausted
 */
export async function readFormBody(
  request: IncomingMessage,
  timeoutMs: number,
  budget: BodyBudget,
): Promise<Record<string, string>> {
  const body = await readBody(request, { limit: MAX_BODY_BYTES, timeoutMs, budget })
  if (body.kind !== 'whole') throw refuseBody(body.kind, timeoutMs)
  if (body.bytes.length === 0) return {}
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== FORM_TYPE) {
    throw new DomainError('unsupported_media_type', `Send the form as \`${FORM_TYPE}\``)
  }
  return Object.fromEntries(new URLSearchParams(decodeBody(body.bytes)))
}
