/** The ids that the notifications of a transaction give its order. */
export type OrderIds = { orderId: string | null; merchantTxnId: string | null }

/** The facts that every object of a transaction repeats, so that it can be matched to an order on its own. */
export type OrderFacts = OrderIds & { currency: string | null }

/** The columns of `OrderIds` and `OrderFacts`, for statements that select from `transactions as t`. */
export const ORDER_ID_COLUMNS = 't.order_id as "orderId", t.merchant_txn_id as "merchantTxnId"'
export const ORDER_COLUMNS = `t.currency, ${ORDER_ID_COLUMNS}`
