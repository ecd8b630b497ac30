import type { Guard } from './guard.ts'

export const AMOUNTS: readonly Guard[] = [
  {
    file: 'src/money.ts',
    text: "return difference.lt(0) ? '0' : difference",
    mutation: "return difference.lt(-1e9) ? '0' : difference",
    test: 'test/unit/money.test.ts',
    claim: 'calculating a difference is never below 0',
    control: 'calculating the empty sum is 0',
  },
  {
    file: 'src/money.ts',
    text: '/^(?:0|[1-9]\\d{0,17})(?:\\.\\d{1,4})?$/',
    mutation: '/^(?:0|[1-9]\\d{0,18})(?:\\.\\d{1,4})?$/',
    test: 'test/unit/money.test.ts',
    claim: 'reading an amount "1000000000000000000" is no amount',
    control: 'reading an amount 0 is kept as it was written',
  },
]
