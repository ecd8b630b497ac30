import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type postgres from 'postgres'
import { ACCOUNT } from './notifications.ts'

const CHUNK = 5_000

/** Lines of COPY by the table and columns they go to. */
type Tables = Record<string, (id: string, n: number) => string>

/** What a transaction that is settled has left in each table of the service. */
export const OF_SERVICE: Tables = {
  'transactions (merchant_code, transaction_id, order_id, currency, state, final, paid_amount, want, claimed, ipn_count, as_of, first_seen_at)':
    (id, n) =>
      `${ACCOUNT.merchantCode}\t${id}\tO${id}\tVND\tpaid\tt\t20000000\t1\t1\t1\t${at(n)}\t${at(n)}`,
  'payments (merchant_code, payment_id, transaction_id, status, amount, refunded_amount, refunded_at_first, payment_method, as_of, first_as_of, first_seen_at)':
    (id, n) =>
      `${ACCOUNT.merchantCode}\tP-${id}\t${id}\tSUCCESS\t20000000\t0\t0\tCC\t${at(n)}\t${at(n)}\t${at(n)}`,
  'ipn_events (merchant_code, text_hash, kind, transaction_id, verdict, body, address, deliveries, first_received_at)':
    (id, n) =>
      `${ACCOUNT.merchantCode}\t${createHash('md5').update(id).digest('hex')}\tpayment\t${id}\tverified\t${writeBody(id)}\t127.0.0.1\t1\t${at(n)}`,
  'gateway_calls (merchant_code, transaction_id, command, body_hmac, body_key_id, sent_at, duration_ms, outcome, http_status, code, message, answer)':
    (id, n) =>
      `${ACCOUNT.merchantCode}\t${id}\tQUERY_PT\t\\\\x${'00'.repeat(32)}\tk\t${at(n)}\t20\tanswered\t200\t0\tSuccess\t[{"id":"P-${id}","status":"SUCCESS","amount":"20000000"}]`,
  'changes (merchant_code, transaction_id, payment_id, field, before, after, cause, at)': (id, n) =>
    `${ACCOUNT.merchantCode}\t${id}\tP-${id}\tstatus\t\\N\tSUCCESS\tquery\t${at(n)}`,
}

/** The same in the tables of the baselines. */
export const OF_BASELINES: Tables = {
  'transactions (transaction_id, order_id, currency, state, final, paid_amount, first_seen_at)': (
    id,
    n,
  ) => `${id}\tO${id}\tVND\tpaid\tt\t20000000\t${at(n)}`,
  'payments (payment_id, transaction_id, status, amount, refunded_amount, payment_method)': (id) =>
    `P-${id}\t${id}\tSUCCESS\t20000000\t0\tCC`,
  'notifications (transaction_id, body, received_at)': (id, n) =>
    `${id}\t${writeBody(id)}\t${at(n)}`,
}

function writeBody(id: string): string {
  return `{"svc_TransactionID":"${id}","svc_OrderInfo":"${'x'.repeat(300)}"}`
}

/** A transaction every six seconds, ending before today. */
function at(n: number): string {
  return new Date(Date.UTC(2025, 0, 1) + n * 6_000).toISOString()
}

/** As the gateway makes them: the time first, then what nobody can guess. */
function makeId(n: number): string {
  const time = at(n).replace(/\D/g, '').slice(2, 14)
  return `${time}${createHash('md5').update(String(n)).digest('hex').slice(0, 6).toUpperCase()}`
}

/** Brings the number of stored, settled transactions from one number to another by COPY, with fresh statistics. */
export async function fill(
  sql: postgres.Sql,
  tables: Tables,
  from: number,
  to: number,
): Promise<void> {
  for (const [table, write] of Object.entries(tables)) {
    const target = await sql.unsafe(`copy ${table} from stdin`).writable()
    await pipeline(Readable.from(makeChunks(from, to, write)), target)
  }
  await sql.unsafe('vacuum analyze')
  await sql.unsafe('checkpoint')
}

function* makeChunks(from: number, to: number, write: (id: string, n: number) => string) {
  for (let start = from; start < to; start += CHUNK) {
    const lines: string[] = []
    for (let n = start; n < Math.min(to, start + CHUNK); n += 1) {
      lines.push(write(makeId(n), n))
    }
    yield `${lines.join('\n')}\n`
  }
}
