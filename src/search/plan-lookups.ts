import { parseAmount } from '../money.ts'
import type { SearchHit } from './view.ts'

/** A look-up by one index: of the rows from a value on, in the index's order. */
export type Lookup = {
  type: SearchHit['type']
  matched: SearchHit['matched']
  table: 'transactions' | 'payments' | 'refunds'
  /** The column of the object's id. */
  id: string
  column: string
  from: string
  /** The last value; undefined where only the text itself shows where its prefix ends. */
  to?: string | undefined
  /** The order of the index; by default that of the column. */
  order?: string
  /** Where its hits come: 0 exact, 1 with the prefix, 2 of the amount; undefined where the texts have to be compared. */
  rank?: number
}

/** A shorter text is only compared as a whole. */
const MIN_PREFIX = 3

/** Lists the look-ups that a text calls for. */
export function planLookups(text: string, withRefunds: boolean): Lookup[] {
  const to = text.length < MIN_PREFIX ? text : undefined
  const byText = { from: text, to }
  const transaction = { type: 'transaction', table: 'transactions', id: 'transaction_id' } as const
  const payment = { type: 'payment', table: 'payments', id: 'payment_id' } as const
  const refund = { type: 'refund', table: 'refunds', id: 'refund_id' } as const
  const ofRefunds: Lookup[] = [
    ...findRefundIds(text).map((range) => ({
      ...refund,
      ...range,
      matched: 'refundId' as const,
      column: 'refund_id',
    })),
    { ...refund, ...byText, matched: 'gatewayRefundId', column: 'gateway_refund_id' },
    { ...refund, ...byText, matched: 'gatewayReference', column: 'notified_reference' },
    ...findAmounts(text).map((range) => ({
      ...refund,
      ...range,
      order: 'amount desc, requested_at desc, refund_id desc',
    })),
  ]
  return [
    { ...transaction, ...byText, matched: 'transactionId', column: 'transaction_id' },
    { ...transaction, ...byText, matched: 'orderId', column: 'order_id' },
    { ...transaction, ...byText, matched: 'merchantTxnId', column: 'merchant_txn_id' },
    { ...payment, ...byText, matched: 'paymentId', column: 'payment_id' },
    ...findAmounts(text).map((range) => ({
      ...payment,
      ...range,
      order: 'amount desc, first_seen_at desc, payment_id desc',
    })),
    ...(withRefunds ? ofRefunds : []),
  ]
}

function findAmounts(text: string) {
  const amount = parseAmount(text)
  if (amount === undefined) return []
  return [{ matched: 'amount' as const, column: 'amount', from: amount, to: amount, rank: 2 }]
}

/** The ids of refunds are UUIDs: a prefix of their digits is a range. */
function findRefundIds(text: string) {
  const digits = text.toLowerCase().replaceAll('-', '')
  if (digits.length < MIN_PREFIX || !/^[0-9a-f]{1,32}$/.test(digits)) return []
  const pad = (digit: string) => digits.padEnd(32, digit)
  return [{ from: pad('0'), to: pad('f'), rank: digits.length === 32 ? 0 : 1 }]
}
