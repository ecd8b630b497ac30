import type { Guard } from './guard.ts'

export const READINGS: readonly Guard[] = [
  {
    file: 'src/ipn/store.ts',
    text: '    group by merchant_code, transaction_id order by merchant_code, transaction_id\n',
    mutation: '    group by merchant_code, transaction_id order by random()\n',
    test: 'test/races/wake.test.ts',
    claim: 'the intake locks rows in the order of their keys, so that batches never deadlock',
    control: 'a worker in another process finds due transactions also without a NOTIFY',
  },
  {
    file: 'src/ipn/readings.ts',
    text: 'const MAX_READINGS = 2',
    mutation: 'const MAX_READINGS = 3',
    test: 'test/plays/recut.test.ts',
    claim:
      'one genuine refund notification reserves at most twice, however often its values are cut anew',
    control: 'an old failure with one unsigned member added does not throw a decided success back',
  },
]
