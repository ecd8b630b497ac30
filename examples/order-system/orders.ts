import type { PreparedRefund, RefundStatus, TransactionState } from 'ipn-processor/client'

/** What a customer bought. Amounts are decimal strings, as everywhere. */
export type Order = {
  id: string
  amount: string
  /** The gateway's id for what the customer was asked to pay. */
  transactionId: string
  status: TransactionState
  /** Known once it is paid. */
  paymentId?: string
  returns: Return[]
}

/** Money that goes back, by the shop's own number for it. */
export type Return = {
  returnId: string
  /** With its idempotency key: stored before anything is sent, and sent again with nothing changed. */
  refund: PreparedRefund
  /** `requested` until the service is known to have it; `refused` when it said no. */
  status: 'requested' | 'refused' | RefundStatus
}

/** Where orders are kept. Yours is a database, this one is a map. */
export type OrderBook = {
  add(order: Omit<Order, 'id'>): Promise<Order>
  find(id: string): Promise<Order | undefined>
  list(): Promise<Order[]>
  /**
   * Changes an order and resolves when that is stored; in a database, under the lock of its row.
   * @throws Error when there is no such order
   */
  change(id: string, apply: (order: Order) => void): Promise<Order>
}

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
