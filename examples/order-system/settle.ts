import { type Client, ProblemError, type RequestedRefund } from 'ipn-processor/client'
import type { Order, OrderBook, Return } from './orders.ts'

export type Books = { orders: OrderBook; ipn: Client }

/** What is waited for in the background may take as long as it takes. */
const PATIENT = { timeoutMs: Number.POSITIVE_INFINITY }

/** Waits until the customer has paid, or will not any more, and notes it with the order. */
export async function settlePayment({ orders, ipn }: Books, order: Order): Promise<void> {
  const paid = await ipn.transactions.wait(order.transactionId, { ...PATIENT, untilKnown: true })
  const payment = paid.payments.find(({ status }) => status === 'SUCCESS')
  await orders.change(order.id, (stored) => {
    stored.status = paid.state
    if (payment) stored.paymentId = payment.id
  })
}

/** Asks for a refund that is stored, waits for its end and notes it. It may have been asked for before. */
export async function settleReturn(books: Books, order: Order, one: Return): Promise<void> {
  const { orders, ipn } = books
  const { id } = await sendReturn(books, order, one, PATIENT.timeoutMs)
  const { status } = await ipn.refunds.wait(id, PATIENT)
  const { state } = await ipn.transactions.get(order.transactionId, PATIENT)
  await orders.change(order.id, (stored) => {
    stored.status = state
    noteReturn(stored, one, status)
  })
}

/** @throws ProblemError when it is refused, which is noted; what else is thrown says nothing about the refund */
export async function sendReturn(
  { orders, ipn }: Books,
  order: Order,
  one: Return,
  timeoutMs: number,
): Promise<RequestedRefund> {
  try {
    const taken = await ipn.refunds.send(one.refund, { timeoutMs })
    await orders.change(order.id, (stored) => noteReturn(stored, one, taken.status))
    return taken
  } catch (error) {
    if (isRefusal(error)) {
      await orders.change(order.id, (stored) => noteReturn(stored, one, 'refused'))
    }
    throw error
  }
}

/** The service has decided, and would decide the same again. */
export function isRefusal(error: unknown): error is ProblemError {
  return error instanceof ProblemError && error.status < 500 && ![408, 429].includes(error.status)
}

function noteReturn({ returns }: Order, { returnId }: Return, status: Return['status']): void {
  const known = returns.find((one) => one.returnId === returnId)
  if (known) known.status = status
}
