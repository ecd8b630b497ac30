import postgres from 'postgres'
import {
  type Acknowledged,
  type Ledgers,
  nameIn,
  nameRefundOf,
  type Stored,
} from '../audit/ledgers.ts'
import { readStored } from '../audit/read-stored.ts'
import type { JournalEntry } from '../chaos/gateway.ts'
import type { Order, RefundRequest, TakenRefund } from './requests.ts'
import { ACCOUNT, type Stage } from './stage.ts'

const named = (id: string) => nameIn(ACCOUNT.merchantCode, id)

/** What clients were promised, and what the gateway knows; nothing of the service. */
export type Promised = Pick<Ledgers, 'acknowledged' | 'moved'>

/** @param isAtRisk whether commits may be lost without a defect */
export async function readPromised(
  { gateway }: Pick<Stage, 'gateway'>,
  orders: readonly Order[],
  taken: readonly TakenRefund[],
  isAtRisk: boolean,
): Promise<Promised> {
  const journal = await gateway.readJournal('ipn')
  const acknowledged = journal.filter(({ outcome }) => outcome === 'acknowledged')
  const calls = await gateway.readJournal('REFUND')
  const movements = await gateway.readLedger()
  const payments = await Promise.all(
    orders.map(({ transactionId }) =>
      gateway.readPayments({ merchantCode: ACCOUNT.merchantCode, id: transactionId }),
    ),
  )
  const listRequests = (entries: readonly JournalEntry[]) =>
    entries.flatMap(({ requestId }) => (requestId ? { requestId: named(requestId), isAtRisk } : []))
  return {
    acknowledged: {
      notifications: acknowledged.map((one) => ({ ...describeNotification(one), isAtRisk })),
      asked: orders.flatMap(({ refunds }) => refunds.map((one) => ({ ...describe(one), atMs: 0 }))),
      refunds: taken.map((one) => ({
        ...{ ...describe(one), refundId: named(one.refundId), isAtRisk },
      })),
      ...{ synced: [], refused: [], portal: [] },
    },
    moved: {
      ...{ dedupes: true, refuses: false, failed: [], sends: new Map(), payments: payments.flat() },
      movements: movements.map((one) => ({ ...one, isAtRisk, isPending: false })),
      accepted: listRequests(calls.filter(({ workCode }) => workCode === 0)),
      told: listRequests(acknowledged),
    },
  }
}

function describeNotification({ rawBodySha256 = '', requestId, transactionId }: JournalEntry) {
  const isOfPayment = !requestId && transactionId
  return { sha256: rawBodySha256, transactionId: isOfPayment ? named(transactionId) : undefined }
}

function describe({ key, paymentId, amount }: RefundRequest): Acknowledged['asked'][number] {
  const refundId = nameRefundOf(named(key))
  return { ...{ key: named(key), refundId, paymentId: named(paymentId), amount }, atMs: 0 }
}

/** Reads the database, and which refunds were stored since a moment. */
export async function readDatabase(
  url: string,
  since: string,
): Promise<{ stored: Stored; later: ReadonlySet<string> }> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    const later = await sql<{ id: string }[]>`
      select merchant_code || '/' || refund_id as id from refunds where requested_at >= ${since}`
    return { stored: await readStored(sql), later: new Set(later.map(({ id }) => id)) }
  } finally {
    await sql.end({ timeout: 1 })
  }
}
