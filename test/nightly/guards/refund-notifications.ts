import { type Guard, guards } from './guard.ts'

export const REFUND_NOTIFICATIONS: readonly Guard[] = [
  ...guards(
    { file: 'src/refunds/notifications.ts', test: 'test/unit/refunds/transitions.test.ts' },
    [
      {
        text: "if (successNotifiedAt !== null && status !== 'returned') return undefined",
        mutation: "if (successNotifiedAt !== null && status === 'pending') return undefined",
        claim:
          'a notification of success repeated after a person has decided against it changes nothing (failure 1)',
        control: 'a notification of success makes a refund that is sending succeed',
      },
      {
        text: "if (failureCode === code && status !== 'returned') return undefined",
        mutation: "if (failureCode === code && status === 'pending') return undefined",
        claim: 'a notification of failure repeated after a person has decided changes nothing',
        control: 'a notification of success makes a refund that is sending succeed',
      },
      {
        text: "if (now.status === 'succeeded') return 'after",
        mutation: "if (now.status === 'succeeded' && now.inferred) return 'after",
        claim:
          'a notification of failure after success sends the refund to review, unmatched, and is a disagreement',
        control: 'a notification of success makes a refund that is sending succeed',
      },
      {
        text: 'now.attempts > 1 ?',
        mutation: 'now.attempts > 9 ?',
        claim: 'a notification of failure sends a refund to review sent twice and accepted',
        control: 'a notification of success makes a refund that is sending succeed',
      },
      {
        text: '...failure, ...words, noGrowthSince: null }',
        mutation: '...failure, ...words }',
        claim: 'a notification of failure starts the wait for answers without growth anew',
        control: 'a notification of success makes a refund that is sending succeed',
      },
      {
        text: "if (status === 'returned') return keepForReturned(draft, { ...cause, code }",
        mutation:
          "if (status === 'returned' && code === '') return keepForReturned(draft, { ...cause, code }",
        claim: 'a notification of success of one that came back is kept, and is a disagreement',
        control: 'a notification of success makes a refund that is accepted succeed',
      },
      {
        text: "!== null && status !== 'returned') return undefined",
        mutation: '!== null) return undefined',
        claim:
          'a notification of success once more, of one that came back since, is kept, and is a disagreement of its own',
        control: 'a notification of success makes a refund that is sending succeed',
      },
      {
        text: "=== code && status !== 'returned') return undefined",
        mutation: '=== code) return undefined',
        claim:
          'a notification of failure once more, of one that came back since, is kept, and is a disagreement of its own',
        control: 'a notification of success makes a refund that is sending succeed',
      },
    ],
  ),
  {
    file: 'src/refunds/notifications.ts',
    text: '${notified}, id ${ipnEventId}',
    mutation: '${notified}, id ${draft.now.refundId}',
    test: 'test/plays/review/returned.test.ts',
    claim:
      'a success notification of a refund that came back is told each time: it may have been paid out again',
    control:
      'a refund that is sent while another one comes back is sent at once when the second answer does not show it',
  },
  ...guards(
    { file: 'src/refunds/notifications.ts', test: 'test/unit/refunds/transitions.test.ts' },
    [
      {
        text: 'if (otherCode !== null) return',
        mutation: 'if (otherCode !== null && now.attempts > 9) return',
        claim:
          'a notification of failure sends a refund to review of which another failure was notified',
        control: 'a notification of success makes a refund that is accepted succeed',
      },
      {
        text: 'if (isUnsent(now)) return',
        mutation: 'if (isUnsent(now) && now.attempts > 9) return',
        claim: 'a notification of failure sends a refund to review that was not sent from here',
        control: 'a notification of success makes a refund that is sending succeed',
      },
      {
        text: "if (now.successNotifiedAt !== null) return 'and a success'",
        mutation: "if (now.successNotifiedAt !== null && now.attempts > 9) return 'and a success'",
        claim: 'a notification of failure sends a refund to review whose success was notified',
        control: 'a notification of success makes a refund that is sending succeed',
      },
      {
        text: "if (now.status === 'needs_review') return 'while",
        mutation: "if (now.status === 'needs_review' && now.attempts > 9) return 'while",
        claim:
          'a notification of failure in review is kept on the refund, and nothing is inferred any more',
        control: 'a notification of success makes a refund that is sending succeed',
      },
    ],
  ),
  ...guards({ file: 'src/refunds/evidence.ts' }, [
    {
      text: 'const same = isOwn && isFitting',
      mutation: 'const same = (isOwn || one.requestId.toLowerCase() === own.refundId) && isFitting',
      test: 'test/plays/reconcile/notifications.test.ts',
      claim: 'with IPN_SIGNATURE=off a forged success, or failure, never changes a refund',
      control: 'with IPN_SIGNATURE=off a forged notification of a portal refund matches no delta',
    },
    {
      text: 'paymentId === own.paymentId &&',
      mutation: '(paymentId === own.paymentId || one.verified) &&',
      test: 'test/plays/reconcile/notifications.test.ts',
      claim:
        'a verified notification that names our refund with another payment changes nothing and is a disagreement',
      control: 'with IPN_SIGNATURE=off a forged notification of a portal refund matches no delta',
    },
    {
      text: 'compareAmounts(amount, own.amount) === 0',
      mutation: 'compareAmounts(amount, own.amount) >= 0',
      test: 'test/plays/reconcile/notifications.test.ts',
      claim:
        'a verified notification that names our refund with another amount changes nothing and is a disagreement',
      control:
        'with IPN_SIGNATURE=optional a forged notification of a portal refund matches no delta',
    },
  ]),
  {
    file: 'src/refunds/notifications.ts',
    text: "sendToReview(draft, 'notified_unsent', 'contradicted', { reason, ipnEventId: one.id })",
    mutation: 'void reason',
    test: 'test/plays/approval/approval.test.ts',
    claim:
      'while it awaits approval a notification of its id with another amount leaves it to a person',
    control:
      'a refund above the threshold is checked against what is left when it is sent, not when it was approved',
  },
  {
    file: 'src/refunds/evidence.ts',
    text: '!isResultCode(code) || isOpenCode(code)) return undefined',
    mutation: "!isResultCode(code) || (isOpenCode(code) && code === '')) return undefined",
    test: 'test/plays/reconcile/notifications.test.ts',
    claim: 'a notification of our own refund with code 99 changes nothing',
    control:
      'a verified notification that names our refund with another payment changes nothing and is a disagreement',
  },
  {
    file: 'src/gateway/response-codes.ts',
    text: '/^(0|-?[1-9]\\d{0,8})$/.test(text)',
    mutation: '/^-?\\d{1,9}$/.test(text)',
    test: 'test/plays/reconcile/notifications.test.ts',
    claim: 'a notification of our own refund with code 05 changes nothing',
    control:
      'a verified notification that names our refund with another payment changes nothing and is a disagreement',
  },
  {
    file: 'src/refunds/notifications.ts',
    text: 'now.refundId === requestId.toLowerCase())',
    mutation: 'now.refundId === requestId)',
    test: 'test/plays/evidence/moved-twice.test.ts',
    claim: 'a request id in upper case (l) is that of the refund: its success ends it',
    control:
      'inference never frees money (f) until its own notification, or a person, makes it known',
  },
  ...guards({ test: 'test/plays/received.test.ts' }, [
    {
      file: 'src/refunds/notifications.ts',
      text: 'one.body = maskStored(one.body, mask)',
      mutation: 'void maskStored(one.body, mask)',
      claim:
        'the notification of a failed refund leaves the account number in no table and no timeline',
      control: 'the answer to a query as specified is stored as its entries, and nothing twice',
    },
    {
      file: 'src/refunds/save.ts',
      text: 'body = coalesce(n.body, e.body)',
      mutation: 'body = coalesce(e.body, n.body)',
      claim:
        'the notification of a failed refund leaves the account number in no table and no timeline',
      control: 'the answer to a query as specified is stored as its entries, and nothing twice',
    },
    {
      file: 'src/refunds/notifications.ts',
      text: 'details.message && mask(details.message)',
      mutation: 'details.message',
      claim:
        'the notification of a failed refund masks the account number 0123 456 789 in "account 0123456789 is closed"',
      control: 'the answer to a query as specified is stored as its entries, and nothing twice',
    },
    {
      file: 'src/refunds/receiver.ts',
      text: 'if (accountNumber.length < MIN_ACCOUNT_NUMBER) return text',
      mutation: 'if (accountNumber.length < MIN_ACCOUNT_NUMBER - 3) return text',
      claim:
        'the notification of a failed refund masks the account number 012 in "account 012 is closed"',
      control: 'the answer to a query as specified is stored as its entries, and nothing twice',
    },
  ]),
  {
    file: 'src/gateway/stored-body.ts',
    text: 'EVIDENCE.test(name) ? [',
    mutation: 'EVIDENCE.test(body) ? [',
    test: 'test/unit/gateway/mask-notification.test.ts',
    claim: 'a stored notification in JSON is masked beside its evidence',
    control: 'a stored notification in an unreadable body is masked beside its evidence',
  },
  {
    file: 'src/refunds/receiver.ts',
    text: '/[\\w+/-]{16,}={0,2}/g',
    mutation: '/[\\w+/-]{1600,}={0,2}/g',
    test: 'test/plays/received.test.ts',
    claim:
      'the answer to a refund is stored without the receiver that it sends back, as it was sent',
    control: 'the answer to a refund that cannot be read is in the proof as well',
  },
]
