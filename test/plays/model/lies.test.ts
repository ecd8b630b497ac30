import { describe, expect, it } from 'vitest'
import { audit, RULES } from './auditor.ts'
import type {
  Answer,
  Books,
  MadeRefund,
  ShownAttempt,
  ShownExternal,
  ShownHold,
  ShownRefund,
  ToldFailure,
} from './books.ts'

const shown = (id: string, facts: Partial<ShownRefund> = {}): ShownRefund => ({
  id,
  paymentId: 'P',
  amount: 30,
  status: 'succeeded',
  inferred: false,
  matched: true,
  review: null,
  failure: null,
  failureSource: null,
  released: false,
  due: false,
  disputed: false,
  ...facts,
})
const made = (requestId: string, facts: Partial<MadeRefund> = {}): MadeRefund => ({
  requestId,
  paymentId: 'P',
  amount: 30,
  status: 'moved',
  ...facts,
})

const attempt = (refundId: string, at: number): ShownAttempt => ({ refundId, paymentId: 'P', at })
const external = (facts: Partial<ShownExternal> = {}): ShownExternal => ({
  requestId: 'portal',
  paymentId: 'P',
  amount: 10,
  state: 'matched',
  ...facts,
})
const refusal = (facts: Partial<ToldFailure> = {}): ToldFailure => ({
  requestId: 'b',
  code: '37',
  by: 'answer',
  at: 0,
  answers: 1,
  ...facts,
})
const answer = (at: number, refunded = 40): Answer => ({ at, refunded: new Map([['P', refunded]]) })
const cancelled = shown('c', {
  status: 'failed',
  matched: false,
  failure: 'cancelled',
  failureSource: 'merchant',
})
const refused = shown('b', {
  status: 'failed',
  matched: false,
  failure: '37',
  failureSource: 'gateway',
})
const returned = shown('a', { status: 'returned', released: true, matched: false })
const MINUTE = 60_000

/**
 * One refund that moved, one that was refused, one that was cancelled, and one made at the portal; everything is settled.
 */
const TRUTH: Books = {
  phase: 'settled',
  payments: [
    {
      id: 'P',
      amount: 100,
      refundable: 60,
      atFirst: 0,
      refunded: 40,
      highest: 40,
      unexplained: false,
    },
  ],
  shown: [shown('a'), refused, cancelled],
  external: [external()],
  made: [made('a'), made('b', { status: 'failed' }), made('portal', { amount: 10 })],
  known: new Set(['a', 'b', 'c', 'portal']),
  sends: new Map([
    ['a', 1],
    ['b', 1],
  ]),
  lostSends: new Map(),
  attempts: [attempt('a', 100), attempt('b', 200)],
  holds: [
    { target: 'payment', id: 'P', from: 210 },
    { target: 'refund', id: 'a', from: 50, until: 99 },
    { target: 'refund', id: 'a', from: 101 },
    { target: 'payment', id: 'Q', from: 0 },
  ],
  cancelled: new Set(['c']),
  waitedMs: new Map([['c', 5]]),
  mayRepeat: false,
  repeatedLate: new Set(),
  successes: new Set(['a', 'portal']),
  failures: [refusal()],
  answers: [answer(0), answer(MINUTE), answer(11 * MINUTE)],
  baselines: new Map([
    ['a', 0],
    ['b', 40],
  ]),
  failedAt: new Map([
    ['b', 11 * MINUTE],
    ['c', 0],
  ]),
  saidReturned: new Map(),
  neverHappened: new Set(),
  firstSight: new Set(),
  misjudged: new Set(),
  misreported: new Set(),
  changedByOther: [],
}
const [payment] = TRUTH.payments
if (!payment) throw new Error('the truth has no payment')
const OPEN: Books = { ...TRUTH, phase: 'open' }
const REST: Books = { ...TRUTH, phase: 'rest' }
/** The money of `a` came back; one person has said so, at first. */
const BACK: Books = {
  ...OPEN,
  shown: [returned, refused, cancelled],
  made: [made('a', { status: 'failed' }), made('portal', { amount: 10 })],
  saidReturned: new Map([['a', { people: 1, at: 0 }]]),
}

/** Holds under which the attempt of `a` must not have been recorded. */
const HOLDS: readonly ShownHold[] = [
  { target: 'merchant', id: 'M', from: 99 },
  { target: 'payment', id: 'P', from: 99, until: 101 },
  { target: 'refund', id: 'a', from: 99 },
]

/** More than was paid moved, under an id that nobody knows. */
const OVERDRAWN: Books = { ...OPEN, made: [...TRUTH.made, made('d', { amount: 60.0001 })] }
/** The bytes of the refund that was cancelled left, as was recorded. */
const SENT = {
  sends: new Map([...TRUTH.sends, ['c', 1]]),
  attempts: [...TRUTH.attempts, attempt('c', 50)],
}

type Lie = readonly [keyof typeof RULES, string, Books]

/** What the service or the gateway could get wrong, and the rule that has to find it. */
const LIES: readonly Lie[] = [
  ['moved_twice', 'a', { ...OPEN, made: [...TRUTH.made, made('a')] }],
  ['moved_twice', 'a', { ...OPEN, made: [...TRUTH.made, made('a', { status: 'moving' })] }],
  ['too_much_moved', 'P', { ...OPEN, made: [...TRUTH.made, made('c', { amount: 60.0001 })] }],
  ['too_much_moved', 'P', { ...OVERDRAWN, known: new Set([...TRUTH.known, 'd']) }],
  ['moved_unasked', 'd', OVERDRAWN],
  ['moved_unasked', 'portal', { ...OPEN, known: new Set(['a', 'b', 'c']) }],
  ['failed_and_moves', 'b', { ...OPEN, made: [made('a'), made('b')] }],
  ['failed_and_moves', 'b', { ...OPEN, made: [made('a'), made('b', { status: 'moving' })] }],
  [
    'failed_and_moves',
    'b',
    { ...OPEN, shown: [{ ...refused, disputed: true }], made: [made('b')] },
  ],
  ['failed_and_moves', 'b', { ...REST, misjudged: new Set(['b']), made: [made('a'), made('b')] }],
  [
    'failed_and_moves',
    'b',
    { ...TRUTH, shown: [{ ...refused, disputed: true }], made: [made('b')] },
  ],
  ['succeeded_and_did_not', 'a', { ...OPEN, made: [made('a', { status: 'failed' })] }],
  ['succeeded_and_did_not', 'a', { ...OPEN, made: [] }],
  ['succeeded_and_did_not', 'a', { ...REST, made: [made('a', { status: 'moving' })] }],
  [
    'succeeded_and_did_not',
    'a',
    { ...REST, shown: [shown('a', { inferred: true, matched: false })], made: [] },
  ],
  ['released_and_moved', 'a', { ...BACK, made: [made('a')] }],
  [
    'released_and_moved',
    'a',
    {
      ...BACK,
      ...{ phase: 'settled', made: [made('a')] },
      saidReturned: new Map([['a', { people: 2, at: 0 }]]),
    },
  ],
  ['released_early', 'a', { ...BACK, answers: [answer(0), answer(0), answer(MINUTE)] }],
  [
    'released_early',
    'a',
    { ...BACK, saidReturned: new Map([['a', { people: 1, at: 2 * MINUTE }]]) },
  ],
  ['released_early', 'a', { ...BACK, saidReturned: new Map() }],
  ['inference_freed', 'a', { ...OPEN, shown: [shown('a', { inferred: true })] }],
  [
    'inference_freed',
    'c',
    { ...OPEN, shown: [shown('c', { status: 'needs_review', matched: true })] },
  ],
  [
    'known_by_nobody',
    'a',
    { ...OPEN, shown: [shown('a', { matched: false })], successes: new Set() },
  ],
  ['failed_early', 'b', { ...OPEN, failedAt: new Map([['b', 8 * MINUTE]]) }],
  ['failed_early', 'b', { ...OPEN, failures: [refusal({ at: 3 * MINUTE, answers: 0 })] }],
  ['failed_unconfirmed', 'b', { ...OPEN, answers: [answer(0), answer(11 * MINUTE)] }],
  [
    'failed_unconfirmed',
    'b',
    { ...OPEN, answers: [answer(0), answer(10.9 * MINUTE), answer(11 * MINUTE)] },
  ],
  [
    'failed_unconfirmed',
    'b',
    { ...OPEN, answers: [answer(0), answer(MINUTE), answer(5 * MINUTE, 70), answer(11 * MINUTE)] },
  ],
  ['failed_by_open_code', 'b', { ...OPEN, shown: [{ ...refused, failure: '1' }] }],
  [
    'failed_by_open_code',
    'b',
    { ...OPEN, shown: [{ ...refused, failure: '1' }], failures: [refusal({ code: '1' })] },
  ],
  [
    'failed_by_open_code',
    'b',
    {
      ...OPEN,
      shown: [{ ...refused, failure: '24' }],
      failures: [refusal({ code: '24', by: 'notification' })],
    },
  ],
  ...['released', 'never_happened', 'part_of_first_sight'].map(
    (state): Lie => ['external_freed', 'portal', { ...OPEN, external: [external({ state })] }],
  ),
  [
    'never_happened_undone',
    'portal',
    { ...OPEN, external: [external({ state: 'reserved' })], neverHappened: new Set(['portal']) },
  ],
  [
    'no_exit',
    'd',
    {
      ...OPEN,
      shown: [...TRUTH.shown, shown('d', { status: 'unknown', matched: false })],
      payments: [{ ...payment, refundable: 30 }],
    },
  ],
  ['no_exit', 'c', { ...OPEN, shown: [shown('c', { status: 'pending' })] }],
  [
    'no_exit',
    'c',
    { ...OPEN, shown: [shown('c', { status: 'needs_review', review: 'no_evidence' })] },
  ],
  ['never_ends', 'c', { ...TRUTH, shown: [shown('c', { status: 'needs_review' })] }],
  ['never_ends', 'c', { ...TRUTH, shown: [shown('c', { status: 'accepted', due: true })] }],
  [
    'never_ends',
    'portal',
    {
      ...TRUTH,
      external: [external({ state: 'reserved' })],
      payments: [{ ...payment, unexplained: true }],
    },
  ],
  ['matched_more_than_shown', 'P', { ...OPEN, payments: [{ ...payment, highest: 39.9999 }] }],
  ['matched_more_than_shown', 'P', { ...OPEN, payments: [{ ...payment, atFirst: 1 }] }],
  ['unexplained_in_silence', 'P', { ...REST, payments: [{ ...payment, refunded: 40.0001 }] }],
  ['unexplained_in_silence', 'P', { ...REST, external: [external({ state: 'reserved' })] }],
  [
    'sent_again',
    'a',
    {
      ...OPEN,
      sends: new Map([['a', 2]]),
      attempts: [...TRUTH.attempts, attempt('a', 100)],
    },
  ],
  ['sent_too_late', 'a', { ...OPEN, mayRepeat: true, repeatedLate: new Set(['a']) }],
  ['cancelled_and_sent', 'c', { ...OPEN, ...SENT, shown: [shown('a'), refused] }],
  [
    'cancelled_and_moves',
    'c',
    { ...OPEN, shown: [shown('a'), refused], made: [...TRUTH.made, made('c')] },
  ],
  ['cancelled_and_moves', 'c', { ...OPEN, made: [made('c', { status: 'moving' })] }],
  ...['declined', 'approval_expired', 'not_sent_in_time', 'exceeds_refundable'].map(
    (failure): Lie => [
      'unsent_and_sent',
      'c',
      {
        ...OPEN,
        ...SENT,
        ...{ cancelled: new Set(), waitedMs: new Map() },
        shown: [shown('a'), refused, { ...cancelled, failure }],
      },
    ],
  ),
  ...['approval_expired', 'not_sent_in_time'].map(
    (failure): Lie => [
      'expired_early',
      'c',
      { ...OPEN, shown: [shown('a'), refused, { ...cancelled, failure }] },
    ],
  ),
  ...HOLDS.map((hold): Lie => ['sent_while_held', 'a', { ...OPEN, holds: [hold] }]),
  ['sent_unrecorded', 'b', { ...OPEN, attempts: [attempt('a', 100)] }],
  ['changed_by_other', 'refunds', { ...OPEN, changedByOther: ['refunds'] }],
  ['refundable_twice', 'P', { ...OPEN, payments: [{ ...payment, refundable: 60.0001 }] }],
  [
    'refundable_twice',
    'P',
    { ...OPEN, shown: [...TRUTH.shown, shown('d', { status: 'unknown', matched: false })] },
  ],
  [
    'refundable_twice',
    'P',
    {
      ...OPEN,
      shown: [...TRUTH.shown, shown('d', { inferred: true, matched: false })],
      made: [...TRUTH.made, made('d', { status: 'failed' })],
    },
  ],
  ['refundable_twice', 'P', { ...OPEN, external: [], payments: [{ ...payment, refundable: 61 }] }],
  ['kept_for_nothing', 'P', { ...TRUTH, payments: [{ ...payment, refundable: 59.9999 }] }],
]

describe('the auditor of the model', () => {
  it('finds nothing in the truth', () => {
    expect(audit(TRUTH)).toEqual([])
    expect(audit(OPEN)).toEqual([])
  })

  it.each(LIES)('finds the lie: %s of %s (%#)', (rule, id, books) => {
    expect(audit(books)).toContainEqual({ rule, id })
  })

  it('has a lie for each of its rules, which no other rule finds', () => {
    const alone = LIES.filter(([rule, , books]) => audit(books).every((one) => one.rule === rule))
    expect(new Set(alone.map(([rule]) => rule))).toEqual(new Set(Object.keys(RULES)))
  })

  it('excuses a cancellation only from what was lost', () => {
    const sent = {
      sends: new Map([['c', 1]]),
      attempts: [],
      made: [made('c', { status: 'moving' })],
    }
    const rules = (books: Partial<Books>) =>
      audit({ ...OPEN, ...sent, misreported: new Set(['c']), shown: [], ...books }).map(
        ({ rule }) => rule,
      )
    expect(rules({ lostSends: new Map([['c', 1]]) })).toEqual([])
    expect(rules({})).toEqual(['cancelled_and_sent', 'cancelled_and_moves', 'sent_unrecorded'])
  })

  it('excuses what nobody can know yet, and only until everything is at rest', () => {
    const rules = (books: Books) => audit(books).map(({ rule }) => rule)
    const never = { ...OPEN, made: [made('portal', { amount: 10 })] }
    expect(rules({ ...never, misreported: new Set(['a']) })).toEqual([])
    expect(rules(never)).toEqual(['succeeded_and_did_not'])
    expect(rules({ ...never, phase: 'rest', misreported: new Set(['a']) })).toEqual([
      'succeeded_and_did_not',
    ])
    const inferred = [shown('a', { inferred: true, matched: false }), refused, cancelled]
    const payments = [{ ...payment, unexplained: true }]
    expect(rules({ ...never, payments, shown: inferred })).toEqual([])
  })

  it('excuses what a person decided wrongly, and at rest only if a discrepancy says so', () => {
    const rules = (books: Books) => audit(books).map(({ rule }) => rule)
    const moved = { ...OPEN, payments: [{ ...payment, refundable: 0 }] }
    const wrong = { ...moved, made: [...TRUTH.made, made('c')], cancelled: new Set<string>() }
    expect(rules(wrong)).toEqual(['failed_and_moves'])
    expect(rules({ ...wrong, misjudged: new Set(['c']) })).toEqual([])
    expect(rules({ ...wrong, phase: 'rest', misjudged: new Set(['c']) })).toEqual([
      'failed_and_moves',
    ])
    const disputed = [shown('a'), refused, { ...cancelled, disputed: true }]
    expect(rules({ ...wrong, phase: 'rest', shown: disputed })).toEqual([])
  })

  it('lets two people release what came back, and what did not, until everything is settled', () => {
    const rules = (books: Books) => audit(books).map(({ rule }) => rule)
    const payments = [{ ...payment, refundable: 90, refunded: 10 }]
    const answers = [answer(0, 10)]
    const two = { ...BACK, payments, answers, saidReturned: new Map([['a', { people: 2, at: 0 }]]) }
    expect(rules({ ...two, shown: [returned] })).toEqual([])
    expect(
      rules({ ...two, shown: [returned], made: [made('a'), made('portal', { amount: 10 })] }),
    ).toEqual([])
  })
})
