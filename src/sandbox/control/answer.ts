import type { Context } from 'hono'
import { writeJson } from '../wire.ts'

/** Answers a control request in JSON; amounts keep their digits. */
export function answerControl(
  c: Context,
  value: unknown,
  status: 200 | 201 | 202 | 404 | 409 | 422 = 200,
): Response {
  return c.body(writeJson(value), status, { 'content-type': 'application/json; charset=utf-8' })
}
