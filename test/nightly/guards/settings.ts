import { type Guard, guards } from './guard.ts'

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
  ...guards({ file: 'src/config/environment.ts', test: 'test/unit/config/unknown-names.test.ts' }, [
    {
      text: 'distance(name.toUpperCase(), nearest) <= 2',
      mutation: 'distance(name.toUpperCase(), nearest) <= 0',
      claim: 'a misspelt setting DATABSE_URL is refused with the nearest setting',
      control: 'a misspelt setting ROOL is refused with the nearest setting',
    },
    {
      text: 'SERVICE_LINK.test(value)',
      mutation: 'SERVICE_LINK.test(name)',
      claim:
        'the environment of a platform may hold the links of services with a name like that of a setting',
      control: 'the environment of a platform docker is never refused',
    },
  ]),
  ...guards({ file: 'src/config/accounts.ts', test: 'test/unit/config/merchants-file.test.ts' }, [
    {
      text: 'codes.indexOf(code) !== index)',
      mutation: 'codes.indexOf(code) > index)',
      claim:
        'a file with one account twice gives one line that names the place, without the content',
      control:
        'an account whose token is given by a plain address gives one line that names the account',
    },
    {
      text: "  if (error instanceof SyntaxError) return 'is not valid JSON'\n",
      mutation: '  void JSON\n  if (error instanceof SyntaxError) return error.message\n',
      claim: 'a file not JSON gives one line that names the place, without the content',
      control: 'an account has its own access token for cards, given or fetched, or none',
    },
  ]),
  {
    file: 'src/config/accounts.ts',
    text: "(['secret', 'previousSecret'] as const)",
    mutation: "(['secret'] as const)",
    test: 'test/unit/config/secret-strength.test.ts',
    claim: 'a short signing secret is named by its account, current or previous, and never shown',
    control: 'a short signing secret is none of 16 characters',
  },
  {
    file: 'src/start/start.ts',
    text: '      if (stopped) stopped = stopped.then(stopAll)\n',
    mutation: '',
    test: 'test/unit/start/stop.test.ts',
    claim: 'a part that is started after the stop began, or after it ended, is stopped as well',
    control: 'a process that was never ready does not drain',
  },
  {
    file: 'src/cli/explain.ts',
    text: "'^53300$':",
    mutation: "'^53309$':",
    test: 'test/process/postgres/connection-start.test.ts',
    claim: 'a start with a role whose connections are taken says so in one line, and ends',
    control: 'a start at a proxy without a database behind it connects once, says why, and ends',
  },
  {
    file: 'src/cli/explain.ts',
    text: "'^42501$':",
    mutation: "'^42509$':",
    test: 'test/process/postgres/connection-start.test.ts',
    claim: 'a start with a role that may not read the schema says so in one line, and ends',
    control: 'a start at a proxy without a database behind it connects once, says why, and ends',
  },
  {
    file: 'src/start/start.ts',
    text: "log.info('stopped')",
    mutation: "log.debug('stopped')",
    test: 'test/process/start/signals.test.ts',
    claim: 'SIGTERM while an embedded database is migrated stops both, without an error and with 0',
    control: 'SIGTERM while a process reads its settings ends it with 0',
  },
  {
    file: 'src/start/start.ts',
    text: '    for (let part = running.pop(); part; part = running.pop()) await part.stop()',
    mutation:
      '    for (let part = running.shift(); part; part = running.shift()) await part.stop()',
    test: 'test/unit/start/stop.test.ts',
    claim: 'the part that was started last is stopped first',
    control: 'a process that was never ready does not drain',
  },
]
