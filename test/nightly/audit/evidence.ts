import { type Ledgers, type StoredRefund, sumOf, units } from './ledgers.ts'

/** The codes that the service takes for a final refusal: the defaults of its settings. */
export const FINAL_CODES: Readonly<Record<'answer' | 'notification', readonly string[]>> = {
  answer: ['31', '32', '33', '34', '37'],
  notification: ['-1', '1', '18', '30', '31', '32', '33', '34', '37'],
}

/** Evidence about refunds that the service certainly has, and payments of which it certainly lacks some. */
export type Evidence = {
  /** Refunds whose notification was acknowledged and cannot be lost. */
  told: ReadonlySet<string>
  /** Refunds whose money moved. */
  moved: ReadonlySet<string>
  /** Payments of which money moved without such a notification. */
  silent: ReadonlySet<string>
  /** Payments of which evidence may have been lost when the database was set back. */
  shaken: ReadonlySet<string>
}

export function weighEvidence({ acknowledged, stored, moved }: Ledgers): Evidence {
  const told = new Set(moved.told.flatMap((one) => (one.isAtRisk ? [] : one.requestId)))
  const paymentOf = new Map([
    ...moved.movements.map((one): [string, string] => [one.requestId, one.paymentId]),
    ...stored.refunds.map((one): [string, string] => [one.id, one.paymentId]),
    ...acknowledged.refunds.map((one): [string, string] => [one.refundId, one.paymentId]),
    ...acknowledged.portal.map((one): [string, string] => [one.requestId, one.paymentId]),
  ])
  const atRisk = [...moved.movements, ...moved.told, ...moved.accepted].filter(
    (one) => one.isAtRisk,
  )
  const silent = moved.movements.filter(({ requestId }) => !told.has(requestId))
  return {
    told,
    moved: new Set(moved.movements.map(({ requestId }) => requestId)),
    silent: new Set(silent.map(({ paymentId }) => paymentId)),
    shaken: new Set(atRisk.flatMap(({ requestId }) => paymentOf.get(requestId) ?? [])),
  }
}

/** Adds what was refunded of a payment at the portal without a notification that the service certainly has. */
export function sumUnknown(
  { acknowledged }: Ledgers,
  { told }: Evidence,
  paymentId: string,
): bigint {
  return sumOf(
    paymentId,
    acknowledged.portal.filter(({ requestId }) => !told.has(requestId)),
  )
}

/** `needs_review` does not count: there the decision is an operator's. */
export function isEnded(status: string): boolean {
  return status === 'succeeded' || status === 'failed'
}

/**
 * Lists refunds whose outcome the service cannot determine, so that they wait for an operator or are queried
 * indefinitely, with the transactions that wait for them.
 */
export function listUndecidable(ledgers: Ledgers) {
  const { stored } = ledgers
  const evidence = weighEvidence(ledgers)
  const transactions = new Map(stored.payments.map(({ id, transactionId }) => [id, transactionId]))
  const reasons = [lacksEvidence, isContradicted, isMistakable, mayBeLost]
  const certain = stored.refunds.filter(
    (one) => !isEnded(one.status) && reasons.some((holds) => holds(one, ledgers, evidence)),
  )
  const blocked = new Set(certain.map(({ paymentId }) => paymentId))
  // Nothing of a payment is sent while another of its refunds is unknown.
  const behind = stored.refunds.filter(
    (one) =>
      one.status === 'pending' &&
      blocked.has(one.paymentId) &&
      !certain.includes(one) &&
      !evidence.told.has(one.id),
  )
  return [...certain, ...behind].map(({ id, paymentId }) => ({
    id,
    transactionId: transactions.get(paymentId),
  }))
}

/**
 * Lists transactions that are queried until a person decides: for a refund that is undecidable, for a portal refund from
 * before first sight, whose growth never comes, or for one whose evidence was lost when the database was set back.
 */
export function listWaiting(ledgers: Ledgers): ReadonlySet<string | undefined> {
  const { stored, acknowledged } = ledgers
  const { shaken } = weighEvidence(ledgers)
  const before = new Set(acknowledged.portal.flatMap((one) => (one.isBefore ? one.paymentId : [])))
  return new Set([
    ...listUndecidable(ledgers).map(({ transactionId }) => transactionId),
    ...stored.payments
      .filter(({ id }) => before.has(id) || shaken.has(id))
      .map(({ transactionId }) => transactionId),
  ])
}

/**
 * No notification about it was ever acknowledged for certain, and
 * - it failed at the gateway after that had accepted it, or
 * - money of its payment moved without a notification while several refunds of it were open, or one that the
 *   gateway had refused: growth alone does not show which refund it belongs to, and one that was not sent waits while the
 *   growth may be its own, or
 * - the gateway refused it with a code that is not known to be final, and moved nothing, or
 * - evidence about its payment was lost when the database was set back.
 */
function lacksEvidence(
  { id, paymentId, refusedCode }: StoredRefund,
  { stored, acknowledged, moved }: Ledgers,
  evidence: Evidence,
): boolean {
  if (evidence.told.has(id)) return false
  const candidates = [...stored.refunds, ...acknowledged.portal].filter(
    (one) => one.paymentId === paymentId,
  )
  const isRefused = refusedCode !== null && !FINAL_CODES.answer.includes(refusedCode)
  return (
    moved.failed.includes(id) ||
    (evidence.silent.has(paymentId) && (candidates.length > 1 || refusedCode !== null)) ||
    (isRefused && !evidence.moved.has(id)) ||
    evidence.shaken.has(paymentId)
  )
}

/**
 * It was sent and moved no money, and what was notified does not settle it: since it was requested other refunds moved as
 * much of its payment, so that no answer proves that it was not among them, and it is not sent again; or it was sent more
 * than once, so that its failure may be that of one attempt alone.
 */
function isContradicted(
  { id, key, paymentId, amount, status, attempts, refusedCode }: StoredRefund,
  { acknowledged, moved }: Ledgers,
  evidence: Evidence,
): boolean {
  const hasFailed = moved.failed.includes(id)
  const isUnanswered = status === 'unknown' || status === 'needs_review'
  if (evidence.moved.has(id)) return false
  if (!(hasFailed || refusedCode !== null || (isUnanswered && attempts > 0))) return false
  const since = acknowledged.asked.find((one) => one.key === key)?.atMs ?? 0
  const others = moved.movements.filter(({ atMs }) => atMs >= since)
  return sumOf(paymentId, others) >= units(amount) || (hasFailed && attempts > 1)
}

/**
 * A portal refund from before first sight was notified after it, so that nobody knows which refunds the payment had grown by
 * then. One of ours that was never sent, and is no more than the refunds made at the portal, may have moved what has grown
 * since, before its attempt was lost; one that got no answer is not sent again, because what has grown stays unexplained.
 */
function isMistakable(
  { id, paymentId, amount, status, attempts }: StoredRefund,
  { acknowledged: { portal } }: Ledgers,
  evidence: Evidence,
): boolean {
  if (evidence.moved.has(id) || evidence.told.has(id)) return false
  if (!portal.some((one) => one.isBefore && one.paymentId === paymentId)) return false
  if (status === 'pending') return units(amount) <= sumOf(paymentId, portal)
  return (status === 'unknown' || status === 'needs_review') && attempts > 0
}

/** It went to a person because an attempt got no answer, moved nothing, and the gateway would not notice a repetition. */
function mayBeLost(
  { id, status }: StoredRefund,
  { stored, moved }: Ledgers,
  evidence: Evidence,
): boolean {
  if (moved.dedupes || status !== 'needs_review' || evidence.moved.has(id)) return false
  return stored.attempts.some((one) => one.refundId === id && one.outcome === 'unknown')
}
