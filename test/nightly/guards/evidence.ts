import { type Guard, guards } from './guard.ts'

export const EVIDENCE: readonly Guard[] = [
  ...guards(
    {
      test: 'test/plays/evidence/stale-answers.test.ts',
      control:
        'what was notified of a request id in mixed case is found after its notification is deleted',
    },
    [
      {
        file: 'src/payments/find-payments.ts',
        text: 'payments.refunded_amount, payments.counted_refunded, payments.refunded_at_first',
        mutation: 'payments.refunded_amount, payments.refunded_at_first',
        claim:
          'an answer from a stale replica frees no growth that nothing explains: not more than is left moves',
      },
      {
        file: 'src/payments/compare-payments.ts',
        text: '  if (areApart(since, asOf, apartMs)) return { ...NOT_FALLEN, expectedFall: null }',
        mutation:
          '  if (areApart(since, asOf, apartMs) || true) return { ...NOT_FALLEN, expectedFall: null }',
        claim:
          'an answer from a stale replica is believed once another one, apart, shows the same, and told as an event',
      },
      {
        file: 'src/refunds/measure.ts',
        text: '  const unmatched = measureCounted(payment, drafts)',
        mutation:
          '  const unmatched = drafts.length === 0 ? measureCounted(payment, drafts) : measureUnexplained(payment, drafts)',
        claim:
          'an answer from a stale replica sends no refund that the growth held back as perhaps its own',
      },
      {
        file: 'src/refunds/growth.ts',
        text: 'if (!mayHaveGrown || matching.left.lt(amount)) continue',
        mutation: "if ((!mayHaveGrown && id === '') || matching.left.lt(amount)) continue",
        claim:
          'growth from before a refund was sent does not match it, although its success is known',
      },
      {
        file: 'src/refunds/growth.ts',
        text: "  if (evidence === 'expired') return left.eq(amount)",
        mutation: "  if (evidence === 'expired') return left.eq(0) && left.eq(amount)",
        claim:
          'a refund whose time was over, by what was known before a restore growth that may be an open one of the same amount as well is inferred for neither',
      },
      {
        file: 'src/refunds/match.ts',
        text: "  if (isExpired(now)) return 'expired'",
        mutation: '  if (isExpired(now)) return undefined',
        claim:
          'a refund whose time was over, by what was known before a restore not sent in time: growth of its amount leaves it to a person',
      },
      {
        file: 'src/refunds/match.ts',
        text: '    forgetDecidedGrowth(payment, drafts, match.unmatchedDelta)',
        mutation:
          '    if (payment.missing) forgetDecidedGrowth(payment, drafts, match.unmatchedDelta)',
        claim:
          'a refund that a person failed is news again when growth that was there is gone, and as much comes anew',
      },
      {
        file: 'src/refunds/lifecycle.ts',
        text: '(isKnown || isDecidedFailed(row))',
        mutation: 'firstSentAt !== null && (isKnown || isDecidedFailed(row))',
        claim:
          'a refund that a person failed and that was notified, although it was never sent from here, is judged again by growth',
      },
      {
        file: 'src/refunds/reconcile.ts',
        text: 'snapshot !== undefined && payment.listed',
        mutation: '(snapshot !== undefined || payment.listed) && payment.listed',
        claim:
          'a refund made elsewhere that is notified while no query is answered makes what was inferred doubtful all the same',
      },
    ],
  ),
  {
    file: 'src/refunds/external.ts',
    text: 'return UUID.test(requestId) ? requestId.toLowerCase() : requestId',
    mutation: "return UUID.test('') ? requestId.toLowerCase() : requestId",
    test: 'test/plays/evidence/stale-answers.test.ts',
    claim:
      'what was notified of a request id in mixed case is found after its notification is deleted',
    control:
      'a refund that a person failed is news again when growth that was there has been entered, and as much comes anew',
  },
]
