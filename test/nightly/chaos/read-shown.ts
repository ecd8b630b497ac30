import { z } from 'zod'
import type { Shown } from '../audit/ledgers.ts'
import { nameIn } from '../audit/ledgers.ts'
import { ACCOUNTS, type Account } from './accounts.ts'

const ShownPayment = z.object({
  id: z.string(),
  transactionId: z.string(),
  status: z.string(),
  amount: z.string(),
  refundedAmount: z.string(),
  refundableAmount: z.string(),
})
const ShownTransaction = z.object({ transactionId: z.string(), payments: z.array(ShownPayment) })
const ShownRefund = z.object({
  id: z.string(),
  paymentId: z.string(),
  amount: z.string(),
  status: z.string(),
})

/** Reads what the API shows to the key of each account, named within the account of the key. */
export async function readShown(apiUrl: string): Promise<Shown> {
  const shown: Shown = { transactions: [], refunds: [] }
  for (const account of ACCOUNTS) {
    const transactions = await readPages(apiUrl, account, '/v1/transactions')
    const refunds = await readPages(apiUrl, account, '/v1/refunds')
    const { merchantCode } = account
    shown.transactions.push(...transactions.map((one) => nameTransaction(merchantCode, one)))
    shown.refunds.push(...refunds.map((one) => nameRefund(merchantCode, one)))
  }
  return shown
}

/** A transaction as the API shows it, its objects named within their account. */
export function nameTransaction(
  merchantCode: string,
  shown: unknown,
): Shown['transactions'][number] {
  const { transactionId, payments } = ShownTransaction.parse(shown)
  const named = (id: string) => nameIn(merchantCode, id)
  return {
    id: named(transactionId),
    payments: payments.map((one) => ({
      ...one,
      id: named(one.id),
      transactionId: named(one.transactionId),
    })),
  }
}

export function nameRefund(merchantCode: string, shown: unknown): Shown['refunds'][number] {
  const { id, paymentId, ...refund } = ShownRefund.parse(shown)
  return { ...refund, id: nameIn(merchantCode, id), paymentId: nameIn(merchantCode, paymentId) }
}

async function readPages(apiUrl: string, { key }: Account, path: string): Promise<unknown[]> {
  const page = z.object({ data: z.array(z.unknown()), nextCursor: z.string().nullable() })
  const found: unknown[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const more = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const response = await fetch(`${apiUrl}${path}?limit=200${more}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    const { data, nextCursor } = page.parse(await response.json())
    found.push(...data)
    cursor = nextCursor
  }
  return found
}
