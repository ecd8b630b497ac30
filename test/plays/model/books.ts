/** A refund as the service shows it. */
export type ShownRefund = {
  id: string
  paymentId: string
  amount: number
  status: string
  inferred: boolean
  matched: boolean
  review: string | null
  /** Why it failed, and who says so. */
  failure: string | null
  failureSource: string | null
  /** It came back, and its amount is released. */
  released: boolean
  due: boolean
  /** An open discrepancy says that something is wrong with it, or with the refunded amount of its payment. */
  disputed: boolean
}

/** A refund made elsewhere, as the service shows it. */
export type ShownExternal = {
  requestId: string
  paymentId: string
  amount: number
  state: string
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
  /** What is left of it. */
  refundable: number
  /** What was refunded when it was first seen, and by the newest answer. */
  atFirst: number
  refunded: number
  /** The most that the gateway ever showed to be refunded. */
  highest: number
  /** An open discrepancy says that more was refunded than is known of. */
  unexplained: boolean
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

/** A failure that the gateway told: in its answer to a REFUND, or in a notification. */
export type ToldFailure = {
  requestId: string
  code: string
  by: 'answer' | 'notification'
  /** When (world time), and how many answers to queries there were before. */
  at: number
  answers: number
}

/** An answer to a query: when it was asked for (world time), and the refunded amounts of the payments that it lists. */
export type Answer = { at: number; refunded: ReadonlyMap<string, number> }

/** What people said of a refund that came back: how many of them, and since when (world time). */
export type SaidReturned = { people: number; at: number }

/**
 * `open`: anything may still happen. `rest`: everything has settled, was notified and shown, and all waits are over.
 * `settled`: people have decided everything by the gateway's ledger, too.
 */
export type Phase = 'open' | 'rest' | 'settled'

/** Both sides of the wire at one moment, and what the gateway and people have said of each refund. */
export type Books = {
  phase: Phase
  payments: readonly ShownPayment[]
  shown: readonly ShownRefund[]
  external: readonly ShownExternal[]
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
  /** Refunds whose success the gateway notified, or a person decided. */
  successes: ReadonlySet<string>
  failures: readonly ToldFailure[]
  answers: readonly Answer[]
  /** The refunded amount that the newest answer showed when a refund was first sent. */
  baselines: ReadonlyMap<string, number>
  /** When a refund was first seen to have failed (world time). */
  failedAt: ReadonlyMap<string, number>
  saidReturned: ReadonlyMap<string, SaidReturned>
  /** Refunds made elsewhere that a person decided never to have happened. */
  neverHappened: ReadonlySet<string>
  /** Those that may be part of the first sight: notified before it, or decided so by a person. */
  firstSight: ReadonlySet<string>
  /** Refunds that people decided against the ledger. */
  misjudged: ReadonlySet<string>
  /** Refunds of which the gateway said what is not true. */
  misreported: ReadonlySet<string>
  /** Tables in which a step of another account has changed rows of this one. */
  changedByOther: readonly string[]
}
