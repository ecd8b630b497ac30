import { type Guard, guards } from './guard.ts'

export const MATCHING: readonly Guard[] = [
  ...guards({ file: 'src/refunds/match.ts', test: 'test/plays/evidence/moved-twice.test.ts' }, [
    {
      text: '{ inferred: true })',
      mutation: '{ inferred: true, matched: true })',
      claim:
        'inference never frees money (f) until its own notification, or a person, makes it known',
      control: 'a request id in upper case (l) is that of the refund: its success ends it',
    },
    {
      text: "if (isFailedAfterSending(now)) return 'failed'",
      mutation: "if (isFailedAfterSending(now) && now.attempts > 9) return 'failed'",
      claim:
        'a failed refund whose bytes had left is judged again by growth (b) that failed by a person',
      control: 'a request id in upper case (l) is that of the refund: its success ends it',
    },
  ]),
  {
    file: 'src/refunds/growth.ts',
    text: 'isDone || !sentBefore) continue',
    mutation: 'isDone || (!sentBefore && isDone)) continue',
    test: 'test/unit/refunds/reconcile/match-refunded-delta.test.ts',
    claim: 'a delta seen by a query sent before the refund proves and matches nothing',
    control: 'a delta of one of two different open refunds proves no refund and stays unmatched',
  },
  ...guards(
    {
      file: 'src/refunds/growth.ts',
      test: 'test/unit/refunds/reconcile/match-refunded-delta.test.ts',
      control:
        'a delta that a refund was inferred from goes to a known refund, and leaves the other to a person',
    },
    [
      {
        text: 'if (matching.firstSight.lt(amount)) return false',
        mutation: 'if (matching.firstSight.lt(0)) return false',
        claim:
          'what was refunded at first sight is consumed by a refund of ours whose row was lost, before external ones',
      },
      {
        text: '    matching.firstSight = matching.firstSight.minus(amount)\n    return true',
        mutation: '    return true',
        claim:
          'what was refunded at first sight is consumed by a refund of ours whose row was lost, before external ones',
      },
      {
        text: 'if (isDone || !isCertain(external) || matching.left.lt(amount)) return',
        mutation: 'if (isDone || matching.left.lt(amount)) return',
        claim:
          'a delta is not matched to an external refund whose failure was notified as well, or to another reading',
      },
      {
        text: 'if (mayBelongToFirstSight(external, matching) && mayBeOurs()) return',
        mutation: 'if (mayBelongToFirstSight(external, matching) && mayBeOurs() && isDone) return',
        claim:
          'what was refunded at first sight leaves growth open that fits ours and an external one that may belong to it',
      },
      {
        text: 'if (candidate === undefined || other !== undefined) return undefined',
        mutation: 'if (candidate === undefined || other === candidate) return undefined',
        claim: 'a delta of one of two equal open refunds proves no refund and stays unmatched',
      },
      {
        text: 'external.some((one) => !one.matched && !explained.includes(one)) ||',
        mutation: 'external.some((one) => !one.matched && explained.includes(one)) ||',
        claim: 'a delta proves no refund while an external one is not matched',
      },
      {
        text: 'released.some((one) => left.gte(one)) ||',
        mutation: 'released.some((one) => left.lt(one)) ||',
        claim: 'a delta that may be an external refund that does not count proves none of ours',
      },
      {
        text: 'unmatched.some((one) => isRival(one, left))',
        mutation: 'unmatched.some((one) => isRival(one, left) && one === candidate)',
        claim: 'a delta of one beside one under review proves no refund and stays unmatched',
      },
      {
        text: 'sentBefore && hasGrown && left.eq(amount)',
        mutation: 'sentBefore && hasGrown && left.gte(amount)',
        claim: 'a delta of more than the only open refund proves no refund and stays unmatched',
      },
      {
        text: 'return mayHaveMoved && sentBefore && left.eq(amount) && isNews',
        mutation: 'return mayHaveMoved && sentBefore && left.gte(amount) && isNews',
        claim:
          'a delta of one beside one that failed after bytes left proves no refund and stays unmatched',
      },
      {
        text: 'const isNews = decidedGrowth === null || !left.eq(decidedGrowth)',
        mutation: 'const isNews = decidedGrowth === null || left.gt(0)',
        claim: 'a delta that a person had before them when they decided is no news',
      },
      {
        text: 'externalChanged ? one !== shown :',
        mutation: 'externalChanged ? one === shown :',
        claim: 'what was inferred stays if the delta shows it beside the external refund as well',
      },
      {
        text: 'const matched = [...own, ...external].filter((one) => one.matched)',
        mutation:
          "const matched = [...own, ...external].filter((one) => one.matched && one.amount === '')",
        claim: 'what was inferred leaves a confirmed refund matched when the refunded amount falls',
      },
    ],
  ),
  {
    file: 'src/refunds/needs-reconciliation.ts',
    text: 'where (select true from refunds as r where',
    mutation: 'where (select false from refunds as r where',
    test: 'test/api/sync/commit-batch.test.ts',
    claim:
      'answers that are committed together exclude one for which a refund was requested meanwhile',
    control: 'answers that are committed together may have different outcomes',
  },
  {
    file: 'src/refunds/reconcile.ts',
    text: 'for (const draft of locked.drafts) endInterrupted(draft)',
    mutation: 'for (const draft of locked.drafts.slice(1)) endInterrupted(draft)',
    test: 'test/plays/attempt/lease.test.ts',
    claim:
      'a worker that lost its lease during the refund call still writes its answer; the next one found the attempt interrupted',
    control:
      'a lease that would end before the call is too short to send: no attempt is recorded, and the refund waits',
  },
]
