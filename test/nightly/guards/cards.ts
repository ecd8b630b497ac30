import type { Guard } from './guard.ts'

export const CARDS: readonly Guard[] = [
  {
    file: 'src/cards/cache.ts',
    text: 'if (maxAgeMs === 0 || sizeOf(key, answer) > maxSize) return',
    mutation: 'if (maxAgeMs === 0) return',
    test: 'test/api/cards/cache.test.ts',
    claim: 'what is kept is bounded: the oldest makes room, and what is too large is not kept',
    control: 'a failure is not kept',
  },
  {
    file: 'src/cards/cache.ts',
    text: '.finally(() => pending.delete(key))',
    mutation: '.finally(() => pending.size)',
    test: 'test/api/cards/cache.test.ts',
    claim: 'a failure is not kept',
    control: 'a caller that goes away does not take the answer from the others',
  },
  {
    file: 'src/cards/read-cards.ts',
    text: 'id ?? Object.entries(query).toSorted(), language])',
    mutation: "id ?? (query && ''), language])",
    test: 'test/api/cards/cache.test.ts',
    claim: 'kept answers are shown again, for the same question only',
    control: 'a failure is not kept',
  },
  {
    file: 'src/gateway/tokens.ts',
    text: '      if (cached?.token !== token) return\n',
    mutation: "      if (cached?.token === undefined || token === '') return\n",
    test: 'test/api/cards/token.test.ts',
    claim: 'a kept token is not lost because an older one is refused late',
    control: 'a kept token without a stated life is kept until it is refused',
  },
  {
    file: 'src/gateway/tokens.ts',
    text: 'if (cached && at < cached.expiresAt) {',
    mutation: 'if (cached) {',
    test: 'test/api/cards/token.test.ts',
    claim: 'a kept token that has expired is not returned',
    control: 'a kept token without a stated life is kept until it is refused',
  },
  {
    file: 'src/gateway/tokens.ts',
    text: 'if (pending || !isPaused) return share()',
    mutation: 'if (pending || !isPaused || at > 0) return share()',
    test: 'test/api/cards/token.test.ts',
    claim: 'a kept token that cannot be had is asked for again after a pause that doubles',
    control: 'a kept token without a stated life is kept until it is refused',
  },
]
