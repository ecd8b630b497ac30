import { type Guard, guards } from './guard.ts'

export const MOVED_PAYMENTS: readonly Guard[] = [
  {
    file: 'src/payments/compare-payments.ts',
    text: 'const BELIEVED_AFTER_MS = 60_000',
    mutation: 'const BELIEVED_AFTER_MS = 0',
    test: 'test/api/payments/apply-payments.test.ts',
    claim:
      'a payment that is no longer listed is believed gone only once two answers at least a minute apart omit it',
    control:
      'a payment id that belongs to another transaction of another merchant is allowed: ids are unique per merchant',
  },
  {
    file: 'src/payments/apply-payments.ts',
    text: 'where target.transaction_id = excluded.transaction_id`',
    mutation: 'where true`',
    test: 'test/api/payments/apply-payments.test.ts',
    claim:
      'a payment id that belongs to another transaction also when the other transaction stores it at the same moment',
    control:
      'a payment id that belongs to another transaction of another merchant is allowed: ids are unique per merchant',
  },
  {
    file: 'src/payments/compare-payments.ts',
    text: 'return unreadableIds.has(undefined) ? payment : markUnlisted(payment, asOf)',
    mutation: 'return markUnlisted(payment, asOf)',
    test: 'test/api/sync/odd-entries.test.ts',
    claim:
      'an entry without an id {"id":7}: the others are applied, no payment is taken for gone, and the transaction stays open',
    control: 'the answer is stored with every member it had, card numbers masked',
  },
  {
    file: 'src/sync/apply-answers.ts',
    text: 'one.id !== undefined || undismissed.includes(one)',
    mutation: 'one.id !== undefined || list.unreadable.includes(one)',
    test: 'test/api/sync/odd-entries.test.ts',
    claim:
      'an entry without an id that a person has set aside keeps no payment from being believed gone, and from moving',
    control: 'the answer is stored with every member it had, card numbers masked',
  },
  ...guards({ file: 'src/transactions/move-payments.ts' }, [
    {
      text: 'transaction_id = any(${[...from]}) and missing',
      mutation: 'transaction_id = any(${[...from]})',
      test: 'test/api/payments/apply-payments.test.ts',
      claim:
        'a payment id that belongs to another transaction stays there, with a discrepancy: the rest of the answer is applied, and both are asked about',
      control:
        'a payment id that belongs to another transaction of another merchant is allowed: ids are unique per merchant',
    },
    {
      text: '[refunds, { transactionId, ...NO_NUMBERS }],',
      mutation: '[refunds, { transactionId: from[0] ?? transactionId, ...NO_NUMBERS }],',
      test: 'test/api/feed/recorded-events.test.ts',
      claim: 'a refund has an event when its payment moves with it to another transaction',
      control: 'a discrepancy has an event when the recheck of a final transaction finds it',
    },
    {
      text: 'moved.map((one) => describeLoss(key, one)),',
      mutation: 'moved.slice(1).map((one) => describeLoss(key, one)),',
      test: 'test/api/transactions/moved-payments.test.ts',
      claim:
        'a payment that moves to another transaction and moves back is no discrepancy there any more',
      control:
        'a transaction whose state is not that of its payments is corrected by a failed answer, too, and told about',
    },
  ]),
  {
    file: 'src/refunds/request.ts',
    text: 'early === false ?',
    mutation: '!early ?',
    test: 'test/races/moved-payment.test.ts',
    claim:
      'a payment that moves during the request does not make it wait for the transaction it moves to',
    control:
      'a payment that moves to another transaction during the request is not refunded without its lock',
  },
  ...guards(
    {
      test: 'test/plays/review/proof.test.ts',
      control: 'the proof of a refund shows a refusal with the code and the message of the gateway',
    },
    [
      {
        file: 'src/transactions/move-payments.ts',
        text: 'for (const { before } of moves) ids.add(before)',
        mutation: 'for (const { before } of moves) if (ids.size < 2) ids.add(before)',
        claim:
          'the proof of a refund whose payment has moved keeps its steps and discrepancies, and a decision resolves them',
      },
      {
        file: 'src/refunds/proof.ts',
        text: 'and h.transaction_id = any(${[...transactionIds]}',
        mutation: 'and h.transaction_id = any(${transactionIds.slice(0, 1)}',
        claim:
          'the proof of a refund whose payment has moved keeps its steps and discrepancies, and a decision resolves them',
      },
      {
        file: 'src/refunds/proof.ts',
        text: 'and transaction_id = any(${[...transactionIds]}',
        mutation: 'and transaction_id = any(${transactionIds.slice(0, 1)}',
        claim:
          'the proof of a refund whose payment has moved keeps its steps and discrepancies, and a decision resolves them',
      },
      {
        file: 'src/decisions/unit-of-work.ts',
        text: '    found.flatMap((of) =>',
        mutation: '    found.slice(0, 1).flatMap((of) =>',
        claim:
          'the proof of a refund whose payment has moved keeps its steps and discrepancies, and a decision resolves them',
      },
    ],
  ),
]
