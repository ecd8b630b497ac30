import { describe, expect, it } from 'vitest'
import { ALWAYS } from '../../nightly/audit/always.ts'
import { AT_REST } from '../../nightly/audit/at-rest.ts'
import { audit, countLost, rulesFor } from '../../nightly/audit/audit.ts'
import { listUndecidable } from '../../nightly/audit/evidence.ts'
import { OF_FEED } from '../../nightly/audit/feed.ts'
import type { Ledgers } from '../../nightly/audit/ledgers.ts'
import { OF_PORTAL } from '../../nightly/audit/portal.ts'
import { STEP_BY_STEP } from '../../nightly/audit/steps.ts'
import { FEED_LIES } from './feed-lies.ts'
import { infer, LIES, type Lies } from './lies.ts'
import { moveRefused, neverMove, STEP_LIES, takeBack } from './step-lies.ts'
import {
  findRefund,
  loseByDate,
  MOVED,
  makeFeed,
  makeLedgers,
  makeWatched,
  P1,
  R1,
  R2,
  R3,
  setRefundable,
  setState,
  setStatus,
  T1,
  type Watched,
} from './truth.ts'

const WAITING = [{ id: R2, transactionId: T1 }]
const DONE = { isAtRisk: false, isPending: false }

type Told = { rule: string; what: string; ledgers: Ledgers }

/** Every lie, told in correct ledgers. */
function tellAll<T extends Ledgers>(lies: Lies<T>, make: () => T): Told[] {
  return Object.entries(lies).flatMap(([rule, told]) =>
    Object.entries(told).map(([what, tell]) => {
      const ledgers = make()
      tell(ledgers)
      return { rule, what, ledgers }
    }),
  )
}

const ALL_LIES = [
  ...tellAll(LIES, makeLedgers),
  ...tellAll(FEED_LIES, makeLedgers),
  ...tellAll(STEP_LIES, makeWatched),
]

const listRules = (ledgers: Ledgers) => audit(ledgers).map(({ rule }) => rule)

/** Only the refund R2 of 20, open. */
function leaveOne(status = 'needs_review'): Ledgers {
  const ledgers = makeLedgers()
  setStatus(ledgers, R2, status)
  ledgers.stored.refunds = [findRefund(ledgers, R2)]
  ledgers.acknowledged.portal = []
  ledgers.moved.movements = []
  return ledgers
}

function openAll({ stored }: Ledgers, members = {}): void {
  for (const one of stored.transactions) Object.assign(one, { isFinal: false, ...members })
}

describe('the auditor', () => {
  it('finds nothing in consistent ledgers, whatever the notation of amounts', () => {
    expect(audit(makeLedgers())).toEqual([])
    for (const phase of ['open', 'rest', 'settled'] as const) {
      expect(audit(makeWatched(phase))).toEqual([])
      expect(audit({ ...makeLedgers(), phase })).toEqual([])
    }
  })

  it.each(ALL_LIES)(
    '$rule: detects that $what, and would not without the rule',
    ({ rule, ledgers }) => {
      const found = audit(ledgers)
      expect(found.map((one) => one.rule)).toContain(rule)
      const others = rulesFor(ledgers).filter((one) => one.rule !== rule)
      expect(audit(ledgers, others).length).toBeLessThan(found.length)
    },
  )

  it('has a lie for every rule, and for each that judges steps one that no other rule finds', () => {
    const rules = [...ALWAYS, ...AT_REST, ...OF_PORTAL, ...OF_FEED, ...STEP_BY_STEP]
    expect(new Set(ALL_LIES.map(({ rule }) => rule))).toEqual(new Set(rules.map((one) => one.rule)))
    const alone = ALL_LIES.filter(
      ({ rule, ledgers }) =>
        new Set(listRules(ledgers)).size === 1 && listRules(ledgers)[0] === rule,
    )
    const names = new Set(alone.map(({ rule }) => rule))
    expect([...ALWAYS, ...STEP_BY_STEP].filter(({ rule }) => !names.has(rule))).toEqual([])
  })

  it('allows a receiver to get some events twice', () => {
    const ledgers = makeLedgers()
    if (ledgers.fed) ledgers.fed.taken = [...makeFeed().slice(0, 5), ...makeFeed().slice(3)]
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
    const shown = ledgers.shown?.transactions.flatMap(({ payments }) => payments) ?? []
    for (const one of [...ledgers.stored.payments, ...shown]) one.refundedAmount = '30'
    for (const one of shown) one.refundableAmount = '70'
    ledgers.stored.external = []
    const [match, again] = [
      'the payments of a stored transaction match the gateway, but for portal refunds never notified',
      'what is known to have moved cannot be refunded again',
    ]
    expect(listRules(ledgers)).toEqual(expect.arrayContaining([match, again]))
    ledgers.moved.told = ledgers.moved.told.filter(({ requestId }) => requestId === R1)
    for (const rule of [match, again]) expect(listRules(ledgers)).not.toContain(rule)
    ledgers.acknowledged.portal = ledgers.acknowledged.portal.map((one) => ({
      ...one,
      amount: '9',
    }))
    expect(listRules(ledgers)).toEqual(expect.arrayContaining([match, again]))
  })

  it('allows a portal refund from before first sight to stay reserved, and one whose growth is not certain', () => {
    const ledgers = makeLedgers()
    setState(ledgers, 'reserved')
    expect(audit(ledgers)).not.toEqual([])
    const { acknowledged } = ledgers
    acknowledged.portal = acknowledged.portal.map((one) => ({ ...one, isBefore: true }))
    expect(audit(ledgers)).toEqual([])
    openAll(ledgers, { isLeased: true })
    expect(audit(ledgers)).toEqual([])
    openAll(ledgers, { isLeased: false, isOverdue: true })
    expect(audit(ledgers)).not.toEqual([])
  })

  it('allows what was inferred to be reserved twice, until people have decided', () => {
    const ledgers = makeLedgers()
    infer(ledgers)
    expect(audit(ledgers)).toEqual([])
    expect(listRules({ ...ledgers, phase: 'settled' })).toHaveLength(1)
  })
})

describe('a witness of every step', () => {
  it('excuses a cancellation only from what was lost', () => {
    const list = (lost: number) => {
      const ledgers = makeWatched()
      ledgers.stored.refunds = []
      ledgers.moved.movements.push({ requestId: R3, paymentId: P1, amount: '10', ...MOVED })
      ledgers.moved.sends = new Map([[R3, { times: 1, lost }]])
      return new Set(listRules(ledgers))
    }
    expect(list(1)).toEqual(new Set())
    expect(list(0)).toEqual(
      new Set([
        'only what was recorded is sent',
        'what was cancelled was never sent',
        'what was cancelled does not move',
      ]),
    )
  })

  it('excuses what nobody can know yet, and only until everything is at rest', () => {
    const rules = (change: (ledgers: Watched) => void, phase: Ledgers['phase'] = 'open') => {
      const ledgers = makeWatched(phase)
      neverMove(ledgers)
      change(ledgers)
      return listRules(ledgers)
    }
    const wrong = 'a succeeded refund moved money, unless somebody was wrong'
    const misreport = ({ witnessed }: Watched) => {
      witnessed.misreported = new Set([R1])
    }
    expect(rules(misreport)).toEqual([])
    expect(rules(() => {})).toEqual([wrong])
    expect(rules(misreport, 'rest')).toEqual([wrong])
    expect(rules((ledgers) => infer(ledgers))).toEqual([])
  })

  it('excuses what a person decided wrongly, and at rest only if a discrepancy says so', () => {
    const wrong = 'a failed refund did not move money'
    const ledgers = makeWatched()
    moveRefused(ledgers)
    expect(listRules(ledgers)).toEqual([wrong])
    ledgers.witnessed.misjudged = new Set([R2])
    expect(listRules(ledgers)).toEqual([])
    ledgers.phase = 'rest'
    expect(listRules(ledgers)).toEqual([wrong])
    findRefund(ledgers, R2).disputed = true
    expect(listRules(ledgers)).toEqual([])
  })

  it('lets two people release what came back, and what did not, until everything is settled', () => {
    const ledgers = makeWatched()
    const { movements } = ledgers.moved
    takeBack(ledgers, 2)
    ledgers.witnessed.answers = ledgers.witnessed.answers.slice(0, 1)
    ledgers.stored.refunds = [findRefund(ledgers, R1)]
    expect(audit(ledgers)).toEqual([])
    ledgers.moved.movements = movements
    expect(audit(ledgers)).toEqual([])
  })
})

describe('a refund may stay open', () => {
  it('if money of its payment moved without a notification, and never if it was notified itself', () => {
    const ledgers = makeLedgers()
    setStatus(ledgers, R2, 'needs_review')
    expect(listUndecidable(ledgers)).toEqual([])
    ledgers.moved.told = []
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    openAll(ledgers)
    setRefundable(ledgers, '40')
    expect(audit(ledgers)).toEqual([])
    ledgers.moved.told = [{ requestId: R2, isAtRisk: false }]
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('if a refund made at the portal was never notified', () => {
    const ledgers = leaveOne()
    expect(listUndecidable(ledgers)).toEqual([])
    const portal = { requestId: 'A/Q1', paymentId: P1, amount: '10' }
    ledgers.acknowledged.portal = [{ ...portal, isBefore: false }]
    ledgers.moved.movements = [{ ...portal, atMs: 3, ...DONE }]
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
    const moved = { requestId: R2, paymentId: P1, amount: '20', atMs: 3, ...DONE }
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
    const other = { requestId: R1, paymentId: P1, amount: '20', ...DONE }
    ledgers.moved.movements = [{ ...other, atMs: 1 }]
    expect(listUndecidable(ledgers)).toEqual([])
    ledgers.moved.movements = [{ ...other, atMs: 2 }]
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    ledgers.moved.movements = [{ ...other, atMs: 2, amount: '19' }]
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('if it got no answer, and a portal refund from before first sight was notified later', () => {
    const ledgers = leaveOne('needs_review')
    const portal = { requestId: R1, paymentId: P1, amount: '30', isBefore: false }
    ledgers.moved.told.push({ requestId: R1, isAtRisk: false })
    ledgers.acknowledged.portal = [portal]
    expect(listUndecidable(ledgers)).toEqual([])
    ledgers.acknowledged.portal = [{ ...portal, isBefore: true }]
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    findRefund(ledgers, R2).attempts = 0
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('if it was sent, and others moved as much of its payment before anything about it was known', () => {
    const ledgers = leaveOne('unknown')
    const other = { requestId: R1, paymentId: P1, ...DONE }
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
    ledgers.acknowledged.portal = [before, after]
    expect(listUndecidable(ledgers)).toEqual(WAITING)
    for (const status of ['sending', 'accepted']) {
      setStatus(ledgers, R2, status)
      expect(listUndecidable(ledgers), status).toEqual([])
    }
    setStatus(ledgers, R2, 'pending')
    ledgers.acknowledged.portal = [before, { ...after, amount: '12' }]
    expect(listUndecidable(ledgers)).toEqual([])
    ledgers.acknowledged.portal = [{ ...before, isBefore: false }, after]
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
