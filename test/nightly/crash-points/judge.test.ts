import { describe, expect, it } from 'vitest'
import { type Damage, judge, type Observed } from './judge.ts'

/** A refund whose money moved once, on a gateway that does not deduplicate. */
const MOVED: Observed = {
  refundId: 'R1',
  amount: '30',
  paid: '100',
  dedupes: false,
  moved: ['30'],
  arrived: 1,
  stored: [{ id: 'R1', status: 'succeeded' }],
  attempts: ['answered'],
  refundable: '70',
  isInferred: false,
  isLeased: false,
  isFinal: true,
  events: [
    { type: 'refund.created', status: 'pending' },
    { type: 'refund.updated', status: 'succeeded' },
  ],
  refundableDecided: null,
}

/** A refund that may have been lost on its way, and waits for a person. */
const LOST: Observed = {
  ...MOVED,
  moved: [],
  arrived: 0,
  stored: [{ id: 'R1', status: 'needs_review' }],
  attempts: ['unknown'],
  isFinal: false,
  events: [
    { type: 'refund.created', status: 'pending' },
    { type: 'refund.updated', status: 'needs_review' },
  ],
  refundableDecided: '100',
}

/** The same, which only growth shows. */
const INFERRED: Observed = {
  ...MOVED,
  isInferred: true,
  refundable: '40',
  refundableDecided: '70',
}

const LIES: [string, Damage, Observed][] = [
  ['a movement is doubled', 'moved twice', { ...MOVED, moved: ['30', '30'] }],
  ['another amount moved', 'moved twice', { ...MOVED, moved: ['60'] }],
  ['nothing moved, without an attempt', 'not moved', { ...LOST, attempts: [] }],
  ['nothing moved, although it was answered', 'not moved', { ...LOST, attempts: ['answered'] }],
  ['nothing moved, where it may be sent again', 'not moved', { ...LOST, dedupes: true }],
  ['it moved, and waits for a person', 'disagrees', { ...LOST, moved: ['30'] }],
  ['it succeeded without moving', 'disagrees', { ...MOVED, moved: [], attempts: ['unknown'] }],
  ['it is still unknown', 'stuck', { ...LOST, stored: [{ id: 'R1', status: 'unknown' }] }],
  ['it was sent without a record', 'disagrees', { ...MOVED, arrived: 2 }],
  [
    'the request was stored twice',
    'disagrees',
    { ...MOVED, stored: [...MOVED.stored, { id: 'R2', status: 'pending' }] },
  ],
  ['it was stored under another id', 'disagrees', { ...MOVED, refundId: 'R2' }],
  ['an attempt has no end', 'stuck', { ...MOVED, attempts: ['answered', null] }],
  ['its transaction stays leased', 'stuck', { ...MOVED, isLeased: true }],
  ['its transaction stays open', 'stuck', { ...MOVED, isFinal: false }],
  ['its amount can be refunded again', 'disagrees', { ...MOVED, refundable: '100' }],
  ['a person cannot release it', 'stuck', { ...LOST, refundableDecided: null }],
  ['what was inferred frees its amount', 'disagrees', { ...INFERRED, refundable: '70' }],
  ['a person cannot confirm it', 'stuck', { ...INFERRED, refundableDecided: null }],
  ['its confirmation frees nothing', 'stuck', { ...INFERRED, refundableDecided: '40' }],
  ['the feed has it twice', 'disagrees', { ...MOVED, events: [...MOVED.events, ...MOVED.events] }],
  ['the feed lacks its end', 'disagrees', { ...MOVED, events: MOVED.events.slice(0, 1) }],
]

describe('the judge', () => {
  it('finds nothing where the money moved once, or a person decides about what may be lost', () => {
    expect(judge(MOVED)).toEqual([])
    expect(judge({ ...MOVED, dedupes: true })).toEqual([])
    expect(judge(INFERRED)).toEqual([])
    expect(judge(LOST)).toEqual([])
  })

  it.each(LIES)('reports that %s', (_, damage, observed) => {
    expect(judge(observed).map((one) => one.damage)).toContain(damage)
  })
})
