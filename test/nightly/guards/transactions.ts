import { type Guard, guards } from './guard.ts'

export const TRANSACTIONS: readonly Guard[] = [
  {
    file: 'src/refunds/routes.ts',
    text: '        refund = found.refund\n        if (!hasMoved) await',
    mutation: '        if (!hasMoved || left > 0) await',
    test: 'test/api/refunds/read.test.ts',
    claim: 'one refund is held until its end also where its payment moves to another transaction',
    control: 'one refund is returned as it is when the wait times out',
  },
  ...guards({ file: 'src/transactions/summarise-payments.ts' }, [
    {
      text: "getCountedStatus(one) === 'SUCCESS'",
      mutation: "getCountedStatus({ ...one, countedStatus: null }) === 'SUCCESS'",
      test: 'test/unit/transactions/summarise-payments.test.ts',
      claim: 'a success whose status nobody knows any more counts, and keeps the transaction open',
      control: "the contract's table of states a success",
    },
    {
      text: 'const failed = payments.length > 0 && !open',
      mutation: 'const failed = !open',
      test: 'test/unit/transactions/summarise-payments.test.ts',
      claim: "the contract's table of states no payment yet",
      control: "the contract's table of states a success",
    },
    {
      text: 'compareAmounts(refundedAmount, paidAmount) < 0 ?',
      mutation: 'compareAmounts(refundedAmount, paidAmount) <= 0 ?',
      test: 'test/unit/transactions/summarise-payments.test.ts',
      claim: "the contract's table of states all refunded",
      control: "the contract's table of states a success",
    },
  ]),
  ...guards({ test: 'test/api/transactions/wait-for-transaction.test.ts' }, [
    {
      file: 'src/ipn/inbox.ts',
      text: "one.kind === 'payment' && isStored ? [one.transactionId] : []",
      mutation: "one.kind === 'payment' && !isStored ? [one.transactionId] : []",
      claim:
        'an id that nobody knows yet is answered when its notification comes, which costs its readers one read and no polls',
      control: 'without an ETag a final transaction is answered at once',
    },
    {
      file: 'src/transactions/find-transaction.ts',
      text: 'if (isDone(found) || left <= 0 || end.aborted) return found',
      mutation: 'if (isDone(found) || left <= 60_000 || end.aborted) return found',
      claim: 'an id that nobody knows yet is a 404 at the time-out, and at once without wait',
      control: 'without an ETag a final transaction is answered at once',
    },
    {
      file: 'src/transactions/find-transaction.ts',
      text: 'read: () => findIfKnown(ctx, merchants, transactionId),',
      mutation:
        'read: () => findIfKnown(ctx, merchants.length > 0 ? ctx.access.merchants : merchants, transactionId),',
      claim:
        "an id that nobody knows yet is still a 404 for a key of another account when the owner's notification has come",
      control: 'an id that nobody knows yet is a 404 at the time-out, and at once without wait',
    },
    {
      file: 'src/transactions/find-transaction.ts',
      text: 'if (!first && ctx.lifecycle.stopping.aborted) {',
      mutation: 'if (!first && ctx.lifecycle.stopping.aborted && merchants.length === 0) {',
      claim:
        'a stopping service answers its waiting readers at once with the current state, of an unknown id with 503',
      control: 'without an ETag a final transaction is answered at once',
    },
  ]),
  {
    file: 'src/maintenance/housekeeping.ts',
    text: "if (!noteOutage(ctx.log, err, 'rounds')) ctx.log.error({ err, ...key }, what)",
    mutation:
      "if (!noteOutage(ctx.log, err, 'rounds')) ctx.log.error({ err, ...key }, what)\n      throw err",
    test: 'test/api/transactions/check-order.test.ts',
    claim:
      'two paid transactions of one order are flagged by that pass though the check of another order fails',
    control:
      'two paid transactions of one order are flagged by a later pass if the process stops right after its commit',
  },
  ...guards({ file: 'src/search.ts', test: 'test/api/search/search.test.ts' }, [
    {
      text: 'prefix.toLowerCase() === letters.toLowerCase()',
      mutation: 'prefix === letters',
      claim: 'an object is found by an order id of small and large letters',
      control: 'an object is found by an order id in another case, with its sign',
    },
    {
      text: "['#', ...prefixes].map(",
      mutation: "['#'].map(",
      claim: 'an object is found by the digits of an order id',
      control: 'an object is found by an order id without its sign',
    },
  ]),
]
