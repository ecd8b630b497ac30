import type { Guard } from './guard.ts'

export const TRANSACTIONS: readonly Guard[] = [
  {
    file: 'src/transactions/summarise-payments.ts',
    text: "getCountedStatus(one) === 'SUCCESS'",
    mutation: "getCountedStatus({ ...one, countedStatus: null }) === 'SUCCESS'",
    test: 'test/unit/transactions/summarise-payments.test.ts',
    claim: 'a success whose status nobody knows any more counts, and keeps the transaction open',
    control: "the contract's table of states a success",
  },
  {
    file: 'src/transactions/summarise-payments.ts',
    text: 'const failed = payments.length > 0 && !open',
    mutation: 'const failed = !open',
    test: 'test/unit/transactions/summarise-payments.test.ts',
    claim: "the contract's table of states no payment yet",
    control: "the contract's table of states a success",
  },
  {
    file: 'src/transactions/summarise-payments.ts',
    text: 'compareAmounts(refundedAmount, paidAmount) < 0 ?',
    mutation: 'compareAmounts(refundedAmount, paidAmount) <= 0 ?',
    test: 'test/unit/transactions/summarise-payments.test.ts',
    claim: "the contract's table of states all refunded",
    control: "the contract's table of states a success",
  },
]
