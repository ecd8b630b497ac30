import { type Guard, guards } from './guard.ts'

export const APPROVALS: readonly Guard[] = [
  {
    file: 'src/refunds/request-facts.ts',
    text: 'const folded = foldName(text)',
    mutation: "const folded = foldName('') + text.toLowerCase()",
    test: 'test/plays/approval/principals.test.ts',
    claim: 'what Weiß Ivan requested on behalf of Weiß Ivan is decided by neither',
    control: 'what Ирина requested on behalf of ИРИНА is decided by neither',
  },
  {
    file: 'src/decisions/obstacles.ts',
    text: 'if (sinceRequestedMs >= withinMs) return',
    mutation: 'if (sinceRequestedMs >= withinMs * 1e6) return',
    test: 'test/plays/approval/approval.test.ts',
    claim:
      'a refund above the threshold fails when nobody decides in time, and is not approved after that',
    control:
      'a refund above the threshold is checked against what is left when it is sent, not when it was approved',
  },
  {
    file: 'src/decisions/refunds.ts',
    text: 'notified: await isNotified(tx, draft.now),',
    mutation: 'notified: (await isNotified(tx, draft.now)) && draft.now.attempts > 0,',
    test: 'test/plays/approval/evidence.test.ts',
    claim:
      'a refund whose success is notified while it awaits approval is not declined before the notification is handled, and then has succeeded',
    control:
      'an approved refund whose approval is lost in a failover after it was sent awaits approval again when no byte was written',
  },
  {
    file: 'src/decisions/obstacles.ts',
    text: "findDoubt(decision === 'approve' ? { ...beside, grown: false } : beside)",
    mutation: "findDoubt({ ...beside, grown: beside.grown && decision === 'approve' })",
    test: 'test/plays/approval/own-growth.test.ts',
    claim:
      'while growth of the payment may be the refund itself, sent by a row that was lost its decline is refused, until a person has explained the growth',
    control:
      'a refund that nobody approved in time goes to a person while its payment is left out of one answer',
  },
  {
    file: 'src/decisions/obstacles.ts',
    text: "if (status !== 'awaiting_approval') return",
    mutation: "if (status !== 'awaiting_approval' && withinMs < 0) return",
    test: 'test/plays/approval/approval.test.ts',
    claim: 'a refund above the threshold is decided once when two people decide at the same time',
    control:
      'a refund above the threshold is checked against what is left when it is sent, not when it was approved',
  },
  {
    file: 'src/refunds/reconcile.ts',
    text: 'const { findings: notified, externalNotified } = judgeNotifications(locked, snapshot)',
    mutation:
      'if (snapshot) judgeNotifications(locked, snapshot)\n  const { findings: notified, externalNotified } = judgeNotifications({ ...locked, notifications: [] }, snapshot)',
    test: 'test/plays/approval/evidence.test.ts',
    claim:
      'a refund whose success is notified while it awaits approval does not expire before the notification is handled',
    control:
      'an approved refund whose approval is lost in a failover after it was sent awaits approval again when no byte was written',
  },
  {
    file: 'src/refunds/deadlines.ts',
    text: 'if (mayHaveMoved !== undefined) {',
    mutation: "if (mayHaveMoved !== undefined && failureReason === 'not_sent_in_time') {",
    test: 'test/plays/approval/own-growth.test.ts',
    claim:
      'a refund that nobody approved in time goes to a person while growth may be its own, who may decide that it failed',
    control:
      'a notification whose request id is written in upper case counts as one of the refund in the proof',
  },
  {
    file: 'src/refunds/request-rules.ts',
    text: 'addAmounts([amount, ownTotal])',
    mutation: "addAmounts([amount, ownTotal && '0'])",
    test: 'test/plays/approval/threshold.test.ts',
    claim:
      'refunds of one transaction count together 3 x 50 of one payment: the third is above a limit of 100',
    control: 'refunds of one transaction count together those of another transaction do not count',
  },
  {
    file: 'src/refunds/request-facts.ts',
    text: "where e.verdict = 'verified' and e.reading = 1)`",
    mutation: 'where e.verdict is not null and e.reading = 1)`',
    test: 'test/plays/approval/threshold.test.ts',
    claim: 'the approval fails closed a currency that only unverified notifications name is none',
    control: 'refunds of one transaction count together those of another transaction do not count',
  },
  {
    file: 'src/refunds/request-facts.ts',
    text: "where r.status <> 'failed')`",
    mutation: "where r.status not in ('failed', 'awaiting_approval', 'pending'))`",
    test: 'test/plays/approval/threshold.test.ts',
    claim:
      'refunds of one transaction count together 3 x 50 of one payment: the third is above a limit of 100',
    control: 'refunds of one transaction count together those of another transaction do not count',
  },
  {
    file: 'src/refunds/request-rules.ts',
    text: "status: known.proves ? 'succeeded' : 'needs_review'",
    mutation: "status: known.proves ? 'succeeded' : 'pending'",
    test: 'test/plays/evidence/lost-rows.test.ts',
    claim:
      'a refund whose row is lost after it was sent and notified as still under way is left to a person, unsent',
    control:
      'a refund whose row is lost after it was sent and whose request id is notified with another amount is not sent',
  },
  ...guards({ test: 'test/plays/approval/threshold.test.ts' }, [
    {
      file: 'src/refunds/attempt.ts',
      text: 'if (currency === null) return true',
      mutation: "if (currency !== '') return true",
      claim:
        'a refund fails unsent when a verified notification names another currency than it was judged by',
      control: 'a verified currency spelt "USD" has a threshold of its own',
    },
    {
      file: 'src/refunds/attempt.ts',
      text: 'const currency = capCurrency ?? requestedCurrency',
      mutation: 'const currency = capCurrency ?? (requestedCurrency && null)',
      claim:
        'a refund in a currency that nothing verifies fails unsent once another is verified: one approved',
      control:
        'a refund fails unsent when a verified notification names another currency than it was judged by',
    },
    {
      file: 'src/refunds/request-facts.ts',
      text: 'and upper(btrim(e.currency)) <> upper(btrim(t.currency))))`',
      mutation: 'and false))`',
      claim:
        'a refund in a currency that nothing verifies is sent as approved where notifications disagreed already',
      control:
        'a refund in a currency that nothing verifies fails unsent once another is verified: one approved',
    },
    {
      file: 'src/refunds/request-facts.ts',
      text: 'and (not t.order_verified',
      mutation: 'and (true or not t.order_verified',
      claim:
        'a currency counts as verified only while it is that of the transaction, also once the other one is deleted',
      control: 'a verified currency spelt "USD" has a threshold of its own',
    },
  ]),
]
