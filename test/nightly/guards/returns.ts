import { type Guard, guards } from './guard.ts'

export const RETURNS: readonly Guard[] = [
  ...guards({ file: 'src/refunds/match.ts' }, [
    {
      text: 'const counts = payment.countedRefunded === null',
      mutation: "const counts = payment.countedRefunded !== 'none'",
      test: 'test/plays/review/returned.test.ts',
      claim:
        'a refund that is sent while another one comes back is known by its own growth once two people say so, though answers showed the fall for too short a time',
      control:
        'a refund that is sent while another one comes back is not sent between the two answers that show it, and then fails by a final refusal',
    },
    {
      text: 'returnSightings === 1 && !isSentSince) return',
      mutation: 'returnSightings === 1 && (!isSentSince || isShown)) return',
      test: 'test/plays/evidence/moved-twice.test.ts',
      claim:
        'a refund that came back (d) is not released by answers between which something of the payment was sent',
      control: 'a request id in upper case (l) is that of the refund: its success ends it',
    },
    {
      text: 'return isKept && (now.sinceReturnSeenMs ?? 0) >= waitMs',
      mutation: 'return isKept && (now.sinceReturnSeenMs ?? 0) >= waitMs * 0',
      test: 'test/plays/review/returned.test.ts',
      claim:
        'a refund that is decided as returned after the amount fell is released by two later answers, apart',
      control:
        'a refund that is sent while another one comes back is not sent between the two answers that show it, and then fails by a final refusal',
    },
    {
      text: 'new Big(payment.refundedAtFirst).minus(amount).toFixed()',
      mutation: 'new Big(payment.refundedAtFirst).minus(amount).plus(amount).toFixed()',
      test: 'test/plays/review/decisions.test.ts',
      claim: 'a refund that came back from before the payment was first seen is freed as well',
      control: 'a decision against the evidence of growth from before it was sent is none',
    },
    {
      text: 'if (compareAmounts(refundedBefore, refundedNow) <= 0) continue',
      mutation: 'if (compareAmounts(refundedBefore, refundedNow) < 9) continue',
      test: 'test/plays/review/returned.test.ts',
      claim:
        'a refund that is sent while another one comes back that was refused for good fails once two answers show no growth',
      control:
        'a refund that is sent while another one comes back is sent at once when the second answer does not show it',
    },
  ]),
  ...guards({ test: 'test/plays/review/announced-falls.test.ts' }, [
    {
      file: 'src/decisions/outcomes.ts',
      text: 'if (await hasFallenBefore(tx, row)) return',
      mutation: 'if ((await hasFallenBefore(tx, row)) && countedRefunded !== null) return',
      claim:
        'one answer that shows less frees nothing after a fall in two answers and a refund at the portal, before two people said so',
      control:
        'a fall that two people announced of two refunds is counted at once where one answer shows both',
    },
    {
      file: 'src/decisions/outcomes.ts',
      text: 'if (isFreedByPeople(draft.now)) await expectNoFall',
      mutation: "if (isFreedByPeople(draft.now) && outcome === 'succeeded') await expectNoFall",
      claim: 'one answer that shows less frees nothing of a return that was decided to have failed',
      control:
        'a fall that two people announced of two refunds is counted at once where one answer shows both',
    },
    {
      file: 'src/payments/compare-payments.ts',
      text: 'grown > 0 ? null : expectedFall',
      mutation: 'grown > 0 && apartMs < 0 ? null : expectedFall',
      claim:
        'one answer that shows less frees nothing once the refunded amount has grown, which may hide that it fell',
      control:
        'a fall that two people announced of two refunds is counted at once where one answer shows both',
    },
    {
      file: 'src/payments/compare-payments.ts',
      text: '<= 0) {\n    return { ...NOT_FALLEN, expectedFall: null }',
      mutation:
        '<= 0) {\n    return { ...NOT_FALLEN, expectedFall: subtractAmount(expectedFall, fallen) }',
      claim:
        'one answer that shows less frees nothing once it has fallen by a part of what was announced',
      control:
        'a fall that two people announced of two refunds is counted at once where one answer shows both',
    },
  ]),
]
