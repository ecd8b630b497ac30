import { type Guard, guards } from './guard.ts'

export const CARDS: readonly Guard[] = [
  {
    file: 'src/gateway/card-answers.ts',
    text: 'isSecretName(name) ? hide(one)',
    mutation: 'isSecretName(name) && hide(one) === null ? one',
    test: 'test/unit/card-answers.test.ts',
    claim:
      "a PIN and other credentials are hidden in what the gateway adds to a card of a 'detail'",
    control: 'null in the place of a card of the list',
  },
  ...guards({ file: 'src/gateway/stored-body.ts', test: 'test/api/ipn/stored-body.test.ts' }, [
    {
      text: ' && maskCardText(start) === start',
      mutation: " && start !== 'x'",
      claim:
        'what is masked a card number in the words of svc_OrderInfo, beside an id and an amount that look like one',
      control: 'what is masked a body without such members is stored byte for byte',
    },
    {
      text: "return EXACT_NAME.test(name) ? 'exact' : 'plain'",
      mutation: "return EXACT_NAME.test(name) ? 'plain' : 'plain'",
      claim:
        'what is masked a card number in the words of svc_ResponseMsg, beside an id and an amount that look like one',
      control: 'what is masked a body without such members is stored byte for byte',
    },
  ]),
  ...guards({ file: 'src/cards/cache.ts', test: 'test/api/cards/cache.test.ts' }, [
    {
      text: 'if (maxAgeMs === 0 || sizeOf(key, answer) > maxSize) return',
      mutation: 'if (maxAgeMs === 0) return',
      claim: 'what is kept is bounded: the oldest makes room, and what is too large is not kept',
      control: 'a failure is not kept',
    },
    {
      text: '.finally(() => pending.delete(key))',
      mutation: '.finally(() => pending.size)',
      claim: 'a failure is not kept',
      control: 'a caller that goes away does not take the answer from the others',
    },
  ]),
  {
    file: 'src/cards/read-cards.ts',
    text: 'id ?? Object.entries(query).toSorted(), language])',
    mutation: "id ?? (query && ''), language])",
    test: 'test/api/cards/cache.test.ts',
    claim: 'kept answers are shown again, for the same question only',
    control: 'a failure is not kept',
  },
  ...guards({ file: 'src/gateway/tokens.ts', test: 'test/api/cards/token.test.ts' }, [
    {
      text: '      if (cached?.token !== token) return\n',
      mutation: "      if (cached?.token === undefined || token === '') return\n",
      claim: 'a kept token is not lost because an older one is refused late',
      control: 'a kept token without a stated life is kept until it is refused',
    },
    {
      text: 'if (cached && at < cached.expiresAt) {',
      mutation: 'if (cached) {',
      claim: 'a kept token that has expired is not returned',
      control: 'a kept token without a stated life is kept until it is refused',
    },
    {
      text: 'if (pending || !isPaused) return share()',
      mutation: 'if (pending || !isPaused || at > 0) return share()',
      claim: 'a kept token that cannot be had is asked for again after a pause that doubles',
      control: 'a kept token without a stated life is kept until it is refused',
    },
  ]),
  {
    file: 'src/platform/crypto/masking.ts',
    text: '  /(cv[vcn]2?|csc|(?:security|verification)',
    mutation: '  /(cv[vc]2?|(?:security|verification)',
    test: 'test/unit/platform/crypto/masking.test.ts',
    claim: 'a CVV by another name in a text is hidden: CVN 123',
    control: 'a CVV in a text is hidden',
  },
  {
    file: 'src/platform/crypto/masking.ts',
    text: '\\p{Cf}._/]{0,3}',
    mutation: '\\p{Cf}._]{0,3}',
    test: 'test/unit/platform/crypto/masking.test.ts',
    claim: 'a card number in "4111/1111/1111/1111" is masked',
    control: 'a card number in "4111-1111-1111-1111" is masked',
  },
  {
    file: 'src/refunds/receiver.ts',
    text: 'if (characters.length < MIN_GROUPED) return',
    mutation: 'if (characters.length < 1e6 * MIN_GROUPED) return',
    test: 'test/unit/refunds/receiver.test.ts',
    claim: 'an account number 0123 456 789 is masked in "account 0123456789 is closed"',
    control: 'an account number 1129 is masked in "account 1129, since 2026-11-29"',
  },
]
