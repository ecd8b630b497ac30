import { describe, expect, it } from 'vitest'
import {
  audit,
  type Books,
  type MadeRefund,
  RULES,
  type ShownAttempt,
  type ShownHold,
  type ShownRefund,
} from './auditor.ts'

const shown = (id: string, facts: Partial<ShownRefund> = {}): ShownRefund => ({
  id,
  paymentId: 'P',
  amount: 30,
  status: 'succeeded',
  inferred: false,
  matched: true,
  review: null,
  failure: null,
  due: false,
  disputed: false,
  decided: null,
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
const cancelled = shown('c', { status: 'failed', matched: false, failure: 'cancelled' })

/** One refund that moved, one that was refused, one that was cancelled, and one made at the portal. */
const TRUTH: Books = {
  payments: [
    {
      id: 'P',
      amount: 100,
      refundable: 60,
      atFirst: 0,
      highest: 40,
      externalMatched: 10,
      externalReserved: 0,
    },
  ],
  shown: [shown('a'), shown('b', { status: 'failed', matched: false }), cancelled],
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
  misreported: new Set(),
  changedByOther: [],
  settled: true,
}
const [payment] = TRUTH.payments
if (!payment) throw new Error('the truth has no payment')
const OPEN = { ...TRUTH, settled: false }

/** Holds under which the attempt of `a` must not have been recorded. */
const HOLDS: readonly ShownHold[] = [
  { target: 'merchant', id: 'M', from: 99 },
  { target: 'payment', id: 'P', from: 99, until: 101 },
  { target: 'refund', id: 'a', from: 99 },
]

type Lie = readonly [keyof typeof RULES, string, Books]

/** What the service or the gateway could get wrong, and the rule that has to find it. */
const LIES: readonly Lie[] = [
  ['moved_twice', 'a', { ...OPEN, made: [...TRUTH.made, made('a')] }],
  ['moved_twice', 'a', { ...OPEN, made: [...TRUTH.made, made('a', { status: 'moving' })] }],
  ['too_much_moved', 'P', { ...OPEN, made: [...TRUTH.made, made('c', { amount: 60.0001 })] }],
  ['moved_unasked', 'stranger', { ...OPEN, made: [made('stranger', { amount: 1 })] }],
  ['failed_and_moves', 'b', { ...OPEN, made: [made('a'), made('b')] }],
  ['failed_and_moves', 'b', { ...OPEN, made: [made('a'), made('b', { status: 'moving' })] }],
  [
    'failed_and_moves',
    'b',
    { ...TRUTH, shown: [shown('b', { status: 'failed', disputed: true })], made: [made('b')] },
  ],
  ['succeeded_and_did_not', 'a', { ...OPEN, made: [made('a', { status: 'failed' })] }],
  ['succeeded_and_did_not', 'a', { ...OPEN, made: [] }],
  ['succeeded_and_did_not', 'a', { ...TRUTH, made: [made('a', { status: 'moving' })] }],
  ['returned_and_moved', 'a', { ...OPEN, shown: [shown('a', { status: 'returned' })] }],
  ['no_exit', 'c', { ...OPEN, shown: [shown('c', { status: 'unknown' })] }],
  ['no_exit', 'c', { ...OPEN, shown: [shown('c', { status: 'pending' })] }],
  [
    'no_exit',
    'c',
    { ...OPEN, shown: [shown('c', { status: 'needs_review', review: 'no_evidence' })] },
  ],
  ['never_ends', 'c', { ...TRUTH, shown: [shown('c', { status: 'needs_review' })] }],
  ['never_ends', 'c', { ...TRUTH, shown: [shown('c', { status: 'accepted', due: true })] }],
  ['matched_more_than_shown', 'P', { ...OPEN, payments: [{ ...payment, highest: 39.9999 }] }],
  ['matched_more_than_shown', 'P', { ...OPEN, payments: [{ ...payment, atFirst: 1 }] }],
  ['sent_again', 'a', { ...OPEN, sends: new Map([['a', 2]]) }],
  ['sent_too_late', 'a', { ...OPEN, mayRepeat: true, repeatedLate: new Set(['a']) }],
  ['cancelled_and_sent', 'c', { ...OPEN, sends: new Map([['c', 1]]) }],
  ['cancelled_and_moves', 'c', { ...OPEN, made: [made('c')] }],
  ['cancelled_and_moves', 'c', { ...OPEN, made: [made('c', { status: 'moving' })] }],
  ...['declined', 'approval_expired', 'not_sent_in_time', 'exceeds_refundable'].map(
    (failure): Lie => [
      'unsent_and_sent',
      'b',
      { ...OPEN, shown: [shown('b', { status: 'failed', failure })] },
    ],
  ),
  ...['approval_expired', 'not_sent_in_time'].map(
    (failure): Lie => [
      'expired_early',
      'c',
      { ...OPEN, shown: [shown('c', { status: 'failed', failure })] },
    ],
  ),
  ...HOLDS.map((hold): Lie => ['sent_while_held', 'a', { ...OPEN, holds: [hold] }]),
  ['sent_unrecorded', 'b', { ...OPEN, attempts: [attempt('a', 100)] }],
  ['changed_by_other', 'refunds', { ...OPEN, changedByOther: ['refunds'] }],
  ['refundable_twice', 'P', { ...TRUTH, payments: [{ ...payment, refundable: 60.5 }] }],
  ['kept_for_nothing', 'P', { ...TRUTH, payments: [{ ...payment, refundable: 30 }] }],
]

describe('the auditor of the model', () => {
  it('finds nothing in the truth', () => {
    expect(audit(TRUTH)).toEqual([])
    expect(audit(OPEN)).toEqual([])
  })

  it.each(LIES)('finds the lie: %s of %s (%#)', (rule, id, books) => {
    expect(audit(books)).toContainEqual({ rule, id })
  })

  it('has a lie for each of its rules', () => {
    expect(new Set(LIES.map(([rule]) => rule))).toEqual(new Set(Object.keys(RULES)))
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

  it('excuses what nobody can know yet, and only until everything is settled', () => {
    const misreported = new Set(['a', 'b'])
    const lied = { made: [made('b')], misreported }
    expect(audit({ ...OPEN, ...lied })).toEqual([])
    const found = audit({ ...TRUTH, ...lied }).map(({ rule }) => rule)
    expect(found).toEqual(expect.arrayContaining(['failed_and_moves', 'succeeded_and_did_not']))
  })

  it('excuses a success after the decision of a person only where the gateway notified it wrongly', () => {
    const overruled = shown('a', { decided: 'failed', disputed: true, matched: false })
    const never = { shown: [overruled], made: [made('a', { status: 'failed' })] }
    const rules = (facts: Partial<Books>) =>
      audit({
        ...TRUTH,
        ...never,
        payments: [{ ...payment, refundable: 70, externalMatched: 0 }],
        ...facts,
      }).map(({ rule }) => rule)
    expect(rules({ misreported: new Set(['a']) })).toEqual([])
    const found = ['succeeded_and_did_not', 'kept_for_nothing']
    expect(rules({})).toEqual(found)
    const calm = { ...overruled, disputed: false }
    expect(rules({ misreported: new Set(['a']), shown: [calm] })).toEqual(found)
  })

  it('excuses growth taken by an external refund that failed only where the gateway notified it as moved', () => {
    const books = {
      payments: [{ ...payment, refundable: 60 }],
      shown: [shown('a', { matched: false })],
      made: [made('a'), made('portal', { amount: 10, status: 'failed' as const })],
    }
    const rules = (misreported: readonly string[]) =>
      audit({ ...TRUTH, ...books, misreported: new Set(misreported) }).map(({ rule }) => rule)
    expect(rules(['portal'])).toEqual([])
    expect(rules([])).toEqual(['kept_for_nothing'])
  })
})
