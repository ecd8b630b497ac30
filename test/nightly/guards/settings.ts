import type { Guard } from './guard.ts'

export const SETTINGS: readonly Guard[] = [
  {
    file: 'src/config/accounts.ts',
    text: '  if (file && (code || secret || settings.GATEWAY_SECRET_PREVIOUS)) {',
    mutation: '  if (file && code && secret && settings.GATEWAY_SECRET_PREVIOUS) {',
    test: 'test/unit/config/merchants-file.test.ts',
    claim: 'the file together with GATEWAY_SECRET is refused: one of them would be ignored',
    control:
      'a file that is a secret alone gives one line that names the place, without the content',
  },
  {
    file: 'src/config/sources.ts',
    text: 'const MAX_EDITS = 2',
    mutation: 'const MAX_EDITS = 0',
    test: 'test/unit/config/unknown-names.test.ts',
    claim: 'a misspelt setting METRICS_PROT is refused with the setting that was meant',
    control: 'a misspelt setting ROOL is refused with the setting that was meant',
  },
  {
    file: 'src/config/sources.ts',
    text: "SERVICE_LINK.test(env[name] ?? '')",
    mutation: "SERVICE_LINK.test('')",
    test: 'test/unit/config/unknown-names.test.ts',
    claim:
      'the environment of a platform may hold the links of services with a name like that of a setting',
    control: 'the environment of a platform docker is never refused',
  },
  {
    file: 'src/config/accounts.ts',
    text: 'codes.indexOf(code) !== index)',
    mutation: 'codes.indexOf(code) > index)',
    test: 'test/unit/config/merchants-file.test.ts',
    claim: 'a file with one account twice gives one line that names the place, without the content',
    control:
      'an account whose token is given by a plain address gives one line that names the account',
  },
  {
    file: 'src/config/accounts.ts',
    text: "  if (error instanceof SyntaxError) return 'is not valid JSON'\n",
    mutation: '  void JSON\n  if (error instanceof SyntaxError) return error.message\n',
    test: 'test/unit/config/merchants-file.test.ts',
    claim: 'a file not JSON gives one line that names the place, without the content',
    control: 'an account has its own access token for cards, given or fetched, or none',
  },
  {
    file: 'src/config/conflicts.ts',
    text: '      return bits < STRONG_BITS ? [',
    mutation: "      return bits < STRONG_BITS && which === 'secret' ? [",
    test: 'test/unit/config/secret-strength.test.ts',
    claim: 'weak signing secrets are named by their account, current and previous, and never shown',
    control:
      'abababababababababababababababababababababababababababababababab is taken for at most 8 bits',
  },
  {
    file: 'src/config/conflicts.ts',
    text: 'countUnforeseen(text.slice(0, findPeriod(text)))',
    mutation: 'countUnforeseen(text.slice(0, Math.max(findPeriod(text), text.length)))',
    test: 'test/unit/config/secret-strength.test.ts',
    claim:
      'abababababababababababababababababababababababababababababababab is taken for at most 8 bits',
    control: '12345678901234567890123456789012 is taken for at most 60 bits',
  },
  {
    file: 'src/start/stop.ts',
    text: '      if (stopped) stopped = stopped.then(stopAll)\n',
    mutation: '',
    test: 'test/unit/start/stop.test.ts',
    claim: 'a part that is started after the stop began, or after it ended, is stopped as well',
    control: 'a process that was never ready does not drain',
  },
  {
    file: 'src/start/stop.ts',
    text: '    for (let part = running.pop(); part; part = running.pop()) await part.stop()',
    mutation:
      '    for (let part = running.shift(); part; part = running.shift()) await part.stop()',
    test: 'test/unit/start/stop.test.ts',
    claim: 'the part that was started last is stopped first',
    control: 'a process that was never ready does not drain',
  },
]
