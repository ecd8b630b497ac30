import type { Guard } from './guard.ts'

export const ATTEMPTS: readonly Guard[] = [
  {
    file: 'src/refunds/attempt/end-late-attempt.ts',
    text: '  else applyEarlier(draft, sent)',
    mutation: '  else if (row === undefined) applyEarlier(draft, sent)',
    test: 'test/plays/attempt/lease.test.ts',
    claim:
      'a worker that lost its lease and whose refund another worker sent again meanwhile: code 0 to the first attempt accepts it',
    control:
      'a lease that would end before the call is too short to send: no attempt is recorded, and the refund waits',
  },
  {
    file: 'src/refunds/attempt/end-attempt.ts',
    text: 'isUnsent(draft.now) && draft.now.failureCode !== null',
    mutation: "isUnsent(draft.now) && draft.now.failureCode === ''",
    test: 'test/plays/attempt/lease.test.ts',
    claim:
      'a worker that lost its lease and had written no byte, while a failure was notified: somebody else sent it, so a person decides',
    control:
      'a lease that would end before the call is too short to send: no attempt is recorded, and the refund waits',
  },
]
