import { byTransaction, selectKeys, type TransactionKey } from '../db/transaction-key.ts'
import { shortenSide } from '../discrepancies/kinds.ts'
import { compareAmounts, isPositive } from '../money.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { NAMES, type TransactionNames } from './types.ts'

/** What a payment notification in documented form states. */
export type NotifiedPayment = {
  id: number
  isVerified: boolean
  code: string | null
  amount: string | null
  currency: string | null
  orderId: string | null
  merchantTxnId: string | null
  /** Another documented reading of the same text is the trusted one. */
  isOther: boolean
}

/** Bounds what a commit reads during a flood of different notifications. */
const MAX_READ = 1_000
const MAX_NOTIFIED = 20

/** Reads the newest notifications of each transaction, verified ones first. Results are in the order of the keys. */
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

const NOTHING = { orderId: null, merchantTxnId: null, currency: null, expectedAmount: null }
const NAMELESS: TransactionNames = { ...NOTHING, orderVerified: false }

/**
 * Completes the names of a transaction from the trusted readings of its notifications. The oldest verified one
 * names all that it states, later ones fill the gaps, and nothing verified is replaced. An unverified one names a
 * transaction only while nothing else does.
 * @returns undefined if nothing changes
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
    // A verified notification that names none of these proves nothing.
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

/** A gateway that still waits for the payment may notify the amount zero. */
function readOrderAmount({ amount }: NotifiedPayment): string | null {
  return amount !== null && isPositive(amount) ? amount : null
}

function differs(a: TransactionNames, b: TransactionNames): boolean {
  return NAMES.some((name) => a[name] !== b[name])
}

export type Sides = { ours: string; theirs: string }

/** Verified notifications that name another order, also by an untrusted documented reading: either may be genuine. */
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

/** A second currency makes the value of the amounts doubtful. */
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
