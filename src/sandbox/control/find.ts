import type { Context } from 'hono'
import { ControlError } from '../input.ts'
import type {
  Book,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from '../state.ts'

/**
 * The account of that merchant code, or the first one.
 * @throws ControlError 422 when there is none
 */
export function findBook(state: SandboxState, merchantCode: string | undefined): Book {
  const [first] = state.books.values()
  const book = merchantCode === undefined ? first : state.books.get(merchantCode)
  if (book === undefined) throw new ControlError(422, 'merchantCode', 'no such account')
  return book
}

/**
 * The transaction named by the path, in the account of `?merchantCode=` or the first that holds it.
 * @throws ControlError 404
 */
export function findTransaction(state: SandboxState, c: Context): SandboxTransaction {
  return findInBooks(state, c, 'transactionId', (book, id) => book.transactions.get(id))
}

/**
 * The payment named by the path, found as a transaction is.
 * @throws ControlError 404
 */
export function findPayment(state: SandboxState, c: Context): SandboxPayment {
  return findInBooks(state, c, 'paymentId', (book, id) => book.payments.get(id))
}

/**
 * The oldest refund under the path's request id that has not ended yet.
 * @throws ControlError 404, or 409 when all of them have ended
 */
export function findOpenRefund(state: SandboxState, c: Context): SandboxRefund {
  const refunds = findInBooks(state, c, 'requestId', (book, id) => book.refunds.get(id))
  const open = refunds.find(({ status }) => status === 'accepted')
  if (open !== undefined) return open
  throw new ControlError(409, 'requestId', `the refund has ended: ${refunds.at(-1)?.status}`)
}

function findInBooks<T>(
  state: SandboxState,
  c: Context,
  name: string,
  find: (book: Book, id: string) => T | undefined,
): T {
  const id = c.req.param(name) ?? ''
  const merchantCode = c.req.query('merchantCode')
  const books = merchantCode === undefined ? state.books.values() : [findBook(state, merchantCode)]
  for (const book of books) {
    const found = find(book, id)
    if (found !== undefined) return found
  }
  throw new ControlError(404, name, `unknown: ${id}`)
}
