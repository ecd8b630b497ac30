import type {
  Answer,
  Books,
  MadeRefund,
  ShownAttempt,
  ShownHold,
  ShownPayment,
  ShownRefund,
  ToldFailure,
} from './books.ts'

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
/** Codes that may end a refund as failed. */
const FINAL: Readonly<Record<ToldFailure['by'], readonly string[]>> = {
  answer: ['31', '32', '33', '34', '37'],
  notification: ['-1', '1', '18', '30', '31', '32', '33', '34', '37'],
}
/** How long nothing that the gateway told is believed. */
const CONFIRM_MS = 600_000
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
  /** At rest it is a person's, or a discrepancy says so; before, only a person or lost records can be wrong. */
  failed_and_moves: (books: Books) =>
    books.shown
      .filter(({ status, id }) => status === 'failed' && isTaken(books, id))
      .filter(({ id, disputed }) => {
        if (books.phase !== 'open') return books.phase === 'settled' || !disputed
        return !books.misjudged.has(id) && !books.lostSends.get(id)
      })
      .map(({ id }) => id),
  /** What was only inferred may be wrong, until everything is at rest. */
  succeeded_and_did_not: (books: Books) =>
    books.shown
      .filter(({ status, id }) => status === 'succeeded' && !hasMoved(books, id))
      .filter(({ id, inferred, disputed }) => {
        if (books.phase === 'settled') return true
        if (books.misjudged.has(id)) return false
        return books.phase === 'rest' ? !disputed : !inferred && !books.misreported.has(id)
      })
      .map(({ id }) => id),
  /** One person's word does not release what came back; answers may release it for another one of its amount that did. */
  released_and_moved: (books: Books) =>
    books.shown
      .filter(({ released, id }) => released && isTaken(books, id))
      .filter((one) => {
        if (books.phase === 'settled') return true
        return !isReleasedByPeople(books, one.id) && !isReleasedForAnother(books, one)
      })
      .map(({ id }) => id),
  released_early: (books: Books) =>
    books.shown
      .filter(({ released, id }) => released && !isReleasedByPeople(books, id))
      .filter(({ id }) => {
        const { at } = books.saidReturned.get(id) ?? { at: Number.POSITIVE_INFINITY }
        const times = books.answers.map((answer) => answer.at).filter((one) => one >= at)
        return !areApart(times[0], times.at(-1))
      })
      .map(({ id }) => id),
  /** Only what was notified, or a person knows, is matched. */
  inference_freed: ({ shown, successes }: Books) =>
    shown
      .filter(({ id, inferred, matched }) => matched && (inferred || !successes.has(id)))
      .map(({ id }) => id),
  known_by_nobody: ({ shown, successes }: Books) =>
    shown
      .filter(
        ({ id, status, inferred }) => status === 'succeeded' && !inferred && !successes.has(id),
      )
      .map(({ id }) => id),
  failed_early: ({ shown, failures, failedAt }: Books) =>
    shown
      .filter(isFailedByGateway)
      .filter(({ id }) => {
        const told = failures.filter(({ requestId }) => requestId === id).map(({ at }) => at)
        return !areApart(Math.min(...told), failedAt.get(id))
      })
      .map(({ id }) => id),
  failed_unconfirmed: (books: Books) =>
    books.shown
      .filter(isFailedByGateway)
      .filter((one) => !isConfirmed(books, one))
      .map(({ id }) => id),
  failed_by_open_code: ({ shown, failures }: Books) =>
    shown
      .filter(isFailedByGateway)
      .filter(({ id, failure }) => {
        const told = failures.filter(({ requestId, code }) => requestId === id && code === failure)
        return !told.some(({ by, code }) => FINAL[by].includes(code))
      })
      .map(({ id }) => id),
  external_freed: ({ external, neverHappened, firstSight }: Books) =>
    external
      .filter(
        ({ requestId, state }) =>
          state === 'released' ||
          (state === 'never_happened' && !neverHappened.has(requestId)) ||
          (state === 'part_of_first_sight' && !firstSight.has(requestId)),
      )
      .map(({ requestId }) => requestId),
  never_happened_undone: ({ external, neverHappened }: Books) =>
    external
      .filter(({ requestId, state }) => neverHappened.has(requestId) && state !== 'never_happened')
      .map(({ requestId }) => requestId),
  no_exit: ({ shown }: Books) =>
    shown
      .filter(
        ({ status, due, review }) =>
          (['pending', 'sending', 'accepted', 'unknown'].includes(status) && !due) ||
          (status === 'needs_review' && review === 'no_evidence' && !due),
      )
      .map(({ id }) => id),
  never_ends: ({ shown, external, phase }: Books) => [
    ...shown
      .filter(({ status }) => phase === 'settled' && !ENDS.includes(status))
      .map(({ id }) => id),
    ...external
      .filter(({ state }) => phase === 'settled' && state === 'reserved')
      .map(({ requestId }) => requestId),
  ],
  matched_more_than_shown: (books: Books) =>
    books.payments
      .filter((payment) => payment.highest < sum([payment.atFirst, sumMatched(payment, books)]))
      .map(({ id }) => id),
  unexplained_in_silence: (books: Books) =>
    books.payments
      .filter((payment) => books.phase !== 'open' && sumUnexplained(payment, books) > 0)
      .filter(({ unexplained }) => !unexplained)
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
  /** What is left is at most what was paid, less all that the service knows to have moved, or that may move. */
  refundable_twice: (books: Books) =>
    books.payments
      .filter(({ refundable }) => refundable > 0)
      .filter((payment) => sum([payment.refundable, sumAtRisk(payment, books)]) > payment.amount)
      .map(({ id }) => id),
  kept_for_nothing: ({ payments, made, phase }: Books) =>
    payments
      .filter(({ id, amount, refundable }) => {
        return phase === 'settled' && sum([sumTaken(made, id), refundable]) < amount
      })
      .map(({ id }) => id),
} satisfies Record<string, (books: Books) => string[]>

/** Compares the service's books with the gateway's, by both of their records alone. */
export function audit(books: Books): Violation[] {
  return Object.entries(RULES).flatMap(([rule, find]) =>
    find(books).map((id) => ({ rule: rule as keyof typeof RULES, id })),
  )
}

/** Whether two moments are known, and apart by the time that nothing is believed before. */
function areApart(from: number | undefined, to: number | undefined): boolean {
  return from !== undefined && to !== undefined && to - from >= CONFIRM_MS - SLACK_MS
}

function isFailedByGateway({ status, failureSource }: ShownRefund): boolean {
  return status === 'failed' && failureSource === 'gateway'
}

/** Whether two answers from after a failure was told, apart, and all between them, show no growth of the refund. */
function isConfirmed({ failures, answers, baselines }: Books, one: ShownRefund): boolean {
  const { id, paymentId, amount } = one
  const told = failures.filter(({ requestId }) => requestId === id)
  const later = answers.slice(Math.min(...told.map((failure) => failure.answers)))
  const shows = ({ refunded }: Answer) =>
    sum([refunded.get(paymentId) ?? 0, -(baselines.get(id) ?? 0)])
  let since: number | undefined
  for (const answer of later.filter(({ refunded }) => refunded.has(paymentId))) {
    if (shows(answer) >= amount) since = undefined
    else if (areApart(since, answer.at)) return true
    else since ??= answer.at
  }
  return false
}

function isReleasedByPeople({ saidReturned }: Books, id: string): boolean {
  return (saidReturned.get(id)?.people ?? 0) > 1
}

/** Whether another refund of the amount came back, and waits for its release: nobody can tell which of the two it was. */
function isReleasedForAnother(books: Books, { paymentId, amount }: ShownRefund): boolean {
  return books.shown.some(
    (one) =>
      one.paymentId === paymentId &&
      one.amount === amount &&
      one.status === 'returned' &&
      !one.released &&
      !isTaken(books, one.id),
  )
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

function hasMoved({ made, phase }: Books, id: string): boolean {
  const statuses = phase === 'open' ? ['moved', 'moving'] : ['moved']
  return made.some(({ requestId, status }) => requestId === id && statuses.includes(status))
}

function isTaken({ made }: Books, id: string): boolean {
  return made.some(({ requestId, status }) => requestId === id && status !== 'failed')
}

function sumTaken(made: readonly MadeRefund[], paymentId: string): number {
  const taken = made.filter((one) => one.paymentId === paymentId && one.status !== 'failed')
  return sum(taken.map(({ amount }) => amount))
}

function sumMatched({ id }: ShownPayment, { shown, external }: Books): number {
  const own = shown.filter(({ paymentId, matched }) => paymentId === id && matched)
  const others = external.filter(({ paymentId, state }) => paymentId === id && state === 'matched')
  return sum([...own, ...others].map(({ amount }) => amount))
}

/** What the newest answer shows beyond what is matched, and what was inferred from it. */
function sumUnexplained(payment: ShownPayment, books: Books): number {
  const inferred = books.shown.filter(
    ({ paymentId, status, inferred }) =>
      paymentId === payment.id && status === 'succeeded' && inferred,
  )
  const explained = [
    payment.atFirst,
    sumMatched(payment, books),
    ...inferred.map(({ amount }) => amount),
  ]
  return sum([payment.refunded, ...explained.map((one) => -one)])
}

/**
 * What of a payment has moved, or may move, as far as the service can know: refunds of ours that did not fail and were not
 * released, refunds made elsewhere that it was notified of or that were there before, and all others once the newest
 * answer shows as much as has moved.
 */
function sumAtRisk({ id, refunded }: ShownPayment, books: Books): number {
  const { shown, external, made, neverHappened } = books
  const ours = shown.filter(({ paymentId }) => paymentId === id)
  const kept = ours.filter(({ id: own, status, matched, released }) => {
    // What did not move, and was said to have moved, is matched to what somebody else moved.
    return status !== 'failed' && !released && (!matched || isTaken(books, own))
  })
  const moved = made.filter(({ paymentId, status }) => paymentId === id && status === 'moved')
  const isFresh = refunded >= sum(moved.map(({ amount }) => amount))
  const elsewhere = moved.filter(({ requestId }) => {
    if (kept.some((one) => one.id === requestId)) return false
    const isKnown = external.some((one) => one.requestId === requestId)
    return isFresh || (isKnown && !neverHappened.has(requestId))
  })
  return sum([...kept, ...elsewhere].map(({ amount }) => amount))
}

/** Adds amounts of at most four decimals exactly. */
function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, one) => total + Math.round(one * 10_000), 0) / 10_000
}
