/** A refund as the service shows it. */
export type ShownRefund = {
  id: string
  paymentId: string
  amount: number
  status: string
  inferred: boolean
  matched: boolean
  review: string | null
  due: boolean
  /** A discrepancy or a notification against its status is on record. */
  disputed: boolean
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
  refundable: number
  /** What was refunded when it was first seen, and the most that was ever shown to be refunded. */
  atFirst: number
  highest: number
  /** External refunds, by what they count as. */
  externalMatched: number
  externalReserved: number
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
  mayRepeat: boolean
  /** Ids sent again later than the service may rely on the gateway's memory. */
  repeatedLate: ReadonlySet<string>
  /** Refunds of which the gateway said what is not true, or whose evidence was lost with commits. */
  misreported: ReadonlySet<string>
  /** Everything has settled, was notified, shown and decided. */
  settled: boolean
}

const ENDS: readonly string[] = ['succeeded', 'failed', 'returned']

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
      .filter(({ id }) => books.settled || !books.misreported.has(id))
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
  sent_too_late: ({ repeatedLate }: Books) => [...repeatedLate],
  refundable_twice: ({ payments, made, settled }: Books) =>
    payments
      .filter(({ id, amount, refundable }) => settled && sumTaken(made, id) + refundable > amount)
      .map(({ id }) => id),
  kept_for_nothing: ({ payments, shown, made, settled }: Books) =>
    payments
      .filter((payment) => {
        const { id, amount, refundable, externalReserved } = payment
        const kept = sum([externalReserved, sumUnmatched(payment, shown)])
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
 * What is kept for refunds of ours whose growth was taken for an external one that may belong to the first sight: only
 * a person can tell them apart.
 */
function sumUnmatched(
  { id, atFirst, externalMatched }: ShownPayment,
  shown: readonly ShownRefund[],
): number {
  const own = shown.filter(
    ({ paymentId, status, matched }) => paymentId === id && status === 'succeeded' && !matched,
  )
  const most = Math.min(atFirst, externalMatched)
  return Math.min(most, sum(own.map(({ amount }) => amount)))
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
