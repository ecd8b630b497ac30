import { compareAmounts } from '../../../../src/money.ts'
import { type Evidence, sumOf, weighEvidence } from './evidence.ts'
import type { Ledgers, StoredRefund } from './ledgers.ts'

/** The codes that the service takes for a final refusal: the default of GATEWAY_REFUND_FINAL_CODES. */
const FINAL_CODES = ['31', '32', '33', '34', '37']

/**
 * Lists refunds whose outcome the service cannot determine, so that they wait for an operator or are queried
 * indefinitely, with the transactions that wait for them.
 */
export function listUndecidable(ledgers: Ledgers) {
  const { stored } = ledgers
  const evidence = weighEvidence(ledgers)
  const transactions = new Map(stored.payments.map(({ id, transactionId }) => [id, transactionId]))
  const isOpen = ({ status }: StoredRefund) => !isEnded(status)
  const certain = stored.refunds.filter(
    (one) =>
      isOpen(one) &&
      (lacksEvidence(one, ledgers, evidence) ||
        isContradicted(one, ledgers, evidence) ||
        isMistakable(one, ledgers, evidence)),
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
  const { stored, sent } = ledgers
  const { shaken } = weighEvidence(ledgers)
  const before = new Set(sent.portal.flatMap((one) => (one.isBefore ? one.paymentId : [])))
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
  { stored, sent, moved }: Ledgers,
  evidence: Evidence,
): boolean {
  if (evidence.told.has(id)) return false
  const candidates = [...stored.refunds, ...sent.portal].filter(
    (one) => one.paymentId === paymentId,
  )
  const isRefused = refusedCode !== null && !FINAL_CODES.includes(refusedCode)
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
  { sent, moved }: Ledgers,
  evidence: Evidence,
): boolean {
  const hasFailed = moved.failed.includes(id)
  const isUnanswered = status === 'unknown' || status === 'needs_review'
  if (evidence.moved.has(id)) return false
  if (!(hasFailed || refusedCode !== null || (isUnanswered && attempts > 0))) return false
  const since = sent.asked.find((one) => one.key === key)?.atMs ?? 0
  const others = sumOf(
    paymentId,
    moved.movements.filter(({ atMs }) => atMs >= since),
  )
  return compareAmounts(others, amount) >= 0 || (hasFailed && attempts > 1)
}

/**
 * It was never sent, and no more than the refunds made at the portal, one of them before first sight: as nobody knows
 * which of these the payment had grown by then, what has grown since may have been moved by this one before its attempt
 * was lost.
 */
function isMistakable(
  { id, paymentId, amount, status }: StoredRefund,
  { sent }: Ledgers,
  evidence: Evidence,
): boolean {
  if (status !== 'pending' || evidence.moved.has(id) || evidence.told.has(id)) return false
  const isBefore = sent.portal.some((one) => one.isBefore && one.paymentId === paymentId)
  return isBefore && compareAmounts(amount, sumOf(paymentId, sent.portal)) <= 0
}

/** `needs_review` does not count: there the decision is an operator's. */
export function isEnded(status: string): boolean {
  return status === 'succeeded' || status === 'failed'
}
