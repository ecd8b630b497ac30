import type { Context } from 'hono'
import { ControlError } from '../control-input.ts'
import type {
  SandboxMerchant,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from '../state.ts'

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

/**
 * Finds the transaction in the request's path: of `?merchantCode=`, or of the first merchant that
 * has this id.
 * @throws ControlError 404
 */
export function findTransaction(state: SandboxState, c: Context): SandboxTransaction {
  return findByPath(state, c, 'transactionId', ({ transactions }, id) => transactions.get(id))
}

/**
 * Finds the payment in the request's path, like `findTransaction`.
 * @throws ControlError 404
 */
export function findPayment(state: SandboxState, c: Context): SandboxPayment {
  return findByPath(state, c, 'paymentId', ({ payments }, id) => payments.get(id))
}

/**
 * Finds the oldest refund with the path's request id that has not settled.
 * @throws ControlError 404, or 409 if all of them have settled
 */
export function findOpenRefund(state: SandboxState, c: Context): SandboxRefund {
  const found = findByPath(state, c, 'requestId', ({ refunds }, id) => refunds.get(id))
  const open = found.find(({ status }) => status === 'accepted')
  if (open !== undefined) return open
  throw new ControlError(409, 'requestId', `the refund has ended: ${found.at(-1)?.status}`)
}

function findByPath<T>(
  state: SandboxState,
  c: Context,
  name: string,
  find: (merchant: SandboxMerchant, id: string) => T | undefined,
): T {
  const id = c.req.param(name) ?? ''
  const merchantCode = c.req.query('merchantCode')
  const merchants =
    merchantCode === undefined ? state.merchants.values() : [findMerchant(state, merchantCode)]
  for (const merchant of merchants) {
    const found = find(merchant, id)
    if (found !== undefined) return found
  }
  throw new ControlError(404, name, `unknown: ${id}`)
}
