import { type Guard, guards } from './guard.ts'

export const DECISIONS: readonly Guard[] = [
  ...guards({ file: 'src/decisions/outcomes.ts' }, [
    {
      text: 'if (isIncluded) await',
      mutation: "if (isIncluded && amount === '') await",
      test: 'test/plays/review/decided-again.test.ts',
      claim:
        'the second word on a refund that came back releases it at once; the refunded amount decides what is left',
      control:
        'what a person decided as failed is decided as succeeded by the same one too: that only reserves again',
    },
    {
      text: 'decidedGrowth: measure(payment, locked.drafts)',
      mutation: 'decidedGrowth: payment.missing ? measure(payment, locked.drafts) : null',
      test: 'test/plays/evidence/moved-twice.test.ts',
      claim:
        'a failed refund whose bytes had left is judged again by growth (b) and not by the growth that the person had before them',
      control: 'a request id in upper case (l) is that of the refund: its success ends it',
    },
    {
      text: "if (status === 'returned' && outcome === 'returned') await",
      mutation: "if (status === 'returned' || outcome === 'returned') await",
      test: 'test/plays/review/decisions.test.ts',
      claim:
        'a refund that came back keeps its match until two answers, apart, show the refunded amount lower by it',
      control: 'a decision against the evidence of growth from before it was sent is none',
    },
  ]),
  ...guards({ file: 'src/decisions/obstacles.ts' }, [
    {
      text: '      return findDoubt(beside)',
      mutation: '      return findDoubt({ ...beside, notified: row.attempts > 0 })',
      test: 'test/plays/review/cancellation.test.ts',
      claim:
        'the cancellation of a refund is 409 also if the hash of that notification was received with other values before',
      control:
        'the cancellation of a refund that was sent and is unknown is 409, and names what is possible',
    },
    {
      text: "return grown ? { why: 'grown' } : undefined",
      mutation: "return grown && notified ? { why: 'grown' } : undefined",
      test: 'test/plays/approval/own-growth.test.ts',
      claim:
        'while growth of the payment may be the refund itself, sent by a row that was lost its cancellation is refused, until a person has confirmed the refund that was inferred from the growth',
      control:
        'a refund that nobody approved in time goes to a person while its payment cannot be read',
    },
    {
      text: "if (status === 'returned') return true",
      mutation: "if (status === 'returned') return outcome !== 'returned'",
      test: 'test/unit/refunds/review/find-obstacle.test.ts',
      claim: 'a refund that has ended returned: whoever decided it last is left with []',
      control:
        'a refund that has ended succeeded, notified and matched: somebody can decide it otherwise',
    },
    {
      text: 'if (row.firstSentAt === null && !isDecidedByPerson(row)) return',
      mutation: "if (row.firstSentAt === '' && !isDecidedByPerson(row)) return",
      test: 'test/unit/refunds/review/find-obstacle.test.ts',
      claim: 'a refund that has ended unsent is not decided: it is requested again',
      control:
        'a refund that has ended succeeded, notified and matched: somebody can decide it otherwise',
    },
    {
      text: "findWait('too_early_alone', row.sinceResolvedMs ?? waitMs, waitMs)",
      mutation: "findWait('too_early_alone', waitMs, waitMs)",
      test: 'test/unit/refunds/review/find-obstacle.test.ts',
      claim:
        'a refund that has ended failed, by a person: whoever decided it last is left with ["succeeded"]',
      control:
        'a refund that has ended succeeded, notified and matched: somebody can decide it otherwise',
    },
  ]),
  {
    file: 'src/decisions/outcomes.ts',
    text: 'if (contrary.length > 0 && !request.againstEvidence) {',
    mutation: 'if (contrary.length > 9 && !request.againstEvidence) {',
    test: 'test/plays/review/decisions.test.ts',
    claim: 'a person decides that a failed refund succeeded, only if it was sent',
    control: 'a decision against the evidence of growth from before it was sent is none',
  },
  {
    file: 'src/decisions/obstacles.ts',
    text: "if (asked && !alone) return { why: 'asked' }",
    mutation: "if (asked && !alone && outcome === 'returned') return { why: 'asked' }",
    test: 'test/plays/approval/approval.test.ts',
    claim: 'a decision about the outcome is not made by whoever asked for the refund',
    control:
      'a refund above the threshold is checked against what is left when it is sent, not when it was approved',
  },
  {
    file: 'src/decisions/unit-of-work.ts',
    text: '  if (againstEvidence === null) return []\n  const kind',
    mutation: "  if (againstEvidence === null || paymentId !== '') return []\n  const kind",
    test: 'test/plays/review/decisions.test.ts',
    claim:
      'a decision against the evidence of a failure notification is refused, and with againstEvidence a discrepancy',
    control:
      'a decision against the evidence of a success notification that no query has followed yet is refused',
  },
  {
    file: 'src/decisions/outcomes.ts',
    text: "(c.field = 'transactionId' or c.at",
    mutation: "(c.field = 'none' or c.at",
    test: 'test/plays/review/announced-falls.test.ts',
    claim:
      'one answer that shows less frees nothing after a fall and a refund at the portal, before the payment moved and two people said so',
    control:
      'one answer that shows less frees nothing after a return that had fallen before two people said so, and a refund at the portal',
  },
  {
    file: 'src/decisions/outcomes.ts',
    text: 'const unmatchedDelta = measureCounted(',
    mutation: 'const unmatchedDelta = measureUnmatched(',
    test: 'test/plays/review/decisions.test.ts',
    claim: 'a decision contradicts growth that counts, also while one answer shows less',
    control:
      'a person decides about a refund that stays accepted, only after REFUND_RESOLVE_FOR_MS',
  },
  {
    file: 'src/refunds/match.ts',
    text: 'if (countedRefunded !== null) return\n  for (const draft of drafts) {\n    const { decidedGrowth }',
    mutation:
      "if (countedRefunded === '') return\n  for (const draft of drafts) {\n    const { decidedGrowth }",
    test: 'test/plays/evidence/late-news.test.ts',
    claim: 'a decision against growth stays, also where one answer more shows less before',
    control: 'a restore that is repeated keeps the reason of before once',
  },
  {
    file: 'src/decisions/unit-of-work.ts',
    text: 'json_build_array(a.id, a.outcome, a.code)',
    mutation: 'json_build_array(a.id)',
    test: 'test/console/tasks/refund.test.ts',
    claim:
      'the evidence beside the decision has to be the newest: a late answer to an attempt makes the page outdated',
    control:
      'the evidence beside the decision shows what speaks for each outcome, what to ask, and the request id to quote',
  },
]
