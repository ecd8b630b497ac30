import { describe, expect, it } from 'vitest'
import { describeEntry } from '../../../../src/console/timeline.ts'
import { showTo } from '../../../../src/console/view.ts'
import { describeNext, describeState, signTransaction } from '../../../../src/console/words.ts'
import type { TransactionView } from '../../../../src/transactions/view.ts'

const inEnglish = <T>(words: () => T) => showTo({ language: 'en', zone: 'UTC' }, words)

const TIME = '2026-11-21T09:33:03.230Z'
const STATE: TransactionView = {
  transactionId: 'T1',
  merchantCode: 'UFLIYL',
  orderId: 'DH1',
  merchantTxnId: null,
  currency: 'VND',
  state: 'paid',
  paidAmount: '250000',
  expectedAmount: '250000',
  expectedAmountSource: 'notification',
  amountMatches: true,
  refundedAmount: '0',
  duplicatePayment: false,
  sameOrder: [],
  payments: [],
  final: false,
  sync: { status: 'idle', asOf: TIME, nextAttemptAt: null, attempts: 0, lastError: null },
  ipnCount: 1,
  firstSeenAt: TIME,
  updatedAt: TIME,
}

const PROCESSING = {
  id: 'P1',
  transactionId: 'T1',
  merchantCode: 'UFLIYL',
  orderId: null,
  merchantTxnId: null,
  status: 'PROCESSING',
  amount: '250000',
  refundedAmount: '0',
  refundableAmount: '0',
  currency: 'VND',
  paymentMethod: 'QR',
  unrecognised: false,
  missing: false,
  unreadable: false,
  hold: null,
  firstSeenAt: TIME,
  updatedAt: TIME,
  asOf: TIME,
}

const TWICE = { duplicatePayment: true, paidAmount: '500000' }

describe('the state of a transaction in words', () => {
  it.each<[string, Partial<TransactionView>]>([
    ['Paid in full, 250,000 VND', {}],
    ['Paid, 250,000 VND', { expectedAmount: null }],
    ['Paid, 250,000', { expectedAmount: null, currency: null }],
    ['Paid in part, 200,000 VND of 250,000', { paidAmount: '200000' }],
    [
      'Paid in part, 200,000 VND of 250,000',
      { paidAmount: '200000.000', expectedAmount: '250000.000' },
    ],
    ['Overpaid, 500,000 VND for an order of 250,000', { paidAmount: '500000' }],
    [
      'Paid in full, 150,000 VND of 250,000 refunded',
      { state: 'partially_refunded', refundedAmount: '150000' },
    ],
    [
      'Paid, 150,000.50 VND of 250,000 refunded',
      { state: 'partially_refunded', refundedAmount: '150000.50', expectedAmount: null },
    ],
    ['Paid twice, 500,000 VND for an order of 250,000 VND', TWICE],
    ['Paid twice, 500,000 VND', { ...TWICE, expectedAmount: null }],
    ['The order was paid twice, 250,000 VND of it here', { sameOrder: ['T2'] }],
    [
      'The order was paid twice, 250,000 VND of it here',
      { sameOrder: ['T2'], expectedAmount: null },
    ],
    // A deposit, or the rest.
    ['Paid in part, 200,000 VND of 250,000', { paidAmount: '200000', sameOrder: ['T2'] }],
    ['Refunded in full, 250,000 VND', { state: 'refunded', refundedAmount: '250000' }],
    ['The payment failed', { state: 'failed', paidAmount: '0' }],
    ['No payment yet', { state: 'pending', paidAmount: '0' }],
    ['A payment is in progress', { state: 'pending', paidAmount: '0', payments: [PROCESSING] }],
    [
      'The gateway has not confirmed this id so far',
      { state: 'pending', paidAmount: '0', sync: { ...STATE.sync, status: 'unconfirmed' } },
    ],
  ])('%s', (words, more) => {
    expect(inEnglish(() => describeState({ ...STATE, ...more }))).toBe(words)
  })

  it('keeps every digit of an amount that no floating-point number has', () => {
    const paidAmount = '123456789012345678.1234'
    expect(
      inEnglish(() => describeState({ ...STATE, paidAmount, expectedAmount: paidAmount })),
    ).toBe('Paid in full, 123,456,789,012,345,678.1234 VND')
  })
})

it.each<[string, Partial<TransactionView>]>([
  ['Paid', {}],
  ['Paid twice', TWICE],
  ['Paid twice', { sameOrder: ['T2'] }],
  ['Paid', { paidAmount: '200000', sameOrder: ['T2'] }],
  ['Partly refunded', { state: 'partially_refunded', sameOrder: ['T2'] }],
])('a list says %s', (words, more) => {
  expect(inEnglish(() => signTransaction({ ...STATE, ...more })[0])).toBe(words)
})

describe('what happens to a refund next', () => {
  const settings = {
    REFUND_APPROVAL_WITHIN_MS: 86_400_000,
    REFUNDS_ENABLED: true,
    REFUND_SEND_WITHIN_MS: 2 * 86_400_000,
    REFUND_RESOLVE_FOR_MS: 3 * 86_400_000,
  }
  const refund = {
    requestedAt: '2026-11-21 09:00:00+00',
    approvedAt: null,
    lastSentAt: '2026-11-22 09:00:00+00',
    dueAt: null,
    ...{ inferred: false, attempts: 0, returnSightings: 1 },
  }
  const future = '2126-11-21 09:00:00+00'

  it.each([
    ['awaiting_approval', 'approve', '2026-11-22T09:00:00.000Z'],
    ['pending', 'as soon as', undefined],
    ['sending', 'being sent', undefined],
    ['accepted', 'asks until', undefined],
    ['unknown', 'not known', '2026-11-25T09:00:00.000Z'],
    ['succeeded', 'paid it out', undefined],
    ['failed', 'can be refunded again', undefined],
    ['needs_review', 'has to decide', undefined],
    ['returned', 'once another person confirms', undefined],
  ] as const)('%s: %s', (status, words, at) => {
    const step = inEnglish(() => describeNext({ ...refund, status }, false, settings))
    expect(step.text).toContain(words)
    expect(step.at).toBe(at)
  })

  it('says that nothing is left to do once a second person or the gateway has released what came back', () => {
    const released = { ...refund, status: 'returned' as const, returnSightings: 2 }
    expect(inEnglish(() => describeNext(released, false, settings)).text).toMatch(/^Nothing\./)
  })

  it('says what a success that was only inferred waits for', () => {
    const inferred = { ...refund, status: 'succeeded' as const, inferred: true }
    expect(inEnglish(() => describeNext(inferred, false, settings)).text).toContain(
      'stays reserved',
    )
  })

  it('does not promise to send what is not sent while refunds are switched off', () => {
    const off = { ...settings, REFUNDS_ENABLED: false }
    const pending = { ...refund, status: 'pending' as const }
    expect(inEnglish(() => describeNext(pending, false, off))).toMatchObject({
      text: expect.stringContaining('New refunds are switched off'),
      at: '2026-11-23T09:00:00.000Z',
    })
    const again = { ...pending, attempts: 1 }
    expect(inEnglish(() => describeNext(again, false, off)).text).toContain('as soon as')
  })

  it('names the next check, and for one that is held when it fails', () => {
    const pending = { ...refund, status: 'pending' as const, dueAt: future }
    expect(inEnglish(() => describeNext(pending, false, settings)).at).toBe(
      '2126-11-21T09:00:00.000Z',
    )
    const held = inEnglish(() => describeNext(pending, true, settings))
    expect(held.text).toContain('hold is released')
    expect(held.at).toBe('2026-11-23T09:00:00.000Z')
    const approved = { ...pending, approvedAt: '2026-11-22 09:00:00+00' }
    expect(inEnglish(() => describeNext(approved, true, settings)).at).toBe(
      '2026-11-24T09:00:00.000Z',
    )
  })
})

describe('an entry of the timeline in words', () => {
  const at = TIME
  const received = null
  const none = { code: null, message: null, httpStatus: null, durationMs: null, received }
  const ipn = {
    ...{ at, type: 'ipn' as const, kind: 'refund', code: '0', message: 'Paid <b>out</b>' },
    ...{ amount: '150000', paymentId: 'P1', requestId: 'R1', deliveries: 3, lastReceivedAt: at },
    ...{ signature: 'wrong', recut: true, address: '192.0.2.1', currency: 'VND' },
  }
  const query = {
    ...{ at, type: 'query' as const, outcome: 'unknown', code: null, message: 'timeout' },
    ...{ httpStatus: 504, durationMs: 12, bodyHmac: 'ab', received },
  }
  const attempt = {
    ...{ at, type: 'refund_attempt' as const, refundId: 'R1', outcome: null, bodyHmac: 'ab' },
    ...none,
  }
  const finding = {
    ...{ at, type: 'discrepancy' as const, kind: 'order_paid_twice', paymentId: null },
    ...{ refundId: null, ours: 'one', theirs: 'two' },
  }
  const change = (
    of: { paymentId?: string; refundId?: string },
    field: string,
    [before, after, cause]: [string | null, string, string],
  ) => {
    const object = { paymentId: null, refundId: null, ...of }
    return { at, type: 'change' as const, ...object, field, before, after, cause }
  }
  const P1 = { paymentId: 'P1' }
  const R1 = { refundId: 'R1' }

  it.each([
    [
      ipn,
      'gateway',
      'notified a refund',
      ['code 0: Paid <b>out</b>', 'amount 150,000 VND', 'delivered 3 times', 'wrong signature'],
    ],
    [query, 'service', 'no usable answer', ['timeout', 'HTTP 504', '12 ms']],
    [
      change(R1, 'status', ['sending', 'needs_review', 'with API key shop']),
      'change',
      'Refund R1: Status: Being sent → Needs a decision',
      ['with API key shop'],
    ],
    [
      change(P1, 'refundedAmount', ['0', '150000', 'query']),
      'change',
      'Payment P1: Refunded amount: 0 VND → 150,000 VND',
      ['as the gateway answered when asked'],
    ],
    [
      change(P1, 'later_release', [null, 'x', 'query']),
      'change',
      'Payment P1: later_release: x',
      ['as the gateway answered'],
    ],
    [attempt, 'service', 'began to send', ['refund R1']],
    [finding, 'finding', 'paid by another transaction', ['one / two']],
  ])('%o', (entry, actor, title, details) => {
    const words = inEnglish(() => describeEntry(entry, 'VND'))
    expect(words.actor).toBe(actor)
    expect(words.title).toContain(title)
    for (const one of details) expect(words.details.join(' · ')).toContain(one)
  })
  it.each([
    ['USD', 'amount 150,000 USD'],
    [null, 'amount 150,000'],
  ])('shows the amount of a notification in its own currency: %s', (currency, amount) => {
    const { details } = inEnglish(() => describeEntry({ ...ipn, currency }, 'VND'))
    expect(details).toContain(amount)
  })
})
