import { describe, expect, it } from 'vitest'
import { audit, RULES } from './audit.ts'
import { FEED_LIES, makeFeed } from './feed-lies.ts'
import { LIES, makeLedgers, setStatus, TRANSACTION } from './lies.ts'
import { listUndecidable } from './undecidable.ts'

const ALL_LIES = [...LIES, ...FEED_LIES]

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

  it('allows a refund to stay open only if money of its payment moved without a notification, and never if it was notified itself', () => {
    const ledgers = makeLedgers()
    setStatus(ledgers, 'R2', 'needs_review')
    expect(listUndecidable(ledgers)).toEqual([])
    ledgers.moved.told = []
    expect(listUndecidable(ledgers)).toEqual([{ id: 'R2', transactionId: 'T1' }])
    ledgers.stored.transactions = [{ ...TRANSACTION, isFinal: false }]
    expect(audit(ledgers)).toEqual([])
    ledgers.moved.told = ['R2']
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('allows a refund to stay open that the gateway refused with a code not known to be final, unless its money moved', () => {
    const ledgers = makeLedgers()
    setStatus(ledgers, 'R2', 'needs_review')
    const [, refund] = ledgers.stored.refunds
    if (refund === undefined) throw new Error('the ledgers have two refunds')
    ledgers.stored.refunds = [refund]
    refund.refusedCode = '33'
    expect(listUndecidable(ledgers)).toEqual([])
    refund.refusedCode = '1'
    expect(listUndecidable(ledgers)).toEqual([{ id: 'R2', transactionId: 'T1' }])
    ledgers.moved.movements.push({ requestId: 'R2', paymentId: 'P1', amount: '20' })
    expect(listUndecidable(ledgers)).toEqual([])
  })

  it('allows a refund to stay open that failed at the gateway without a notification', () => {
    const ledgers = makeLedgers()
    setStatus(ledgers, 'R2', 'accepted')
    ledgers.moved.failed = ['R2']
    expect(audit(ledgers)).toEqual([])
    ledgers.moved.told = ['R1', 'R2']
    expect(audit(ledgers)).not.toEqual([])
  })
})
