import postgres from 'postgres'
import type { Sql } from '../db/client.ts'
import { makeDue, SYNC_DUE, TRANSACTION_CHANGED } from '../db/due.ts'
import type { SignatureVerdict } from '../gateway/signature.ts'
import type { Notification } from '../gateway/translate.ts'
import { createGroup } from '../group.ts'
import { REQUEST_ID } from './refund-notifications.ts'

/** A notification that passed every check and is about to be acknowledged. */
export type Arrival = {
  merchantCode: string
  /** SHA-256 of merchant code and raw body. */
  fingerprint: Buffer
  notification: Notification
  verdict: SignatureVerdict
  body: string
  contentType: string
  address: string
  headers: Record<string, string>
  /** The span that stores it; none without tracing. */
  traceParent?: string | undefined
}

export type Inbox = {
  /**
   * Resolves once the notification is committed and its transaction is due.
   * @throws InboxFullError when more wait than can be taken, or this one for too long; any database
   *   error as it is
   */
  store(arrival: Arrival): Promise<void>
  /** Whether another one would be refused. */
  isFull(): boolean
  /** How many wait for a commit, and how much text of bodies is held. */
  measure(): { waiting: number; characters: number }
  /** Resolves when everything taken so far is stored or refused. */
  drain(): Promise<void>
}

/**
 * More notifications wait for the database than may, or this one did for too long: the gateway has to
 * send it again. One whose commit was on its way may be stored all the same: then it is counted twice.
 */
export class InboxFullError extends Error {}

const MAX_BATCH = 500
const MAX_WAITING = 5_000
/** Of bodies that are not committed yet, in UTF-16 units: 16 to 32 MiB, at 64 KiB each not 320. */
const MAX_CHARACTERS = 16 * 1024 * 1024
/**
 * A late answer is worth nothing: the sender has given up (ms). While the oldest waits for longer than
 * `staleMs` whatever comes is refused unread, before it costs memory and time. What waits is refused
 * within a second, what is being committed after a few: it may well be stored.
 */
const INBOX_PATIENCE = { staleMs: 400, untakenMs: 700, takenMs: 5_000 }

/** Classes of SQLSTATE: connection, read-only, resources, shutdown and cancelling, the system itself. */
const SERVER_TROUBLE = /^(08|25|53|57|58)/

/**
 * Group commit; one bad row never fails its neighbours. Bounded in number, size and time: what the
 * database does not take is refused, and never gathers here.
 */
export function createInbox(sql: Sql, patience = INBOX_PATIENCE): Inbox {
  const group = createGroup<Arrival, void>(MAX_BATCH, patience.takenMs, {
    ...patience,
    giveUp({ body }, taken) {
      if (taken) return new InboxFullError('the commit takes too long')
      characters -= body.length
      return new InboxFullError('no commit had room for it in time')
    },
  })
  let characters = 0
  const isFull = () =>
    group.countWaiting() >= MAX_WAITING ||
    characters >= MAX_CHARACTERS ||
    group.measureWait() >= patience.staleMs
  async function run(batch: readonly Arrival[]): Promise<PromiseSettledResult<void>[]> {
    try {
      return await commit(sql, batch)
    } finally {
      for (const { body } of batch) characters -= body.length
    }
  }
  return {
    store(arrival) {
      if (isFull()) return Promise.reject(new InboxFullError('too many wait for the database'))
      characters += arrival.body.length
      return group.add(arrival, run)
    },
    isFull,
    measure: () => ({ waiting: group.countWaiting(), characters }),
    drain: group.drain,
  }
}

async function commit(sql: Sql, batch: readonly Arrival[]): Promise<PromiseSettledResult<void>[]> {
  try {
    await storeArrivals(sql, batch)
    return batch.map(() => ({ status: 'fulfilled', value: undefined }))
  } catch (reason) {
    if (batch.length > 1 && isAboutRows(reason)) {
      const middle = batch.length >> 1
      const first = await commit(sql, batch.slice(0, middle))
      return [...first, ...(await commit(sql, batch.slice(middle)))]
    }
    return batch.map(() => ({ status: 'rejected', reason }))
  }
}

/** Whether fewer rows could fare better. Trouble of the server's own meets all of them alike. */
function isAboutRows(error: unknown): boolean {
  return error instanceof postgres.PostgresError && !SERVER_TROUBLE.test(error.code)
}

/**
 * One statement, one commit: the notifications, counted where their bytes are known, and their
 * transactions made due. Rows are written in key order, so that two batches never wait for each other
 * crosswise. One NOTIFY a commit: it costs a fifth of the intake's speed; a second one only where a
 * known transaction has learnt something that a waiting reader can see.
 */
export async function storeArrivals(sql: Sql, arrivals: readonly Arrival[]): Promise<void> {
  const events = foldEvents(arrivals)
  const due = foldTransactions(arrivals)
  // Without tracing one null stands for all of them.
  const traces = events.some((e) => e.traceParent) ? events.map((e) => e.traceParent ?? null) : null
  const refunds = events.flatMap(({ merchantCode, notification }) =>
    notification.kind === 'refund' ? [{ ...notification, merchantCode }] : [],
  )
  const learns = sql`(t.order_id is null and excluded.order_id is not null)
    or (t.merchant_txn_id is null and excluded.merchant_txn_id is not null)
    or (t.currency is null and excluded.currency is not null)`
  // The same bytes under a secret that has been put right since: now they may settle what they say.
  const verifiedNow = sql`excluded.verdict = 'verified' and ipn_events.verdict <> 'verified'`
  const [row] = await sql`
    with events as (
      insert into ipn_events (merchant_code, fingerprint, kind, transaction_id, payment_id, request_id,
        amount, code, verdict, body, content_type, address, headers, deliveries, trace_parent)
      select merchant_code, decode(fingerprint, 'hex'), kind, transaction_id, payment_id, request_id,
        amount::numeric, code, verdict, body, content_type, address, headers::jsonb, deliveries, trace_parent
      from unnest(
        ${events.map((e) => e.merchantCode)}::text[], ${events.map((e) => e.fingerprint.toString('hex'))}::text[],
        ${events.map((e) => e.notification.kind)}::text[],
        ${events.map((e) => (e.notification.kind === 'payment' ? e.notification.transactionId : null))}::text[],
        ${events.map((e) => e.notification.paymentId ?? null)}::text[],
        ${events.map((e) => (e.notification.kind === 'refund' ? e.notification.requestId : null))}::text[],
        ${events.map((e) => e.notification.amount ?? null)}::text[],
        ${events.map((e) => e.notification.code ?? null)}::text[],
        ${events.map((e) => e.verdict)}::text[], ${events.map((e) => e.body)}::text[],
        ${events.map((e) => e.contentType)}::text[], ${events.map((e) => e.address)}::text[],
        ${events.map((e) => JSON.stringify(e.headers))}::text[], ${events.map((e) => e.deliveries)}::int[],
        ${traces}::text[]
      ) as e (merchant_code, fingerprint, kind, transaction_id, payment_id, request_id, amount, code,
        verdict, body, content_type, address, headers, deliveries, trace_parent)
      order by merchant_code, transaction_id, fingerprint
      on conflict (merchant_code, transaction_id, fingerprint) do update set
        deliveries = ipn_events.deliveries + excluded.deliveries, last_received_at = now(),
        trace_parent = coalesce(excluded.trace_parent, ipn_events.trace_parent),
        handled_at = case when ${verifiedNow} then null else ipn_events.handled_at end,
        verdict = case when ${verifiedNow} then excluded.verdict else ipn_events.verdict end
    ), due as (
      insert into transactions as t
        (merchant_code, transaction_id, order_id, merchant_txn_id, currency, ipn_count, due_at)
      select merchant_code, transaction_id, max(order_id), max(merchant_txn_id), max(currency),
        sum(deliveries), now()
      from (select * from unnest(
        ${due.map((d) => d.merchantCode)}::text[], ${due.map((d) => d.transactionId)}::text[],
        ${due.map((d) => d.orderId ?? null)}::text[], ${due.map((d) => d.merchantTxnId ?? null)}::text[],
        ${due.map((d) => d.currency ?? null)}::text[], ${due.map((d) => d.deliveries)}::int[]
      ) as named (merchant_code, transaction_id, order_id, merchant_txn_id, currency, deliveries)
      ${refunds.length > 0 ? findRefunded(sql, refunds) : sql``}) as d
      group by merchant_code, transaction_id order by merchant_code, transaction_id
      on conflict (merchant_code, transaction_id) do update set
        ipn_count = t.ipn_count + excluded.ipn_count,
        version = t.version + (${learns})::int,
        updated_at = case when ${learns} then now() else t.updated_at end,
        order_id = coalesce(t.order_id, excluded.order_id),
        merchant_txn_id = coalesce(t.merchant_txn_id, excluded.merchant_txn_id),
        currency = coalesce(t.currency, excluded.currency),
        ${makeDue(sql)}
      returning merchant_code, transaction_id, updated_at = now() and first_seen_at < now() as learnt
    )
    select pg_notify(${SYNC_DUE}, ''), (
      select count(pg_notify(${TRANSACTION_CHANGED},
        '[' || to_json(merchant_code) || ',' || to_json(transaction_id) || ']')) from due where learnt)`
  // A statement that no server ran has no row: what the driver made of it must not be acknowledged.
  if (!row) throw new Error('the database did not say that it had stored the notifications')
}

type NotifiedRefund = { merchantCode: string; requestId: string; paymentId: string | undefined }

/** The transactions, known already, whose payments a refund's notification is about. */
function findRefunded(sql: Sql, refunds: readonly NotifiedRefund[]) {
  const uuids = refunds.map(({ requestId }) => (REQUEST_ID.test(requestId) ? requestId : null))
  return sql`
    union all
    select p.merchant_code, p.transaction_id, null, null, null, 0
    from payments p join unnest(
        ${refunds.map((r) => r.merchantCode)}::text[], ${refunds.map((r) => r.paymentId ?? null)}::text[]
      ) as n (merchant_code, payment_id) using (merchant_code, payment_id)
    union all
    select r.merchant_code, r.transaction_id, null, null, null, 0
    from refunds r join unnest(${refunds.map((r) => r.merchantCode)}::text[], ${uuids}::text[])
      as n (merchant_code, refund_id)
      on r.merchant_code = n.merchant_code and r.refund_id = n.refund_id::uuid`
}

/** The same bytes of the same merchant, counted: one statement may touch a row once. */
function foldEvents(arrivals: readonly Arrival[]): (Arrival & { deliveries: number })[] {
  const folded = new Map<string, Arrival & { deliveries: number }>()
  for (const arrival of arrivals) {
    const key = `${arrival.merchantCode} ${arrival.fingerprint.toString('hex')}`
    const known = folded.get(key)
    if (known) known.deliveries += 1
    else folded.set(key, { ...arrival, deliveries: 1 })
  }
  return [...folded.values()]
}

type DueTransaction = {
  merchantCode: string
  transactionId: string
  orderId: string | undefined
  merchantTxnId: string | undefined
  currency: string | undefined
  deliveries: number
}

/** A refund's notification registers nothing: its transaction id is not a payment's. */
function foldTransactions(arrivals: readonly Arrival[]): DueTransaction[] {
  const folded = new Map<string, DueTransaction>()
  for (const { merchantCode, notification } of arrivals) {
    if (notification.kind !== 'payment') continue
    const { transactionId, orderId, merchantTxnId, currency } = notification
    const key = `${merchantCode} ${transactionId}`
    const known = folded.get(key)
    if (known) {
      known.deliveries += 1
      known.orderId ??= orderId
      known.merchantTxnId ??= merchantTxnId
      known.currency ??= currency
    } else {
      folded.set(key, {
        merchantCode,
        transactionId,
        orderId,
        merchantTxnId,
        currency,
        deliveries: 1,
      })
    }
  }
  return [...folded.values()]
}
