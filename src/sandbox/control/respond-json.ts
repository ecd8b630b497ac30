import type { Context } from 'hono'
import { writeJson } from '../wire-format.ts'

/** Answers a control request with JSON; amounts keep their digits. */
export function respondJson(
  c: Context,
  value: unknown,
  status: 200 | 201 | 202 | 404 | 409 | 422 = 200,
): Response {
  return c.body(writeJson(value), status, { 'content-type': 'application/json; charset=utf-8' })
}
