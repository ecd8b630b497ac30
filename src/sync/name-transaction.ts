import { byTransaction, selectKeys, type TransactionKey } from '../db/transaction-key.ts'
import { shortenSide } from '../discrepancies/kinds.ts'
import { compareAmounts, isPositive } from '../money.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { TransactionNames } from './types.ts'

/** What a payment notification in documented form states. */
export type NotifiedPayment = {
  id: number
  isVerified: boolean
  code: string | null
  amount: string | null
  currency: string | null
  orderId: string | null
  merchantTxnId: string | null
  /** Another reading of its text, documented as well, is the trusted one. */
  isOther: boolean
}

/** Bounds what a commit reads in a flood of different notifications. */
const MAX_READ = 1_000
const MAX_NOTIFIED = 20

/** The newest notifications of transactions, the verified ones first, in the order of the keys. */
export async function readNotifiedPayments(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<NotifiedPayment[][]> {
  const notified = keys.map((): NotifiedPayment[] => [])
  if (keys.length === 0) return notified
  const rows = await tx<(NotifiedPayment & { at: number })[]>`
    select k.ordinality::int as at, e.code, e.amount, e.currency, e.order_id as "orderId",
      e.merchant_txn_id as "merchantTxnId", e.reading > 1 as "isOther",
      e.id, e.verdict = 'verified' as "isVerified"
    from ${selectKeys(tx, keys)},
      lateral (
        select code, amount, currency, order_id, merchant_txn_id, reading, id, verdict from (
          select code, amount, currency, order_id, merchant_txn_id, verdict, reading, documented, last_received_at, id
          from ipn_events as e where ${tx.unsafe(byTransaction('e'))} limit ${MAX_READ}
        ) as bounded
        where documented
        order by verdict = 'verified' desc, last_received_at desc, id desc limit ${MAX_NOTIFIED}
      ) as e`
  for (const { at, ...notification } of rows) notified[at - 1]?.push(notification)
  return notified
}

const NAMES = ['orderId', 'merchantTxnId', 'currency', 'expectedAmount', 'orderVerified'] as const

const NOTHING = { orderId: null, merchantTxnId: null, currency: null, expectedAmount: null }
const NAMELESS: TransactionNames = { ...NOTHING, orderVerified: false }

/**
 * Completes what names a transaction: the first verified notification with all that it states, after that other
 * verified ones with what is missing. Nothing verified is replaced. One that did not verify names only what
 * nothing else does. Only the trusted reading of a text names anything.
 * @returns undefined if nothing is completed
 */
export function completeNames(
  row: TransactionNames,
  notified: readonly NotifiedPayment[],
): TransactionNames | undefined {
  const { orderId, merchantTxnId, currency, expectedAmount, orderVerified } = row
  const hasAll = orderId && merchantTxnId && currency && expectedAmount
  if (orderVerified && hasAll) return undefined
  const trusted = notified.filter(({ isOther }) => !isOther).toSorted((a, b) => a.id - b.id)
  const verified = trusted.filter(({ isVerified }) => isVerified)
  if (verified.length > 0) {
    const before = orderVerified ? row : NAMELESS
    const names = verified.reduce(fillGaps, { ...before, orderVerified: true })
    // What names nothing proves nothing either.
    const isNamed = names.orderId ?? names.merchantTxnId ?? names.currency ?? names.expectedAmount
    return isNamed !== null && differs(row, names) ? names : undefined
  }
  const [first] = trusted
  if (orderVerified || orderId || merchantTxnId || currency || !first) return undefined
  const names = { ...fillGaps(row, first), expectedAmount, orderVerified: false }
  return differs(row, names) ? names : undefined
}

function fillGaps(names: TransactionNames, one: NotifiedPayment): TransactionNames {
  return {
    orderId: names.orderId ?? one.orderId,
    merchantTxnId: names.merchantTxnId ?? one.merchantTxnId,
    currency: names.currency ?? one.currency,
    expectedAmount: names.expectedAmount ?? readOrderAmount(one),
    orderVerified: names.orderVerified,
  }
}

/** A gateway that waits for a payment may notify zero. */
function readOrderAmount({ amount }: NotifiedPayment): string | null {
  return amount !== null && isPositive(amount) ? amount : null
}

function differs(a: TransactionNames, b: TransactionNames): boolean {
  return NAMES.some((name) => a[name] !== b[name])
}

export type Sides = { ours: string; theirs: string }

/**
 * Verified notifications that name another order than the one shown. A documented reading that is not trusted
 * counts as well: which of the two the gateway sent is not known.
 */
export function listOrderConflicts(
  row: Omit<TransactionNames, 'orderVerified'>,
  notified: readonly NotifiedPayment[],
): Sides[] {
  return notified.flatMap((one) => {
    const amount = readOrderAmount(one)
    const isSame = amount !== null && compareAmounts(amount, row.expectedAmount ?? amount) === 0
    const differing = [
      { name: 'order id', shown: row.orderId, named: one.orderId },
      { name: 'merchant transaction id', shown: row.merchantTxnId, named: one.merchantTxnId },
      { name: 'currency', shown: row.currency, named: one.currency },
      { name: 'amount', shown: row.expectedAmount, named: isSame ? null : amount },
    ].filter(({ shown, named }) => shown !== null && named !== null && shown !== named)
    if (differing.length === 0) return []
    const ours = shortenSide(differing.map(({ name, shown }) => `${name} ${shown}`).join(', '))
    const theirs = shortenSide(differing.map(({ name, named }) => `${name} ${named}`).join(', '))
    return [{ ours, theirs }]
  })
}

/** A second currency makes it doubtful what the amounts are worth. */
export function listOtherCurrencies(
  { currency: shown }: Pick<TransactionNames, 'currency'>,
  notified: readonly NotifiedPayment[],
): Sides[] {
  if (shown === null) return []
  const named = notified.flatMap(({ currency, isOther }) => (isOther ? [] : (currency ?? [])))
  return [...new Set(named)]
    .filter((currency) => currency !== shown)
    .map((currency) => ({ ours: `currency ${shown}`, theirs: `currency ${currency}` }))
}
