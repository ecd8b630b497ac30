import { type Guard, guards } from './guard.ts'

const STAYS_OPEN = {
  test: 'test/api/maintenance/delete-expired.test.ts',
  claim:
    'a row older than RETENTION_DAYS stays while it may decide a refund that has not ended: of its transaction, or with its request id',
  control: 'a row older than RETENTION_DAYS that was received again since stays',
}

export const CONFIGURATION: readonly Guard[] = [
  ...guards({ file: 'src/config/accounts.ts', test: 'test/unit/config/merchants-file.test.ts' }, [
    {
      text: '  if (file && accounts.some((account) => account.token)) {',
      mutation: '  if (file && accounts.length === 0) {',
      claim: 'a token for all accounts beside the token of one account is refused as ambiguous',
      control: 'several accounts are read with their secrets',
    },
    {
      text: 'tokenUrl !== undefined && !allowHttp && isPlainRemote(new URL(tokenUrl))',
      mutation: "tokenUrl === '' && !allowHttp && isPlainRemote(new URL(tokenUrl))",
      claim:
        'an account whose token is given by a plain address gives one line that names the account',
      control: 'several accounts are read with their secrets',
    },
  ]),
  ...guards({ file: 'src/config/config.ts', test: 'test/unit/config/config.test.ts' }, [
    {
      text: "    env.NODE_ENV === 'production' ||\n",
      mutation: '',
      claim:
        'demo mode is off when {"NODE_ENV":"production"} is set, and then a gateway is required',
      control: 'demo mode is on when nothing is set, with an account of its own',
    },
    {
      text: 'return !isProduction && isLoopback(settings.HOST)',
      mutation: "return !isProduction && settings.HOST !== ''",
      claim: 'demo mode is off when {"HOST":"0.0.0.0"} is set, and then a gateway is required',
      control: 'demo mode is on when nothing is set, with an account of its own',
    },
    {
      text: 'demo && isLoopback(settings.HOST))',
      mutation: 'demo)',
      claim:
        'what a setting becomes webhooks may go to this machine only in a demo that this machine alone can reach',
      control: 'demo mode is on when nothing is set, with an account of its own',
    },
    {
      text: '|API_KEY(_FILE)?|GATEWAY_.*)$/',
      mutation: '|GATEWAY_.*)$/',
      claim:
        'demo mode is off when {"API_KEY":"test-key-with-every-scope-0123456789"} is set, and then a gateway is required',
      control: 'demo mode is on when nothing is set, with an account of its own',
    },
    {
      text: 'refuseProblems(parsed.problems, [...',
      mutation: 'refuseProblems([], [...',
      claim: 'a wrong setting ROLE=both gives one line with the error and an example',
      control: 'demo mode is on when nothing is set, with an account of its own',
    },
    {
      text: 'settings[name] < settings[minimum])',
      mutation: 'settings[name] < settings[minimum] - 1e12)',
      claim: 'a wrong setting SYNC_MAX_GAP_MS=10 gives one line with the error and an example',
      control: 'demo mode is on when nothing is set, with an account of its own',
    },
    {
      text: 'METRICS_PORT === PORT && METRICS_HOST === HOST',
      mutation: 'METRICS_PORT === PORT && METRICS_HOST !== HOST',
      claim: 'metrics have another port than the public one, on the same address',
      control: 'an address for the metrics needs a port',
    },
    {
      text: 'NOT_FOUND_CODES.includes(success)',
      mutation: 'NOT_FOUND_CODES.includes(`${success},`)',
      claim:
        'a wrong setting GATEWAY_CARDS_NOT_FOUND_CODES=404,1 gives one line with the error and an example',
      control: 'demo mode is on when nothing is set, with an account of its own',
    },
  ]),
  {
    file: 'src/config/environment.ts',
    text: 'distance(name.toUpperCase(), nearest)',
    mutation: 'distance(name, nearest)',
    test: 'test/unit/config/unknown-names.test.ts',
    claim: 'a misspelt setting database_url is refused with the nearest setting',
    control: 'a misspelt setting DATABSE_URL is refused with the nearest setting',
  },
  {
    file: 'src/config/accounts.ts',
    text: 'const FILE_ACCOUNT = z.strictObject(ACCOUNT)',
    mutation: 'const FILE_ACCOUNT = z.object(ACCOUNT)',
    test: 'test/unit/config/merchants-file.test.ts',
    claim: 'a file with an unknown member gives one line that names the place, without the content',
    control: 'several accounts are read with their secrets',
  },
  ...guards({ file: 'src/config/environment.ts', test: 'test/unit/config/config.test.ts' }, [
    {
      text: "return SECRET_SETTINGS.some((one) => one === name) ? '' :",
      mutation: "return SECRET_SETTINGS.some((one) => one === name && value === '') ? '' :",
      claim: 'a wrong setting DATA_ENCRYPTION_KEY_PREVIOUS is named, its value never shown',
      control: 'demo mode is on when nothing is set, with an account of its own',
    },
    {
      text: "replace(/^.*@/s, '…@')",
      mutation: "replace(/^@/s, '…@')",
      claim:
        'a wrong setting GATEWAY_BASE_URL: the credentials in ftp://user:hunter2@gateway.example are not shown',
      control: 'demo mode is on when nothing is set, with an account of its own',
    },
    {
      text: ".replace(/[?#].*$/s, '?…')",
      mutation: '',
      claim:
        'a wrong setting GATEWAY_BASE_URL: the credentials in https://gateway.example/?token=hunter2 are not shown',
      control: 'demo mode is on when nothing is set, with an account of its own',
    },
  ]),
  ...guards({ file: 'src/config/environment.ts', test: 'test/unit/config/secret-files.test.ts' }, [
    {
      text: 'if (!stats.isFile()) throw',
      mutation: 'if (!stats.isFile() && stats.isFIFO()) throw',
      claim: 'a file that cannot be used gives one line that names it: it is a folder',
      control: 'a secret is the content of a file with one',
    },
    {
      text: "new TextDecoder('utf-8', { fatal: true })",
      mutation: "new TextDecoder('utf-8')",
      claim: 'a file that cannot be used gives one line that names it: it is no text',
      control: 'a secret is the content of a file with one',
    },
    {
      text: "if (value === '') throw",
      mutation: "if (value === '-') throw",
      claim: 'a file that cannot be used gives one line that names it: it is empty',
      control: 'a secret is the content of a file with one',
    },
    {
      text: 'if (stats.size > MAX_BYTES) throw',
      mutation: 'if (stats.size > MAX_BYTES * 2) throw',
      claim: 'a file that cannot be used gives one line that names it: it is too large',
      control: 'a secret is the content of a file with one',
    },
    {
      text: "text.replace(/\\r?\\n$/, '')",
      mutation: 'text.trim()',
      claim: 'a secret is the content of a file with spaces around it, which belong to it',
      control: 'a secret is the content of a file with one',
    },
  ]),
  {
    file: 'src/config/setting-types.ts',
    text: 'new Set(all.map(({ currency }) => currency)).size === all.length',
    mutation: 'all.length >= 0',
    test: 'test/unit/config/config.test.ts',
    claim:
      'a wrong setting REFUND_APPROVAL_ABOVE=VND:1,VND:2 gives one line with the error and an example',
    control: 'demo mode is on when nothing is set, with an account of its own',
  },
  {
    file: 'src/maintenance/delete-expired.ts',
    text: "(kind = 'refund' and verdict = 'verified' and handled_at is null)",
    mutation: "(kind = 'refund' and verdict = 'verified' and handled_at is not null)",
    test: 'test/api/maintenance/delete-expired.test.ts',
    claim:
      'a row older than RETENTION_DAYS stays if it is a verified notification of a refund whose payment is not known yet',
    control: 'a row older than RETENTION_DAYS that was received again since stays',
  },
  ...guards(
    {
      file: 'src/maintenance/delete-expired.ts',
      test: 'test/api/maintenance/delete-expired.test.ts',
    },
    [
      {
        text: 'if (ended.has(table)) continue',
        mutation: "if (ended.has('')) continue",
        claim:
          'the pass ends although its second table failed once, with rows that are kept in both',
        control: 'the pass in two processes at once deletes every row',
      },
      {
        text: 'if (seen === 0) ended.clear()',
        mutation: 'if (seen < 0) ended.clear()',
        claim: 'the pass waits for no lock: a locked row is skipped, and deleted later',
        control: 'the pass in two processes at once deletes every row',
      },
    ],
  ),
  ...guards({ file: 'src/maintenance/delete-expired.ts' }, [
    {
      text: "isOfOpenRefund('ipn_events', 'transaction_id')",
      mutation: "isOfOpenRefund('ipn_events', 'transaction_id', 'null')",
      ...STAYS_OPEN,
    },
    {
      text: "const REFUND_ID = `case when ipn_events.request_id ~* '",
      mutation: "const REFUND_ID = `case when ipn_events.request_id !~* '",
      ...STAYS_OPEN,
    },
  ]),
  {
    file: 'src/config/settings.ts',
    text: 'REFUND_RESEND_FOR_MS: wholeNumber(0, 2_592_000_000)',
    mutation: 'REFUND_RESEND_FOR_MS: wholeNumber()',
    test: 'test/unit/config/config.test.ts',
    claim:
      'a wrong setting REFUND_RESEND_FOR_MS=2592000001 gives one line with the error and an example',
    control: 'a wrong setting PORT=70000 gives one line with the error and an example',
  },
  {
    file: 'src/config/settings.ts',
    text: '/^(?!\\*$)[',
    mutation: '/^[',
    test: 'test/unit/config/merchants-file.test.ts',
    claim: 'a file with the code of all gives one line that names the place, without the content',
    control: 'a file empty gives one line that names the place, without the content',
  },
]
