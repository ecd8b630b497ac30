import { type Actor, recordWrite } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import type { StoredResolution } from '../db/schema.ts'
import { formatTransactionKey, type TransactionKey } from '../db/transaction-key.ts'
import type { DiscrepancyKind, RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { recordDiscrepancies, resolveDiscrepancies } from '../discrepancies/store.ts'
import { DomainError, type RefusalCode } from '../errors.ts'
import { type NewEvent, recordEvents } from '../events/record-events.ts'
import { showPayment } from '../payments/view.ts'
import { byExpressions, byKey } from '../platform/postgres/by-key.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { notifyAfterCommit, runAfterCommit } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { lockOrder } from '../refunds/order-surplus.ts'
import { makeDue, notifyTransactionChanged } from '../transactions/due.ts'
import { readTransactions } from '../transactions/find-transactions.ts'
import { listTransactionsOfPayment } from '../transactions/move-payments.ts'

/** Locks a transaction until the commit. Lock it before its payments and refunds. */
export async function lockTransaction(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<void> {
  await tx`
    select from transactions
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId} for update`
}

/** Makes a transaction due after a visible change that no answer brought: the next answer is judged with it. */
export async function recheckTransaction(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<void> {
  await tx`
    update transactions t set version = version + 1, updated_at = now(), ${makeDue(tx)}
    from ${tx.unsafe(CLOCK)}
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
  notifyAfterCommit(tx, SYNC_DUE)
  notifyTransactionChanged(tx, { merchantCode, transactionId })
}

type Deciding<T> = {
  actor: Actor
  /** The method and route, or the command, for the audit log. */
  operation: string
  merchantCode: string
  objectId: string
  /** The transaction, which is locked before anything of it; undefined if there is none. */
  transactionId?: string | undefined
  /** Also locks the others of its order, because the decision may end what holds a refund of theirs back. */
  locksOrder?: boolean
  /** First locks the account's row: for a hold, because commits that record an attempt share-lock it. */
  locksAccount?: boolean
  /** Judges and applies the decision under the locks. If it throws, nothing is stored. */
  apply: (tx: Tx) => Promise<Applied<T>>
}

type Applied<T> = {
  value: T
  /** Transactions whose readers see the change: each is queried again. */
  changed?: readonly TransactionKey[]
  /** Builds the events, after everything else is written. */
  buildEvents?: () => Promise<NewEvent[]>
  /** The line in the log after the commit. */
  log: string
  afterCommit?: () => void
}

/** The audit entry and the events are written last. @throws DomainError what `apply` throws */
export async function decide<T>(
  { db: { sql }, log }: Pick<Context, 'db' | 'log'>,
  deciding: Deciding<T>,
): Promise<T> {
  const { actor, operation, merchantCode, objectId, transactionId } = deciding
  return await runInTransaction(sql, async (tx) => {
    if (deciding.locksAccount) await lockAccount(tx, merchantCode)
    const lock = deciding.locksOrder ? lockOrder : lockTransaction
    if (transactionId !== undefined) await lock(tx, { merchantCode, transactionId })
    const applied = await deciding.apply(tx)
    for (const key of applied.changed ?? []) await recheckTransaction(tx, key)
    await recordWrite(tx, log, actor, { operation, merchantCode, objectId })
    await recordEvents(tx, (await applied.buildEvents?.()) ?? [])
    runAfterCommit(tx, () => {
      const { name: key, requestId } = actor
      // On the command line, the log line of the audit entry is enough.
      if (actor.id !== null) {
        log.info({ merchantCode, objectId, operation, key, requestId }, applied.log)
      }
      applied.afterCommit?.()
    })
    return applied.value
  })
}

async function lockAccount(tx: Tx, merchantCode: string): Promise<void> {
  await tx`select from merchant_accounts where merchant_code = ${merchantCode} for update`
}

export async function buildPaymentEvent(
  tx: Tx,
  key: TransactionKey,
  paymentId: string,
): Promise<NewEvent[]> {
  const data = await readPayment(tx, key, paymentId)
  const { merchantCode, transactionId } = key
  return data ? [{ merchantCode, transactionId, type: 'payment.updated', data }] : []
}

export async function readPayment(tx: Tx, key: TransactionKey, paymentId: string) {
  const found = (await readTransactions(tx, [key])).get(formatTransactionKey(key))
  const own = found?.payments.find((one) => one.paymentId === paymentId)
  return found && own && showPayment(own, found.transaction)
}

export function describeResolution(
  { now }: Pick<Context, 'now'>,
  { outcome, reason }: { outcome: string; reason: string },
  { name }: Pick<Access, 'name'>,
  againstEvidence: string | null,
): StoredResolution {
  return { outcome, reason, by: name, againstEvidence, decidedAt: now().toISOString() }
}

/** A refund of ours, or an external one, which has no `refundId`. */
type Decided = TransactionKey & { paymentId: string; refundId?: string }

/** Resolves the discrepancies that a decision answers, and records one if it contradicts the evidence. */
export async function recordResolution(
  tx: Tx,
  decided: Decided,
  { againstEvidence }: StoredResolution,
  { ours, answered }: { ours: string; answered: readonly Answered[] },
): Promise<RecordedDiscrepancy[]> {
  const { merchantCode, transactionId, paymentId, refundId } = decided
  const key = { merchantCode, transactionId, refundId }
  const subject = refundId === undefined ? { ...key, paymentId } : key
  const found = await listTransactionsOfPayment(tx, decided)
  await resolveDiscrepancies(
    tx,
    found.flatMap((of) => answered.map((one) => ({ ...subject, ...of, ...one }))),
  )
  if (againstEvidence === null) return []
  const kind = 'decided_against_evidence'
  return await recordDiscrepancies(tx, [{ ...key, paymentId, kind, ours, theirs: againstEvidence }])
}

type Answered = { kind: DiscrepancyKind; ours?: string }

type RefundKey = { merchantCode: string; refundId: string }

const ATTEMPTS = byKey('a', ['merchant_code', 'refund_id'], 'k')
const OF_REFUND = byKey('r', ['merchant_code', 'refund_id'], 'k')
const OF_TRANSACTION = byKey('t', ['merchant_code', 'transaction_id'], 'r')
const BY_REQUEST = byExpressions(
  ['e.merchant_code', 'lower(e.request_id)'],
  ['k.merchant_code', 'k.refund_id::text'],
)

/**
 * Reads a version of all by which a person decides: the transaction's, which every visible change of its refunds,
 * payments, holds and decisions raises; the refund's status and evidence; what its attempts were answered, which may
 * come late; and the notifications that name it, handled or not. The caller of a decision holds the transaction's row,
 * which every change of these takes. Empty for an unknown refund.
 */
export async function readShownVersion(
  tx: Tx,
  { merchantCode, refundId }: RefundKey,
): Promise<string> {
  const [row] = await tx<{ version: string }[]>`
    select jsonb_build_array(t.transaction_id, t.version, r.status, r.updated_at, r.failure_code, r.success_notified_at,
      r.return_sightings, r.return_seen_at, (
        select json_agg(json_build_array(a.id, a.outcome, a.code) order by a.id) from (
          select a.* from refund_attempts as a where ${tx.unsafe(ATTEMPTS)} offset 0) as a), (
        select json_agg(e.id order by e.id) from (
          select e.id from ipn_events as e
          where e.kind = 'refund' and ${tx.unsafe(BY_REQUEST)} offset 0) as e))::text as version
    from (select ${merchantCode}::text as merchant_code, ${refundId}::uuid as refund_id) as k
    cross join lateral (select * from refunds as r where ${tx.unsafe(OF_REFUND)} limit 1) as r
    cross join lateral (select * from transactions as t where ${tx.unsafe(OF_TRANSACTION)} limit 1) as t`
  return row?.version ?? ''
}

/**
 * The caller holds the transaction's row. `expected` is undefined if no version was shown.
 * @throws DomainError `code` with `changed`, if the refund has changed since
 */
export async function requireShownVersion(
  tx: Tx,
  refund: RefundKey,
  expected: string | undefined,
  code: RefusalCode,
): Promise<void> {
  if (expected === undefined || (await readShownVersion(tx, refund)) === expected) return
  const detail = `Refund ${refund.refundId} has changed since it was shown; nothing was decided`
  throw new DomainError(code, detail, { changed: true })
}
