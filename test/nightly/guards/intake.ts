import { type Guard, guards } from './guard.ts'

export const INTAKE: readonly Guard[] = [
  ...guards({ file: 'src/ipn/receive.ts' }, [
    {
      text: 'const MAX_BODY_BYTES = 64 * 1024',
      mutation: 'const MAX_BODY_BYTES = 64 * 1024 + 1',
      test: 'test/api/ipn/http.test.ts',
      claim: 'size one byte more, with a length is 413 and not stored',
      control: 'formats application/vnd.gateway+json is JSON',
    },
    {
      text: "methods: IPN_ACCEPT_GET ? ['POST', 'GET'] : ['POST'],",
      mutation: "methods: IPN_ACCEPT_GET ? ['POST', 'GET'] : ['POST', 'GET'].slice(0, 2),",
      test: 'test/api/ipn/http.test.ts',
      claim: 'methods PATCH is 405 with Allow: POST',
      control:
        'methods switched on, GET takes the query string, and HEAD and PUT are still refused',
    },
    {
      text: "return badMs > 0 ? refuse('throttled'",
      mutation: "return badMs < 0 ? refuse('throttled'",
      test: 'test/api/ipn/abuse.test.ts',
      claim:
        'bad signatures of one address are answered 429 with Retry-After beyond the limit, and a good one is still accepted',
      control:
        'refusals are logged once a second per verdict, with the sender and the number of suppressed lines',
    },
    {
      text: "new Set(['malformed', 'bad_signature'])",
      mutation: "new Set(['bad_signature'])",
      test: 'test/api/ipn/refusal-limits.test.ts',
      claim:
        'a network whose share is used up counts malformed bodies of 5,300 members as bad: after thirty they are 429, and others are served',
      control:
        'so many malformed or wrongly signed ones of a network are told to wait, and no others',
    },
  ]),
  ...guards({ file: 'src/ipn/refusal-limits.ts', test: 'test/api/ipn/refusal-limits.test.ts' }, [
    {
      text: 'const MAX_CHARGE_MS = 5\n',
      mutation: 'const MAX_CHARGE_MS = 500\n',
      claim:
        'the CPU time of refused notifications of one notification is some 5 ms: a pause of the process is not charged',
      control:
        'so many malformed or wrongly signed ones of a network are told to wait, and no others',
    },
    {
      text: '      spent.charge(network, CPU, ms)\n',
      mutation: '      spent.charge(network, CPU, ms / 10)\n',
      claim:
        'the CPU time of refused notifications is 0.2 s of a network at once, and a tenth of the time after that',
      control:
        'so many malformed or wrongly signed ones of a network are told to wait, and no others',
    },
  ]),
  {
    file: 'src/ipn/refusal-limits.ts',
    text: 'const BAD: Rate = { perMinute: 30, burst: 30 }',
    mutation: 'const BAD: Rate = { perMinute: 30, burst: 3_000 }',
    test: 'test/api/ipn/abuse.test.ts',
    claim:
      'bad signatures of one address are answered 429 with Retry-After beyond the limit, and a good one is still accepted',
    control:
      'refusals are logged once a second per verdict, with the sender and the number of suppressed lines',
  },
  {
    file: 'src/platform/concurrency/rate-limiter.ts',
    text: 'setNewest(wholeAt, key, until, maxKeys)',
    mutation: 'setNewest(wholeAt, key, until, 1_000_000 * maxKeys)',
    test: 'test/unit/platform/concurrency/rate-limiter.test.ts',
    claim: 'a rate forgets the key that was silent for longest',
    control: 'a rate is one of each key',
  },
  {
    file: 'src/platform/concurrency/rate-limiter.ts',
    text: 'setNewest(kinds, kind, next, maxKeys)',
    mutation: 'setNewest(kinds, kind, next, 1_000_000 * maxKeys)',
    test: 'test/unit/platform/concurrency/rate-limiter.test.ts',
    claim: 'a throttle forgets the kind that was silent for longest, with its count',
    control: 'a rate is one of each key',
  },
]
