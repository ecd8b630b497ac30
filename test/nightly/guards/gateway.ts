import { type Guard, guards } from './guard.ts'

export const GATEWAY: readonly Guard[] = [
  {
    file: 'src/cards/cache.ts',
    text: '      if (found && now() - found.loadedAt < maxAgeMs) return',
    mutation: '      if (found) return',
    test: 'test/api/cards/cache.test.ts',
    claim: 'an answer is as old as its question, and gone when it is too old',
    control: 'what is kept is bounded: the oldest makes room, and what is too large is not kept',
  },
  {
    file: 'src/cards/read-cards.ts',
    text: 'filter((owner) => !isOwned(account, owner))',
    mutation: "filter((owner) => !isOwned(account, owner) && owner === '')",
    test: 'test/api/cards/accounts.test.ts',
    claim: 'accounts with tokens of their own do not share what is kept',
    control: 'an account without any token has no cards, and the error names the settings',
  },
  {
    file: 'src/gateway/client.ts',
    text: "    const isFailed = kind === 'unavailable' || kind === 'unknown'\n",
    mutation: "    const isFailed = kind !== 'answered'\n",
    test: 'test/api/platform/concurrency/circuit-breaker.test.ts',
    claim:
      'queries of a gateway that does not answer refusals are answers: they do not open the breaker',
    control:
      'a breaker opens after its number of failures in a row, not when an answer came between them',
  },
  ...guards({ file: 'src/gateway/client.ts', test: 'test/api/gateway/client.test.ts' }, [
    {
      text: '    return { answer: { kind: result.kind, reason',
      mutation: "    return { answer: { kind: 'unavailable', reason",
      claim:
        'the outcome of the fault {"kind":"reset"} is {"kind":"unknown","reason":{"sample":{},"inverse":false}}',
      control:
        'the outcome of the fault {"kind":"acceptThenCode"} is {"kind":"rejected","code":"1"}',
    },
    {
      text: '  if (status < 200 || status > 299) {',
      mutation: '  if (status < 200 || status > 599) {',
      claim:
        'the outcome of the fault {"kind":"http500"} is {"kind":"unknown","reason":"HTTP status 500"}',
      control:
        'the outcome of the fault {"kind":"reset"} is {"kind":"unknown","reason":{"sample":{},"inverse":false}}',
    },
  ]),
  {
    file: 'src/gateway/answers.ts',
    text: "if (!answer) return { kind: 'unknown', reason: 'the answer is not a JSON object' }",
    mutation: "if (!answer) return { kind: 'rejected', code: '1', message: '' }",
    test: 'test/api/gateway/client.test.ts',
    claim:
      'the outcome of the fault {"kind":"garbage"} is {"kind":"unknown","reason":"the answer is not a JSON object"}',
    control:
      'the outcome of the fault {"kind":"http500"} is {"kind":"unknown","reason":"HTTP status 500"}',
  },
  ...guards({ test: 'test/api/platform/concurrency/circuit-breaker.test.ts' }, [
    {
      file: 'src/platform/concurrency/circuit-breaker.ts',
      text: '        if (began === pauses) apply(reason)',
      mutation: '        if (began <= pauses) apply(reason)',
      claim: 'a breaker ignores the results of calls that began before it paused',
      control:
        'a breaker lets one probe through at a time, doubles the pause up to its limit, and closes with an answer',
    },
    {
      file: 'src/platform/concurrency/circuit-breaker.ts',
      text: '      if (waitMs() > 0) return undefined\n',
      mutation: '      if (!isProbing && waitMs() > 0) return undefined\n',
      claim: 'a breaker ignores the results of calls that began before it paused',
      control:
        'a breaker opens after its number of failures in a row, not when an answer came between them',
    },
    {
      file: 'src/platform/concurrency/circuit-breaker.ts',
      text: 'Math.min(maxPauseMs, pauseMs * 2 ** (failed - failures))',
      mutation: 'Math.min(maxPauseMs, pauseMs)',
      claim:
        'a breaker lets one probe through at a time, doubles the pause up to its limit, and closes with an answer',
      control: 'a breaker ignores the results of calls that began before it paused',
    },
    {
      file: 'src/platform/concurrency/circuit-breaker.ts',
      text: 'isProbing || now() < pausedUntil + untestedMs',
      mutation: 'isProbing || (pausedUntil !== CLOSED && untestedMs > 0)',
      claim: 'a breaker counts as paused while calls test it, and not for ever when none does',
      control: 'a breaker ignores the results of calls that began before it paused',
    },
    {
      file: 'src/gateway/breakers.ts',
      text: 'permit.fail(end.reason)',
      mutation: 'permit.fail(end.outcome)',
      claim:
        'what no call tests any more is paused in the log and on /readyz for a while, and no outage from then on',
      control:
        'what is paused is shown by /readyz, which stays ready, and by the metrics; cards are 503 with Retry-After, and nothing else is',
    },
    {
      file: 'src/gateway/breakers.ts',
      text: 'filter(({ breaker }) => breaker.isPaused())',
      mutation: "filter(({ breaker }) => breaker.state() !== 'closed')",
      claim:
        'what no call tests any more is paused in the log and on /readyz for a while, and no outage from then on',
      control:
        'what is paused is shown by /readyz, which stays ready, and by the metrics; cards are 503 with Retry-After, and nothing else is',
    },
  ]),
  ...guards({ file: 'src/platform/outbound/exchange.ts' }, [
    {
      text: "          if (ended || controller) return started.abort(new Error('not sent'))\n",
      mutation: "          if (ended) return started.abort(new Error('not sent'))\n",
      test: 'test/api/platform/outbound/exchange.test.ts',
      claim: 'a dispatcher that retries by itself is stopped',
      control: 'a host name that does not resolve is unavailable',
    },
    {
      text: "          if (ended || controller) return started.abort(new Error('not sent'))\n",
      mutation: "          if (controller) return started.abort(new Error('not sent'))\n",
      test: 'test/api/platform/outbound/exchange.test.ts',
      claim: 'a request aborted while connecting is not sent once the connection is established',
      control: 'a refused connection is unavailable',
    },
    {
      text: "    signal?.addEventListener('abort', interrupt)\n",
      mutation: '',
      test: 'test/api/platform/outbound/exchange.test.ts',
      claim: 'a request aborted while connecting is not sent once the connection is established',
      control: 'a time-out while connecting is unavailable, one after sending is unknown',
    },
  ]),
  {
    file: 'src/sandbox/control.ts',
    text: '/^(true|false)$/.test(value)',
    mutation: '/^(true)$/.test(value)',
    test: 'test/api/sandbox/page.test.ts',
    claim:
      'the forms of the page may set every number, and what is true or false: /payments/P1?method=PATCH with {"listed":"false"}',
    control: 'the forms of the page set faults and clear them',
  },
]
