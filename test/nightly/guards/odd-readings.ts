import { type Guard, guards } from './guard.ts'

export const ODD_READINGS: readonly Guard[] = [
  ...guards({ file: 'src/payments/compare-payments.ts' }, [
    {
      text: 'if (areApart(since, asOf, apartMs)) return NO_ODD_SUCCESS',
      mutation: 'if (areApart(since, asOf, apartMs) || true) return NO_ODD_SUCCESS',
      test: 'test/api/payments/odd-readings.test.ts',
      claim:
        'an amount of a success that changes one answer that shows ten times the amount lets no 400 of 100 out',
      control: 'an amount of a success that changes before it succeeded counts at once',
    },
    {
      text: 'const isSame = compareAmounts(amount, old.amount) === 0',
      mutation: "const isSame = amount !== ''",
      test: 'test/api/payments/odd-readings.test.ts',
      claim: 'an amount of a success that changes to a third value waits anew',
      control: 'an amount of a success that changes before it succeeded counts at once',
    },
    {
      text: 'return since !== asOf && measureMs',
      mutation: 'return measureMs',
      test: 'test/plays/evidence/stale-answers.test.ts',
      claim: 'where two answers need not be apart one alone frees nothing',
      control: 'an answer from a stale replica confirms no failure before the fall is believed',
    },
  ]),
]
