import { type Guard, guards } from './guard.ts'

export const DEADLINES: readonly Guard[] = [
  ...guards({ file: 'src/refunds/measure.ts' }, [
    {
      text: 'if (new Big(shown.unmatchedDelta).lt(0)) return false',
      mutation: "if (new Big(shown.unmatchedDelta).lt('-1000000000')) return false",
      test: 'test/unit/refunds/transitions.test.ts',
      claim: 'a non-zero code proves nothing beside an answer that is stale',
      control:
        'a notification of success sends a refund to review that is unknown and whose failure was notified',
    },
    {
      text: 'return grown.gte(0) && grown.lt(row.amount)',
      mutation: 'return grown.lt(row.amount)',
      test: 'test/plays/evidence/stale-answers.test.ts',
      claim: 'an answer from a stale replica confirms no failure before the fall is believed',
      control:
        'what was notified of a request id in mixed case is found after its notification is deleted',
    },
    {
      text: 'return grown.gte(0) && grown.lt(row.amount)',
      mutation: 'return grown.gte(0) && grown.lte(row.amount)',
      test: 'test/unit/refunds/transitions.test.ts',
      claim:
        'time sends a refund to review whose notified failure is contradicted by a delta for too long',
      control: 'a notification of failure sends a refund to review sent twice and accepted',
    },
  ]),
  ...guards({ file: 'src/refunds/deadlines.ts', test: 'test/unit/refunds/transitions.test.ts' }, [
    {
      text: 'const isKept = before.noGrowthSince !== null && before.noGrowthSince === now.noGrowthSince',
      mutation: 'const isKept = before.noGrowthSince !== null || now.noGrowthSince !== null',
      claim: 'a non-zero code proves nothing when no answer before has shown no growth',
      control: 'a notification of success makes a refund that is sending succeed',
    },
    {
      text: 'return snapshot !== undefined && isKept && (now.sinceNoGrowthMs ?? 0) >= waitMs',
      mutation:
        'return snapshot !== undefined && isKept && (now.sinceNoGrowthMs ?? 0) >= waitMs * 0',
      claim: 'a non-zero code proves nothing when the two answers are not far enough apart',
      control: 'a notification of success makes a refund that is sending succeed',
    },
    {
      text: "return status === 'unknown' && attempts === 1 && !unanswered && isRefused",
      mutation: "return status === 'unknown' && attempts >= 1 && !unanswered && isRefused",
      claim: 'a non-zero code proves nothing when it was a second attempt',
      control: 'a notification of success makes a refund that is sending succeed',
    },
    {
      text: "return status === 'unknown' && attempts === 1 && !unanswered && isRefused",
      mutation:
        "return status === 'unknown' && attempts === 1 && (!unanswered || isRefused) && isRefused",
      claim: 'a non-zero code proves nothing when an attempt ended without an answer',
      control: 'a notification of success makes a refund that is sending succeed',
    },
    {
      text: 'const isFinal = settings.GATEWAY_REFUND_FINAL_CODES.includes(refusedCode)',
      mutation: "const isFinal = refusedCode !== ''",
      claim: 'a non-zero code that is not known to be final, like 35, sends the refund to review',
      control: 'a notification of success makes a refund that is sending succeed',
    },
    {
      text: 'if (mayHaveMoved !== undefined) {',
      mutation: "if (mayHaveMoved !== undefined && failureReason === 'approval_expired') {",
      claim:
        'a refund that was never sent needs a person instead while it may have moved all the same',
      control: 'a notification of failure sends a refund to review that was not sent from here',
    },
    {
      text: 'if (attempts > 1) {',
      mutation: 'if (attempts > 2) {',
      claim:
        'a notification of failure sends a refund to review of which another attempt is recorded again since',
      control: 'a notification of failure sends a refund to review that was not sent from here',
    },
  ]),
  {
    file: 'src/refunds/deadlines.ts',
    text: 'if (!settings.IPN_REFUND_FINAL_CODES.includes(failureCode)) {',
    mutation: "if (!settings.IPN_REFUND_FINAL_CODES.includes(failureCode) && failureCode === '') {",
    test: 'test/plays/evidence/moved-twice.test.ts',
    claim:
      'a notification with a code that is not known to be final (a) 5 fails nothing, and a person decides in the end',
    control: 'a request id in upper case (l) is that of the refund: its success ends it',
  },
  ...guards({ file: 'src/refunds/deadlines.ts', test: 'test/unit/refunds/transitions.test.ts' }, [
    {
      text: 'settings.GATEWAY_REFUND_DEDUPES &&',
      mutation: '(settings.GATEWAY_REFUND_DEDUPES || now.attempts > 0) &&',
      claim:
        'a resend under the same id is never allowed where the gateway does not refuse repeated ids',
      control: 'a notification of success makes a refund that is sending succeed',
    },
    {
      text: 'now.unanswered &&',
      mutation: '(now.unanswered || now.attempts > 0) &&',
      claim: 'a resend under the same id is not allowed after a code, which was an answer',
      control: 'a notification of success makes a refund that is sending succeed',
    },
    {
      text: '(now.sinceFirstSentMs ?? 0) < settings.REFUND_RESEND_FOR_MS &&',
      mutation: '(now.sinceFirstSentMs ?? 0) < settings.REFUND_RESEND_FOR_MS * 1e9 &&',
      claim: 'a resend under the same id is not allowed beyond REFUND_RESEND_FOR_MS',
      control: 'a notification of success makes a refund that is sending succeed',
    },
    {
      text: '(now.sinceSentMs ?? 0) >= resendAfter(now, settings)\n  )',
      mutation: '(now.sinceSentMs ?? 0) >= resendAfter(now, settings) * 0\n  )',
      claim: 'a resend under the same id is not allowed too early',
      control: 'a notification of success makes a refund that is sending succeed',
    },
    {
      text: "now.status === 'unknown' &&\n    now.unanswered",
      mutation: "now.status !== 'failed' &&\n    now.unanswered",
      claim: 'a resend under the same id is not allowed once it was accepted',
      control: 'a notification of success makes a refund that is accepted succeed',
    },
  ]),
  {
    file: 'src/refunds/deadlines.ts',
    text: 'now.failureCode === null &&',
    mutation: '(now.failureCode === null || now.attempts > 0) &&',
    test: 'test/plays/evidence/moved-twice.test.ts',
    claim: 'a request id in upper case (l) stops another send: its failure is not followed by one',
    control: 'a request id in upper case (l) is that of the refund: its success ends it',
  },
  {
    file: 'src/maintenance/rechecks.ts',
    text: '      failures.push(error)\n',
    mutation: '      failures.push(error)\n      break\n',
    test: 'test/api/maintenance/missing-accounts.test.ts',
    claim:
      'a refund of such an account that cannot be saved leaves the others their deadlines, and is reported after them',
    control: 'a refund of such an account that was never sent fails after REFUND_SEND_WITHIN_MS',
  },
  {
    file: 'src/maintenance/rechecks.ts',
    text: '    limit ${BATCH})\n    union\n',
    mutation: '    limit ${BATCH - BATCH})\n    union\n',
    test: 'test/api/maintenance/missing-accounts.test.ts',
    claim:
      'a refund of such an account takes no place in a round from one that nobody approved in time',
    control: 'a refund of such an account can be cancelled',
  },
]
