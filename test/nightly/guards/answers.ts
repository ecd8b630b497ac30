import { type Guard, guards } from './guard.ts'

export const ANSWERS: readonly Guard[] = [
  ...guards({ file: 'src/sync/commit.ts', test: 'test/api/sync/retry.test.ts' }, [
    {
      text: '    const reason = explainRefusedAnswer(error)\n    if (reason === undefined) throw error\n',
      mutation: "    const reason = explainRefusedAnswer(error) ?? 'refused'\n",
      claim:
        'a failed query a commit that fails with 40P01 again and again is not one: it is due when the lease ends',
      control: 'an open answer code 9 is polled, not counted as a failure',
    },
    {
      text: '      if (isWorthRepeating(error)) return commit()\n',
      mutation: "      if (isWorthRepeating(error) && error === '') return commit()\n",
      claim: 'a failed query a deadlock while committing is not one: the commit is repeated',
      control: 'an open answer code 9 is polled, not counted as a failure',
    },
  ]),
  {
    file: 'src/gateway/answers.ts',
    text: 'return cut(formatEntry(value))',
    mutation: "return cut(stringify(toStorable(value)) ?? '')",
    test: 'test/unit/payment-answers.test.ts',
    claim:
      'an answer to QUERY_PT has a status that is nested thousands of levels deep, of which 64 are read',
    control: 'an answer to QUERY_PT lists no payment twice: neither entry of an id can be read',
  },
  {
    file: 'src/gateway/storable.ts',
    text: 'return printable.slice(0, MAX_MESSAGE).toWellFormed()',
    mutation: 'return printable.toWellFormed().slice(0, MAX_MESSAGE)',
    test: 'test/api/gateway-answers.test.ts',
    claim: 'an answer to REFUND with a message that is cut within a character is stored',
    control: 'an answer to REFUND {"svc_ResponseCode":0} leaves its amount reserved',
  },
  ...guards(
    {
      file: 'src/refunds/answer.ts',
      test: 'test/plays/evidence/answers.test.ts',
      control: 'the answer to a refund without a byte written gives the refund back, also late',
    },
    [
      {
        text: "if (!isInferredUnmatched(draft.now) && draft.now.review !== 'no_evidence') return",
        mutation:
          "if (!isInferredUnmatched(draft.now) || draft.now.review !== 'no_evidence') return",
        claim:
          'the answer to a refund without a byte written, after its success was inferred, leaves it to a person',
      },
      {
        text: "if (outcome.kind !== 'unavailable' || before.status !== 'pending') return",
        mutation: "if (outcome.kind !== 'unavailable' || before.status === 'sending') return",
        claim:
          'the answer to a refund without a byte written of a repetition leaves what the first attempt may have done',
      },
    ],
  ),
]
