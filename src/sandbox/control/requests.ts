import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import { ControlError } from '../control-input.ts'
import type {
  SandboxMerchant,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from '../state.ts'
import { writeJson } from '../wire-format.ts'

/**
 * Rejects unsafe requests that a page of another site sends through a browser: browsers post forms
 * across sites without asking for permission. Programs send neither header and pass.
 */
export const requireSameOrigin = createMiddleware(async (c, next) => {
  const origin = c.req.header('origin')
  const site = c.req.header('sec-fetch-site')
  const isOwn =
    (origin === undefined || readHost(origin) === c.req.header('host')) && site !== 'cross-site'
  if (isOwn || c.req.method === 'GET' || c.req.method === 'HEAD') return next()
  return c.text('Requests from pages of other sites are not allowed.', 403)
})

function readHost(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}

/** Answers a control request with JSON; amounts keep their digits. */
export function respondJson(
  c: Context,
  value: unknown,
  status: 200 | 201 | 202 | 404 | 409 | 422 = 200,
): Response {
  return c.body(writeJson(value), status, { 'content-type': 'application/json; charset=utf-8' })
}

/** Names an object: in the account with this code, or in the first one that has the id. */
export type ObjectKey = { id: string; merchantCode: string | undefined }

/**
 * Finds the merchant of an account; without a code the first one.
 * @throws ControlError 422 if there is none
 */
export function findMerchant(
  { merchants }: SandboxState,
  merchantCode: string | undefined,
): SandboxMerchant {
  const [first] = merchants.values()
  const merchant = merchantCode === undefined ? first : merchants.get(merchantCode)
  if (merchant === undefined) throw new ControlError(422, 'merchantCode', 'no such account')
  return merchant
}

/** Reads an object's key from a request: its id from the path, the account from `?merchantCode=`. */
export function readKey(c: Context, name: string): ObjectKey {
  return { id: c.req.param(name) ?? '', merchantCode: c.req.query('merchantCode') }
}

/** @throws ControlError 404 */
export function findTransaction(state: SandboxState, key: ObjectKey): SandboxTransaction {
  return findObject(state, key, 'transactionId', ({ transactions }) => transactions.get(key.id))
}

/** @throws ControlError 404 */
export function findPayment(state: SandboxState, key: ObjectKey): SandboxPayment {
  return findObject(state, key, 'paymentId', ({ payments }) => payments.get(key.id))
}

/**
 * Finds the oldest refund with a request id that has not settled.
 * @throws ControlError 404, or 409 if all of them have settled
 */
export function findOpenRefund(state: SandboxState, key: ObjectKey): SandboxRefund {
  const found = findObject(state, key, 'requestId', ({ refunds }) => refunds.get(key.id))
  const open = found.find(({ status }) => status === 'accepted')
  if (open !== undefined) return open
  throw new ControlError(409, 'requestId', `the refund has ended: ${found.at(-1)?.status}`)
}

/**
 * Finds the newest refund with a request id, whatever its status.
 * @throws ControlError 404
 */
export function findRefund(state: SandboxState, key: ObjectKey): SandboxRefund {
  return findObject(state, key, 'requestId', ({ refunds }) => refunds.get(key.id)?.at(-1))
}

function findObject<T>(
  state: SandboxState,
  { id, merchantCode }: ObjectKey,
  name: string,
  find: (merchant: SandboxMerchant) => T | undefined,
): T {
  const merchants =
    merchantCode === undefined ? state.merchants.values() : [findMerchant(state, merchantCode)]
  for (const merchant of merchants) {
    const found = find(merchant)
    if (found !== undefined) return found
  }
  throw new ControlError(404, name, `unknown: ${id}`)
}
