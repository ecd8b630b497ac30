import type { Guard } from './guard.ts'

export const DECISIONS: readonly Guard[] = [
  {
    file: 'src/refunds/review/release-returned.ts',
    text: 'if (payment && isIncluded) await',
    mutation: "if (payment && isIncluded && amount === '') await",
    test: 'test/plays/review/decided-again.test.ts',
    claim:
      'the second word on a refund that came back releases it at once; the refunded amount decides what is left',
    control:
      'what a person decided as failed is decided as succeeded by the same one too: that only reserves again',
  },
]
