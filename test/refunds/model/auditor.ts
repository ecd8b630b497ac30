/** A refund as the service shows it. */
export type ShownRefund = {
  id: string
  paymentId: string
  amount: number
  status: string
  inferred: boolean
  matched: boolean
  review: string | null
  /** Why it failed. */
  failure: string | null
  due: boolean
  /** A discrepancy or a notification against its status is on record. */
  disputed: boolean
  /** The outcome that a person decided last. */
  decided: string | null
}

/** A refund as the gateway has it; `moving` may still succeed or fail. */
export type MadeRefund = {
  requestId: string
  paymentId: string
  amount: number
  status: 'moving' | 'moved' | 'failed'
}

export type ShownPayment = {
  id: string
  amount: number
  /** What is left of it; it counts once everything is settled. */
  refundable: number
  /** What was refunded when it was first seen, and the most that was ever shown to be refunded. */
  atFirst: number
  highest: number
  /** External refunds, by what they count as. */
  externalMatched: number
  externalReserved: number
}

/** An attempt to send a refund, as it was recorded before its bytes could leave; `at` by the clock of `ShownHold`. */
export type ShownAttempt = { refundId: string; paymentId: string; at: number }

/** What nobody may send from one moment to another; without an end still. */
export type ShownHold = {
  target: 'merchant' | 'payment' | 'refund'
  id: string
  from: number
  until?: number
}

/** Both sides of the wire at one moment. */
export type Books = {
  payments: readonly ShownPayment[]
  shown: readonly ShownRefund[]
  made: readonly MadeRefund[]
  /** Request ids that the service was asked for or that the portal made. */
  known: ReadonlySet<string>
  /** How often the bytes of a request id may have left, and whether repeating them was allowed. */
  sends: ReadonlyMap<string, number>
  /** How many of them nothing is left of in the service's records. */
  lostSends: ReadonlyMap<string, number>
  attempts: readonly ShownAttempt[]
  holds: readonly ShownHold[]
  /** Refunds whose cancellation was acknowledged. */
  cancelled: ReadonlySet<string>
  /** How long ago a refund was requested, or approved (ms). */
  waitedMs: ReadonlyMap<string, number>
  mayRepeat: boolean
  /** Ids sent again later than the service may rely on the gateway's memory. */
  repeatedLate: ReadonlySet<string>
  /** Refunds of which the gateway said what is not true, or whose evidence was lost with commits. */
  misreported: ReadonlySet<string>
  /** Tables in which a step of another account has changed rows of this one. */
  changedByOther: readonly string[]
  /** Everything has settled, was notified, shown and decided. */
  settled: boolean
}

const ENDS: readonly string[] = ['succeeded', 'failed', 'returned']

/** Reasons to fail a refund of which nothing was sent, with how long it has to wait before (ms). */
const UNSENT: Readonly<Record<string, number>> = {
  cancelled: 0,
  declined: 0,
  approval_expired: 3 * 86_400_000,
  not_sent_in_time: 7 * 86_400_000,
  approval_mismatch: 0,
  exceeds_refundable: 0,
  payment_not_refundable: 0,
}
/** For the time that passes by itself while a test runs (ms). */
const SLACK_MS = 60_000

export type Violation = { rule: keyof typeof RULES; id: string }

/** What must never be, by name. Each finds the ids of payments or refunds that break it. */
export const RULES = {
  moved_twice: ({ made }: Books) => {
    const ids = made.filter(({ status }) => status !== 'failed').map(({ requestId }) => requestId)
    return ids.filter((id, index) => ids.indexOf(id) !== index)
  },
  too_much_moved: ({ payments, made }: Books) =>
    payments.filter(({ id, amount }) => sumTaken(made, id) > amount).map(({ id }) => id),
  moved_unasked: ({ made, known }: Books) =>
    made.map(({ requestId }) => requestId).filter((id) => !known.has(id)),
  failed_and_moves: (books: Books) =>
    books.shown
      .filter(({ status, disputed }) => status === 'failed' && !(disputed && !books.settled))
      .filter(({ id }) => isTaken(books, id) && (books.settled || !books.misreported.has(id)))
      .map(({ id }) => id),
  succeeded_and_did_not: (books: Books) =>
    books.shown
      .filter(({ status, id }) => status === 'succeeded' && !hasMoved(books, id))
      .filter((one) => !books.misreported.has(one.id) || (books.settled && !isOverruled(one)))
      .map(({ id }) => id),
  returned_and_moved: (books: Books) =>
    books.shown
      .filter(({ status, id }) => status === 'returned' && isTaken(books, id))
      .map(({ id }) => id),
  no_exit: ({ shown }: Books) =>
    shown
      .filter(
        ({ status, due, review }) =>
          (['pending', 'sending', 'accepted', 'unknown'].includes(status) && !due) ||
          (status === 'needs_review' && review === 'no_evidence' && !due),
      )
      .map(({ id }) => id),
  never_ends: ({ shown, settled }: Books) =>
    shown.filter(({ status }) => settled && !ENDS.includes(status)).map(({ id }) => id),
  matched_more_than_shown: ({ payments, shown }: Books) =>
    payments
      .filter(({ id, atFirst, highest, externalMatched }) => {
        const own = shown.filter(({ paymentId, matched }) => paymentId === id && matched)
        return sum([...own.map(({ amount }) => amount), externalMatched, atFirst]) > highest
      })
      .map(({ id }) => id),
  sent_again: ({ sends, mayRepeat }: Books) =>
    [...sends].filter(([, times]) => !mayRepeat && times > 1).map(([id]) => id),
  cancelled_and_sent: (books: Books) =>
    [...books.cancelled].filter((id) => countKnownSends(books, id) > 0),
  cancelled_and_moves: (books: Books) =>
    [...books.cancelled].filter((id) => isTaken(books, id) && !books.lostSends.get(id)),
  unsent_and_sent: (books: Books) =>
    books.shown
      .filter(({ failure, status }) => status === 'failed' && failure !== null && failure in UNSENT)
      .map(({ id }) => id)
      .filter((id) => countKnownSends(books, id) > 0),
  expired_early: ({ shown, waitedMs }: Books) =>
    shown
      .filter(({ id, status, failure }) => {
        const waited = waitedMs.get(id) ?? Number.POSITIVE_INFINITY
        return status === 'failed' && waited + SLACK_MS < (UNSENT[failure ?? ''] ?? 0)
      })
      .map(({ id }) => id),
  sent_while_held: ({ attempts, holds }: Books) =>
    attempts
      .filter((attempt) => holds.some((hold) => forbids(hold, attempt)))
      .map(({ refundId }) => refundId),
  sent_unrecorded: (books: Books) =>
    [...books.sends.keys()].filter((id) => {
      const recorded = books.attempts.filter(({ refundId }) => refundId === id)
      return countKnownSends(books, id) > recorded.length
    }),
  changed_by_other: ({ changedByOther }: Books) => [...changedByOther],
  sent_too_late: ({ repeatedLate }: Books) => [...repeatedLate],
  refundable_twice: ({ payments, made, settled }: Books) =>
    payments
      .filter(({ id, amount, refundable }) => settled && sumTaken(made, id) + refundable > amount)
      .map(({ id }) => id),
  kept_for_nothing: (books: Books) =>
    books.payments
      .filter((payment) => {
        const { made, settled } = books
        const { id, amount, refundable, externalReserved } = payment
        const kept = sum([externalReserved, sumUnmatched(payment, books)])
        return settled && sum([sumTaken(made, id), refundable, kept]) < amount
      })
      .map(({ id }) => id),
} satisfies Record<string, (books: Books) => string[]>

/** Compares the service's books with the gateway's, by both of their records alone. */
export function audit(books: Books): Violation[] {
  return Object.entries(RULES).flatMap(([rule, find]) =>
    find(books).map((id) => ({ rule: rule as keyof typeof RULES, id })),
  )
}

/**
 * Whether a person decided that it failed, and a success was notified afterwards, although it never moved: it counts as
 * moved, with a discrepancy.
 */
function isOverruled({ status, decided, disputed }: ShownRefund): boolean {
  return status === 'succeeded' && decided === 'failed' && disputed
}

/**
 * What is kept for refunds of ours whose growth was taken for another: for an external one that may belong to the first
 * sight as much as it takes, and all of it for one that was notified as a success and failed. Only a person can tell
 * them apart.
 */
function sumUnmatched({ id, atFirst, externalMatched }: ShownPayment, books: Books): number {
  const { shown, made, misreported } = books
  const own = shown.filter(
    ({ paymentId, status, matched }) => paymentId === id && status === 'succeeded' && !matched,
  )
  const isOurs = (requestId: string) => shown.some((one) => one.id === requestId)
  const isOverruledHere = shown.some(
    (one) => one.paymentId === id && isOverruled(one) && misreported.has(one.id),
  )
  const isLiedAbout = made.some(
    ({ paymentId, requestId, status }) =>
      paymentId === id && status === 'failed' && misreported.has(requestId) && !isOurs(requestId),
  )
  const isLost = isOverruledHere || (isLiedAbout && externalMatched > 0)
  const most = isLost ? Infinity : Math.min(atFirst, externalMatched)
  return Math.min(most, sum(own.map(({ amount }) => amount)))
}

/** How often a refund was sent, as far as the service can know. */
function countKnownSends({ sends, lostSends }: Books, id: string): number {
  return (sends.get(id) ?? 0) - (lostSends.get(id) ?? 0)
}

function forbids(
  { target, id, from, until = Number.POSITIVE_INFINITY }: ShownHold,
  { refundId, paymentId, at }: ShownAttempt,
): boolean {
  const covers = target === 'merchant' || id === (target === 'payment' ? paymentId : refundId)
  return covers && at > from && at < until
}

function hasMoved({ made, settled }: Books, id: string): boolean {
  const statuses = settled ? ['moved'] : ['moved', 'moving']
  return made.some(({ requestId, status }) => requestId === id && statuses.includes(status))
}

function isTaken({ made }: Books, id: string): boolean {
  return made.some(({ requestId, status }) => requestId === id && status !== 'failed')
}

function sumTaken(made: readonly MadeRefund[], paymentId: string): number {
  const taken = made.filter((one) => one.paymentId === paymentId && one.status !== 'failed')
  return sum(taken.map(({ amount }) => amount))
}

/** Adds amounts of at most four decimals exactly. */
function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, one) => total + Math.round(one * 10_000), 0) / 10_000
}
