import { createHash } from 'node:crypto'
import type postgres from 'postgres'
import { ACCOUNT } from '../notifications.ts'
import type { AttackJob } from './attacker.ts'

/** An attack by somebody who has at most a key that reads, and what it should not slow down. */
export type Scenario = {
  name: string
  /** What the other account measures: that its notification is acknowledged, or that its payment is known. */
  measures: 'acknowledged' | 'settled'
  job: (url: string) => AttackJob
}

/** A key of the account whose transactions are stored, which may only read. */
const READER_KEY = 'bench-key-that-only-reads-0123456789abcd'
const READER = { authorization: `Bearer ${READER_KEY}` }
/** A transaction with so many notifications. */
const BUSY = { transactionId: 'BUSY', notifications: 50_000 }

export const SCENARIOS: readonly Scenario[] = [
  {
    name: '100/s of 62 KB with a wrong hash',
    measures: 'acknowledged',
    job: (url) => ({
      url,
      kind: 'requests',
      method: 'POST',
      path: '/ipn',
      headers: { 'content-type': 'application/json' },
      body: writeFlood(),
      parallel: 200,
      rate: 100,
    }),
  },
  {
    name: '150 parallel lists of a rare state',
    measures: 'acknowledged',
    job: (url) => get(url, '/v1/transactions?state=refunded', 150, READER),
  },
  {
    name: '40 parallel timelines of 50,000 notifications',
    measures: 'acknowledged',
    job: (url) => get(url, `/v1/transactions/${BUSY.transactionId}/timeline?limit=1`, 40, READER),
  },
  {
    name: 'syncs of ids that nobody knows',
    measures: 'settled',
    job: (url) => ({
      url,
      kind: 'requests',
      method: 'POST',
      path: `/v1/transactions/UNKNOWN${process.pid}X#/sync`,
      headers: { ...READER, 'content-type': 'application/json' },
      body: '{}',
      parallel: 16,
    }),
  },
  {
    name: '150 parallel /metrics',
    measures: 'acknowledged',
    job: (url) => get(url, '/metrics', 150, {}),
  },
  {
    name: '13,000 idle connections',
    measures: 'acknowledged',
    job: (url) => ({ url, kind: 'connections', count: 13_000 }),
  },
]

function get(
  url: string,
  path: string,
  parallel: number,
  headers: Record<string, string>,
): AttackJob {
  return { url, kind: 'requests', method: 'GET', path, headers, parallel }
}

/** As many members as fit, each of which would be sorted and hashed. */
function writeFlood(): string {
  const members: Record<string, string> = {
    svc_Command: 'PAY',
    svc_MerchantCode: ACCOUNT.merchantCode,
    svc_TransactionID: 'FLOOD',
    svc_SecureHash: '0'.repeat(64),
  }
  for (let n = 0; n < 5_300; n += 1) members[`svc_${n}`] = ''
  return JSON.stringify(members).padEnd(62 * 1_024)
}

/** Stores the reader's key and the transaction whose timeline is long. */
export async function prepareAttacks(sql: postgres.Sql): Promise<void> {
  const hash = createHash('sha256').update(READER_KEY).digest()
  const { merchantCode } = ACCOUNT
  await sql`
    insert into api_keys (name, hash, scopes, merchant_code)
    values ('reader', ${hash}, ${['payments:read']}, ${merchantCode}) on conflict (hash) do nothing`
  const { transactionId, notifications } = BUSY
  const [made] = await sql`
    insert into transactions (merchant_code, transaction_id, state, final, ipn_count)
    values (${merchantCode}, ${transactionId}, 'paid', true, ${notifications})
    on conflict do nothing returning 1`
  if (made === undefined) return
  await sql`
    insert into ipn_events (merchant_code, text_hash, kind, transaction_id, verdict, body, address, deliveries, first_received_at)
    select ${merchantCode}, md5('busy' || n)::uuid, 'payment', ${transactionId}, 'verified', '{}',
      '127.0.0.1', 1, now() - n * interval '1 second'
    from generate_series(1, ${notifications}::int) as n`
  await sql`vacuum analyze ipn_events`
}
