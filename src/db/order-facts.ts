/** The ids of an order, as the notifications of its transaction name them. */
export type OrderIds = { orderId: string | null; merchantTxnId: string | null }

/** What every object of a transaction repeats of it, so that it can be assigned to an order by itself. */
export type OrderFacts = OrderIds & { currency: string | null }

/** The columns of `OrderIds` and of `OrderFacts`, for statements that read `transactions` as `t`. */
export const ORDER_ID_COLUMNS = 't.order_id as "orderId", t.merchant_txn_id as "merchantTxnId"'
export const ORDER_COLUMNS = `t.currency, ${ORDER_ID_COLUMNS}`
