import type {
  PreparedRefund,
  PreparedSurplusRefund,
  RefundStatus,
  Transaction,
  TransactionState,
} from '@ipn-processor/client'
import { Big } from 'big.js'

/** An order of a customer. Amounts are decimal strings. */
export type Order = {
  id: string
  amount: string
  currency: string
  /** The gateway's id of what the customer was asked to pay. */
  transactionId: string
  /** The state that the newest webhook reported. */
  reported?: TransactionState
  /** `wrong_amount`: something was paid, but not the amount of the order in its currency. Nothing is shipped then. */
  status: TransactionState | 'wrong_amount'
  /** Set when something is paid. */
  paymentId?: string
  returns: Return[]
}

/** A return with its refund, under the shop's own number. */
export type Return = {
  returnId: string
  /** Contains the idempotency key: stored before anything is sent, and resent without changes. */
  refund: PreparedRefund | PreparedSurplusRefund
  /** `requested` until the service has confirmed it; `refused` if the service refused it. */
  status: 'requested' | 'refused' | RefundStatus
  /** What the customer quotes to the bank if the money does not arrive. */
  bankReference?: string | undefined
}

/** The store of orders: here a map, in production a database. */
export type OrderBook = {
  add(order: Omit<Order, 'id'>): Promise<Order>
  find(id: string): Promise<Order | undefined>
  list(): Promise<Order[]>
  /**
   * Changes an order and resolves when the change is stored; in a database, while its row is locked.
   * @throws Error if there is no such order
   */
  change(id: string, apply: (order: Order) => void): Promise<Order>
}

/**
 * Returns whether the order is paid in full and can be shipped. A transaction that is `paid` is not enough: it says that
 * a payment succeeded, not how much of the order it is.
 */
export function isPaidInFull(order: Order, { state, paidAmount, currency }: Transaction): boolean {
  return state === 'paid' && currency === order.currency && new Big(paidAmount).eq(order.amount)
}

/** Creates a store in memory. */
export function createOrderBook(): OrderBook {
  const orders = new Map<string, Order>()
  return {
    async add(order) {
      const added = { ...structuredClone(order), id: String(orders.size + 1) }
      orders.set(added.id, added)
      return structuredClone(added)
    },
    async find(id) {
      return structuredClone(orders.get(id))
    },
    async list() {
      return structuredClone([...orders.values()])
    },
    async change(id, apply) {
      const order = orders.get(id)
      if (!order) throw new Error(`no order ${id}`)
      apply(order)
      return structuredClone(order)
    },
  }
}
