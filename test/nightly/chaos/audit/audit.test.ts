import { describe, expect, it } from 'vitest'
import { audit, RULES } from './audit.ts'
import {
  findRefund,
  makeFeed,
  makeLedgers,
  P1,
  R1,
  R2,
  setStatus,
  T1,
  TRANSACTION,
} from './example.ts'
import { FEED_LIES } from './feed-lies.ts'
import type { Ledgers } from './ledgers.ts'
import { LOST_LIES } from './lost-lies.ts'
import { MONEY_LIES } from './money-lies.ts'
import { ORDER_LIES } from './order-lies.ts'
import { loseByDate, PORTAL_LIES, setState } from './portal-lies.ts'
import { countLost } from './set-back.ts'
import { listUndecidable } from './undecidable.ts'

const ALL_LIES = [...LOST_LIES, ...MONEY_LIES, ...PORTAL_LIES, ...FEED_LIES, ...ORDER_LIES]
const WAITING = [{ id: R2, transactionId: T1 }]

/** Only the refund R2 of 20, open. */
function leaveOne(status = 'needs_review'): Ledgers {
  const ledgers = makeLedgers()
  setStatus(ledgers, R2, status)
  ledgers.stored.refunds = [findRefund(ledgers, R2)]
  ledgers.sent.portal = []
  ledgers.moved.movements = []
  return ledgers
}

describe('the auditor', () => {
  it('finds nothing in consistent ledgers, whatever the notation of amounts', () => {
    expect(audit(makeLedgers())).toEqual([])
  })

  it.each(ALL_LIES)('%s: detects that %s, and would not without the rule', (rule, _, tell) => {
    const ledgers = makeLedgers()
    tell(ledgers)
    const found = audit(ledgers)
    expect(found.map((one) => one.rule)).toContain(rule)
    const others = RULES.filter((one) => one.rule !== rule)
    expect(audit(ledgers, others).length).toBeLessThan(found.length)
  })

  it('has a defect for every rule', () => {
    expect(new Set(ALL_LIES.map(([rule]) => rule))).toEqual(new Set(RULES.map(({ rule }) => rule)))
  })

  it('allows a receiver to get some events twice', () => {
    const ledgers = makeLedgers()
    ledgers.feed.taken = [...makeFeed().slice(0, 5), ...makeFeed().slice(3)]
    expect(audit(ledgers)).toEqual([])
  })

  it('allows what a set-back of the database has lost, and counts it apart', () => {
    const ledgers = makeLedgers()
    loseByDate(ledgers)
    expect(audit(ledgers)).toEqual([])
    expect(countLost(ledgers)).toEqual({ notifications: 1, refunds: 1 })
    expect(countLost(makeLedgers())).toEqual({ notifications: 0, refunds: 0 })
  })

  it('allows a payment to show less refunded and more left by portal refunds that were never notified, and no more', () => {
    const ledgers = makeLedgers()
    for (const payment of [
      ledgers.stored.payments,
      ledgers.shown.transactions[0]?.payments,
    ].flat()) {
      if (payment) payment.refundedAmount = '30'
    }
    for (const payment of ledgers.shown.transactions[0]?.payments ?? [])
      payment.refundableAmount = '70'
    const listRules = () => audit(ledgers).map(({ rule }) => rule)
    const [match, again] = [
      'the payments of a stored transaction match',
      'what is known to have moved',
    ]
    const finds = (name = '') => listRules().some((rule) => rule.startsWith(name))
    expect([finds(match), finds(again)]).toEqual([true, true])
    ledgers.moved.told = ledgers.moved.told.filter(({ requestId }) => requestId === R1)
    expect([finds(match), finds(again)]).toEqual([false, false])
    ledgers.sent.portal = ledgers.sent.portal.map((one) => ({ ...one, amount: '9' }))
    expect([finds(match), finds(again)]).toEqual([true, true])
  })

  it('allows a portal refund from before first sight to stay reserved, and one whose growth is not certain', () => {
    const ledgers = makeLedgers()
    setState(ledgers, 'reserved')
    expect(audit(ledgers)).not.toEqual([])
    ledgers.sent.portal = ledgers.sent.portal.map((one) => ({ ...one, isBefore: true }))
    expect(audit(ledgers)).toEqual([])
    ledgers.stored.transactions = [{ ...TRANSACTION, isFinal: false, isLeased: true }]
    expect(audit(ledgers)).toEqual([])
    ledgers.stored.transactions = [{ ...TRANSACTION, isFinal: false, isOverdue: true }]
    expect(audit(ledgers)).not.toEqual([])
  })
})

describe('a refund may stay open', () => {
  it('if money of its payment moved without a notification, and never if it was notified itself', () => {
    const ledgers = makeLedgers()
    setStatus(ledgers, R2, 'needs_review')
    expect(listUndecidable(ledgers)).toEqual([])
    ledgers.moved.told = []
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    ledgers.stored.transactions = [{ ...TRANSACTION, isFinal: false }]
    expect(audit(ledgers)).toEqual([])
    ledgers.moved.told = [{ requestId: R2, isAtRisk: false }]
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('if a refund made at the portal was never notified', () => {
    const ledgers = leaveOne()
    expect(listUndecidable(ledgers)).toEqual([])
    const portal = { requestId: 'A/Q1', paymentId: P1, amount: '10' }
    ledgers.sent.portal = [{ ...portal, isBefore: false }]
    ledgers.moved.movements = [{ ...portal, atMs: 3, isAtRisk: false }]
    ledgers.moved.told = []
    expect(listUndecidable(ledgers)).toEqual(WAITING)
  })

  it('if the gateway refused it with a code not known to be final, unless its money moved and was notified', () => {
    const ledgers = leaveOne()
    const refund = findRefund(ledgers, R2)
    refund.refusedCode = '33'
    expect(listUndecidable(ledgers)).toEqual([])
    refund.refusedCode = '1'
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    const moved = { requestId: R2, paymentId: P1, amount: '20', atMs: 3, isAtRisk: false }
    ledgers.moved.movements.push(moved)
    // Growth alone does not prove a success that the gateway has denied.
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    ledgers.moved.told = [{ requestId: R2, isAtRisk: false }]
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('if it failed at the gateway without a notification', () => {
    const ledgers = makeLedgers()
    setStatus(ledgers, R2, 'accepted')
    ledgers.moved.failed = [R2]
    ledgers.moved.movements = ledgers.moved.movements.filter(({ atMs }) => atMs === 0)
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    ledgers.moved.told.push({ requestId: R2, isAtRisk: false })
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('if it failed or was refused, and others moved as much of its payment since it was requested', () => {
    const ledgers = leaveOne('accepted')
    ledgers.moved.failed = [R2]
    ledgers.moved.told.push({ requestId: R2, isAtRisk: false })
    const other = { requestId: R1, paymentId: P1, amount: '20', isAtRisk: false }
    ledgers.moved.movements = [{ ...other, atMs: 1 }]
    expect(listUndecidable(ledgers)).toEqual([])
    ledgers.moved.movements = [{ ...other, atMs: 2 }]
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    ledgers.moved.movements = [{ ...other, atMs: 2, amount: '19' }]
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('if it was sent, and others moved as much of its payment before anything about it was known', () => {
    const ledgers = leaveOne('unknown')
    const other = { requestId: R1, paymentId: P1, isAtRisk: false }
    ledgers.moved.told.push({ requestId: R1, isAtRisk: false })
    ledgers.moved.movements = [{ ...other, amount: '20', atMs: 2 }]
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    for (const status of ['pending', 'sending', 'accepted']) {
      setStatus(ledgers, R2, status)
      expect(listUndecidable(ledgers), status).toEqual([])
    }
    setStatus(ledgers, R2, 'unknown')
    findRefund(ledgers, R2).attempts = 0
    expect(listUndecidable(ledgers)).toEqual([])
    findRefund(ledgers, R2).attempts = 1
    ledgers.moved.movements = [{ ...other, amount: '19', atMs: 2 }]
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('if it failed after it had been sent twice', () => {
    const ledgers = leaveOne()
    ledgers.moved.failed = [R2]
    ledgers.moved.told.push({ requestId: R2, isAtRisk: false })
    expect(listUndecidable(ledgers)).toEqual([])
    findRefund(ledgers, R2).attempts = 2
    expect(listUndecidable(ledgers)).toEqual(WAITING)
  })

  it('if evidence about its payment was lost when the database was set back, unless its success was notified since', () => {
    const ledgers = leaveOne()
    ledgers.moved.accepted = [{ requestId: R2, isAtRisk: true }]
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    ledgers.moved.told = [{ requestId: R2, isAtRisk: false }]
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('if it was never sent, and no more than portal refunds of which one was before first sight', () => {
    const ledgers = leaveOne('pending')
    const before = { requestId: 'A/Q1', paymentId: P1, amount: '7', isBefore: true }
    const after = { requestId: 'A/Q2', paymentId: P1, amount: '13.00', isBefore: false }
    ledgers.sent.portal = [before, after]
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    for (const status of ['sending', 'accepted', 'needs_review']) {
      setStatus(ledgers, R2, status)
      expect(listUndecidable(ledgers), status).toEqual([])
    }
    setStatus(ledgers, R2, 'pending')
    ledgers.sent.portal = [before, { ...after, amount: '12' }]
    expect(listUndecidable(ledgers)).toEqual([])
    ledgers.sent.portal = [{ ...before, isBefore: false }, after]
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('if it waits behind such a refund of its payment, and was never sent', () => {
    const ledgers = makeLedgers()
    ledgers.moved.failed = [R2]
    ledgers.moved.movements = []
    ledgers.moved.told = []
    setStatus(ledgers, R2, 'unknown')
    setStatus(ledgers, R1, 'pending')
    expect(listUndecidable(ledgers).map(({ id }) => id)).toEqual([R2, R1])
    ledgers.moved.told = [{ requestId: R1, isAtRisk: false }]
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    ledgers.moved.told = []
    setStatus(ledgers, R1, 'accepted')
    expect(listUndecidable(ledgers)).toEqual(WAITING)
  })
})
