import type { Guard } from './guard.ts'

export const INTAKE: readonly Guard[] = [
  {
    file: 'src/ipn/decide-answer.ts',
    text: 'const MAX_BODY_BYTES = 64 * 1024',
    mutation: 'const MAX_BODY_BYTES = 64 * 1024 + 1',
    test: 'test/api/ipn/http.test.ts',
    claim: 'size one byte more, with a length is 413 and not stored',
    control: 'formats application/vnd.gateway+json is JSON',
  },
  {
    file: 'src/ipn/decide-answer.ts',
    text: '    if (hasSeveralHosts(incoming)) return SEVERAL_HOSTS\n',
    mutation: "    if (incoming.method === '' && hasSeveralHosts(incoming)) return SEVERAL_HOSTS\n",
    test: 'test/api/ipn/http.test.ts',
    claim: 'two Host headers are refused with 400, at /ipn',
    control: 'formats unsigned fields may hold anything',
  },
  {
    file: 'src/ipn/decide-answer.ts',
    text: "  const methods = IPN_ACCEPT_GET ? ['POST', 'GET'] : ['POST']",
    mutation: "  const methods = IPN_ACCEPT_GET ? ['POST', 'GET'] : ['POST', 'GET'].slice(0, 2)",
    test: 'test/api/ipn/http.test.ts',
    claim: 'methods PATCH is 405 with Allow: POST',
    control: 'methods switched on, GET takes the query string, and HEAD and PUT are still refused',
  },
  {
    file: 'src/ipn/decide-answer.ts',
    text: '    if (throttledMs > 0) return answerThrottled(throttledMs)\n',
    mutation: '    void answerThrottled\n',
    test: 'test/api/ipn/abuse.test.ts',
    claim:
      'bad signatures of one address are answered 429 with Retry-After beyond the limit, and a good one is still accepted',
    control:
      'a forged notification stores no row and causes no call, however often it is sent and in whatever form',
  },
  {
    file: 'src/ipn/reading-budget.ts',
    text: 'const MAX_CHARGE_MS = 5\n',
    mutation: 'const MAX_CHARGE_MS = 500\n',
    test: 'test/api/ipn/reading-budget.test.ts',
    claim:
      'the CPU time of refused notifications of one notification is at most 5 ms: a pause of the process is not charged',
    control:
      'the CPU time of refused notifications counts four times for a network that is throttled, and once if a well-signed one came from it',
  },
  {
    file: 'src/ipn/reading-budget.ts',
    text: '      if (left <= 0) return measureRefill(left, OF_NETWORK.perS)\n',
    mutation: '',
    test: 'test/api/ipn/reading-budget.test.ts',
    claim:
      'the CPU time of refused notifications counts four times for a network that is throttled, and once if a well-signed one came from it',
    control:
      'the CPU time of refused notifications of one notification is at most 5 ms: a pause of the process is not charged',
  },
  {
    file: 'src/ipn/reading-budget.ts',
    text: 'networks.size > MAX_NETWORKS ? networks.keys() : []',
    mutation: 'networks.size > 1_000_000 * MAX_NETWORKS ? networks.keys() : []',
    test: 'test/api/ipn/reading-budget.test.ts',
    claim:
      'the share of all networks remembers a limited number of networks, and strangers do not displace those that are known',
    control:
      'the CPU time of refused notifications counts four times for a network that is throttled, and once if a well-signed one came from it',
  },
  {
    file: 'src/ipn/signature-throttle.ts',
    text: 'const MAX_BAD = 30',
    mutation: 'const MAX_BAD = 3_000',
    test: 'test/api/ipn/abuse.test.ts',
    claim:
      'bad signatures of one address are answered 429 with Retry-After beyond the limit, and a good one is still accepted',
    control:
      'a forged notification stores no row and causes no call, however often it is sent and in whatever form',
  },
]
