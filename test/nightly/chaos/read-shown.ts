import { z } from 'zod'
import { ACCOUNTS, type Account } from './accounts.ts'
import type { Shown } from './audit/ledgers.ts'
import { nameIn } from './audit/names.ts'

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
    const named = (id: string) => nameIn(account.merchantCode, id)
    const transactions = await readPages(apiUrl, account, '/v1/transactions', ShownTransaction)
    for (const { transactionId, payments } of transactions) {
      shown.transactions.push({
        id: named(transactionId),
        payments: payments.map((one) => ({
          ...one,
          id: named(one.id),
          transactionId: named(one.transactionId),
        })),
      })
    }
    for (const refund of await readPages(apiUrl, account, '/v1/refunds', ShownRefund)) {
      const { id, paymentId } = refund
      shown.refunds.push({ ...refund, id: named(id), paymentId: named(paymentId) })
    }
  }
  return shown
}

async function readPages<T>(
  apiUrl: string,
  { key }: Account,
  path: string,
  item: z.ZodType<T>,
): Promise<T[]> {
  const page = z.object({ data: z.array(item), nextCursor: z.string().nullable() })
  const found: T[] = []
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
