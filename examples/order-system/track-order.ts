import { type Client, ProblemError, type RequestedRefund } from '@ipn-processor/client'
import { isPaidInFull, type Order, type OrderBook, type Return } from './orders.ts'

export type ShopContext = { orders: OrderBook; ipn: Client }

/** Calls in the background have no time-out. */
const UNLIMITED = { timeoutMs: Number.POSITIVE_INFINITY }

/**
 * Waits until the transaction is final, paid or not, and stores the result with the order. The order is found by the
 * transaction id of its own checkout, never by the order id of a notification.
 */
export async function trackPayment({ orders, ipn }: ShopContext, order: Order): Promise<void> {
  const transaction = await ipn.transactions.wait(order.transactionId, {
    ...UNLIMITED,
    untilKnown: true,
  })
  const payment = transaction.payments.find(({ status }) => status === 'SUCCESS')
  await orders.change(order.id, (stored) => {
    const isWrong = transaction.state === 'paid' && !isPaidInFull(stored, transaction)
    stored.status = isWrong ? 'wrong_amount' : transaction.state
    if (payment) stored.paymentId = payment.id
  })
}

/**
 * Sends the refund of a stored return, waits until it ends and stores the result. It may have been sent
 * before.
 */
export async function trackReturn(shop: ShopContext, order: Order, one: Return): Promise<void> {
  const { orders, ipn } = shop
  const { id } = await sendReturn(shop, order, one, UNLIMITED.timeoutMs)
  const ended = await ipn.refunds.wait(id, UNLIMITED)
  const { state } = await ipn.transactions.get(order.transactionId, UNLIMITED)
  await orders.change(order.id, (stored) => {
    stored.status = state
    recordRefund(stored, one, ended)
  })
}

/**
 * Sends the refund of a stored return, and stores its status.
 * @throws ProblemError if it is refused; after any other error the outcome is unknown
 */
export async function sendReturn(
  { orders, ipn }: ShopContext,
  order: Order,
  one: Return,
  timeoutMs: number,
): Promise<RequestedRefund> {
  try {
    const requested = await ipn.refunds.send(one.refund, { timeoutMs })
    await orders.change(order.id, (stored) => recordRefund(stored, one, requested))
    return requested
  } catch (error) {
    if (isRefusal(error)) {
      const refused = { status: 'refused' as const, gatewayReference: null }
      await orders.change(order.id, (stored) => recordRefund(stored, one, refused))
    }
    throw error
  }
}

/** Returns whether the service refused the request, and would refuse it again. */
export function isRefusal(error: unknown): error is ProblemError {
  return error instanceof ProblemError && error.status < 500 && ![408, 429].includes(error.status)
}

type RefundState = { status: Return['status']; gatewayReference: string | null }

function recordRefund(
  { returns }: Order,
  { returnId }: Return,
  { status, gatewayReference }: RefundState,
): void {
  const stored = returns.find((one) => one.returnId === returnId)
  if (!stored) return
  stored.status = status
  stored.bankReference = gatewayReference ?? undefined
}
