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
  ...guards(
    {
      file: 'src/refunds/evidence.ts',
      test: 'test/plays/review/proof.test.ts',
      control: 'the proof of a refund shows a refusal with the code and the message of the gateway',
    },
    [
      {
        text: 'if (attempts > 0 && !isAnswered) {',
        mutation: 'if (attempts > 9 && !isAnswered) {',
        claim:
          'the refunded amount in the proof speaks against a success only once an answer has come since the refund was sent',
      },
      {
        text: 'select max(c.sent_at) from refund_attempts',
        mutation: 'select min(c.sent_at) from refund_attempts',
        claim:
          'the refunded amount in the proof speaks against a success only once an answer has come since it was sent again, whatever the clock says of the time',
      },
      {
        text: 'as_of > greatest(${lastSentAt}::timestamptz, (',
        mutation: "as_of > greatest(${lastSentAt}::timestamptz - interval '1 day', (",
        claim:
          'the refunded amount in the proof speaks against a success only once an answer has come since it was sent again, whatever the clock says of the time',
      },
      {
        text: "and a.outcome is distinct from 'unavailable'))`",
        mutation: "and a.outcome is distinct from 'none'))`",
        claim:
          'the refunded amount in the proof speaks against a success also where a later attempt wrote nothing, of which it says so',
      },
      {
        text: "outcome === 'unavailable' ? 'not sent' :",
        mutation: "outcome === 'sent' ? 'not sent' :",
        claim:
          'the refunded amount in the proof speaks against a success also where a later attempt wrote nothing, of which it says so',
      },
      {
        text: 'then r.matched or r.in_first_sight',
        mutation: 'then r.matched and r.in_first_sight',
        claim:
          'the refunded amount in the proof speaks against a success not while another refund that came back may hide its growth',
      },
      {
        text: 'else r.return_seen_at is null end',
        mutation: 'else r.return_seen_at is not null end',
        claim:
          'the refunded amount in the proof speaks against a success not while another refund that came back may hide its growth',
      },
      {
        text: '!growth.isFalling && hasNotGrown(',
        mutation: '(growth.isFalling || true) && hasNotGrown(',
        claim:
          'the refunded amount in the proof speaks against a success not by an answer whose lower amount does not count yet',
      },
    ],
  ),
]
