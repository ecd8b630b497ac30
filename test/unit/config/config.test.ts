import { describe, expect, it } from 'vitest'
import { DEMO_ACCOUNT } from '../../../src/config/accounts.ts'
import { describeSandbox, readConfig } from '../../../src/config/config.ts'
import { listSettingNames, SECRET_SETTINGS, SETTINGS } from '../../../src/config/settings.ts'
import { PRODUCTION, readProblems } from './config.ts'

type Environment = Record<string, string | undefined>

const WRONG: [string, string, RegExp][] = [
  ['PORT', '70000', /whole number from 0 to 65535/],
  ['PORT', '-1', /whole number/],
  ['REFUND_RESEND_FOR_MS', '2592000001', /whole number from 0 to 2592000000/],
  ['ROLE', 'both', /one of all, web, worker/],
  ['DATABASE_URL', 'postgres://one:5432,two:x/ipn', /starts with postgres:/],
  [
    'DATABASE_URL',
    'postgres://one,two/ipn?target_session_attrs=any',
    /target_session_attrs=primary/,
  ],
  ['GATEWAY_BASE_URL', 'gateway.example', /starts with https:\/\//],
  ['GATEWAY_BASE_URL', 'ftp://gateway.example', /starts with https:\/\//],
  ['GATEWAY_BASE_URL', 'https://gateway.example/?shop=1', /no user, query or fragment/],
  ['GATEWAY_BASE_URL', 'http://gateway.example', /https:\/\/ because .* GATEWAY_ALLOW_HTTP=true/],
  ['GATEWAY_PAYGATE_PATH', 'api', /path that starts with \//],
  ['GATEWAY_FIELD_PREFIX', 'svc_', /only letters and digits/],
  ['GATEWAY_MERCHANT_CODE', 'SHOP 1', /code issued by the gateway/],
  ['GATEWAY_CLIENT_ID', 'shöp', /a client id/],
  ['GATEWAY_TOKEN_SCOPE', 'cards:read  more', /scopes separated by single spaces/],
  ['GATEWAY_CARDS_SUCCESS_CODE', '1,2', /whole number/],
  ['GATEWAY_CARDS_SUCCESS_CODE', '01', /whole number/],
  ['GATEWAY_CARDS_NOT_FOUND_CODES', '404;405', /comma-separated list of whole numbers/],
  ['GATEWAY_CARDS_NOT_FOUND_CODES', '404,1', /must not contain 1, which is GATEWAY_CARDS_SUCCESS/],
  ['DATABASE_SCHEMA', 'Cell1', /small letters, digits and _/],
  ['DATABASE_SCHEMA', 'pg_cell', /does not begin with a digit or pg_/],
  ['DATABASE_SCHEMA', 'a,public', /small letters, digits and _/],
  ['GATEWAY_ALLOW_HTTP', '1', /true or false/],
  ['IPN_HASH_EXCLUDE', 'svc_ExtData', /without the prefix, or none/],
  ['IPN_ACCEPT_GET', 'TRUE', /true or false/],
  ['IPN_ALLOW_CIDRS', '10.0.0.0/33', /comma-separated list of networks/],
  ['IPN_ALLOW_CIDRS', '2001:db8::/129', /comma-separated list of networks/],
  ['TRUSTED_PROXIES', '10.0.0.0/', /comma-separated list of networks/],
  ['CONSOLE_BASE_URL', 'http://console.example', /https:\/\/, or http:\/\/ for localhost/],
  ['CONSOLE_BASE_URL', 'https://console.example/pay', /has no path/],
  ['SYNC_BACKOFF_MAX_MS', '10', /at least SYNC_BACKOFF_MS/],
  ['SYNC_MAX_GAP_MS', '10', /at least SYNC_MIN_GAP_MS/],
  ['GATEWAY_REFUND_FINAL_CODES', '31,031', /comma-separated list of whole numbers/],
  ['GATEWAY_REFUND_FINAL_CODES', '31,0', /must not contain 0, 9, 19, 99/],
  ['GATEWAY_REFUND_FINAL_CODES', '19,31', /must not contain 0, 9, 19, 99/],
  ['GATEWAY_REFUND_FINAL_CODES', '9', /must not contain 0, 9, 19, 99/],
  ['GATEWAY_REFUND_FINAL_CODES', '99', /must not contain 0, 9, 19, 99/],
  ['IPN_REFUND_FINAL_CODES', '1,0', /must not contain 0, 9, 99/],
  ['IPN_REFUND_FINAL_CODES', '9', /must not contain 0, 9, 99/],
  ['IPN_REFUND_FINAL_CODES', '99,1', /must not contain 0, 9, 99/],
  ['REFUND_APPROVAL_ABOVE', '5000000', /amounts by currency.*VND:5000000,USD:200/],
  ['REFUND_APPROVAL_ABOVE', 'VND:1,VND:2', /each currency once/],
  ['REFUND_APPROVAL_ABOVE', 'vnd:1', /amounts by currency/],
  ['REFUND_APPROVAL_ABOVE', 'VND:1.00001', /amounts by currency/],
  ['CAPS_TIME_ZONE', 'Asia/Saigon2', /IANA time zone.*Asia\/Ho_Chi_Minh/],
  ['CAPS_TIME_ZONE', '+07:00', /IANA time zone/],
]

const WRONG_SECRETS: [string, string][] = [
  ['DATABASE_URL', 'mysql://root:hunter2@db/ipn'],
  ['DATABASE_URL', 'postgres:hunter2'],
  ['GATEWAY_ACCESS_TOKEN', 'Bearer hunter2'],
  ['GATEWAY_CLIENT_SECRET', 'hünter2'],
  ['API_KEY', 'hunter2'],
  ['API_KEY', `hunter2 ${'x'.repeat(32)}`],
  ['DATA_ENCRYPTION_KEY', 'hunter2'],
  ['DATA_ENCRYPTION_KEY', Buffer.alloc(31).toString('base64')],
  ['DATA_ENCRYPTION_KEY_PREVIOUS', 'hunter2'],
]

it('an address for the metrics needs a port', () => {
  const [line, ...others] = readProblems({ ...PRODUCTION, METRICS_HOST: '10.0.0.1' })
  expect(line).toMatch(/^METRICS_PORT is not set, but METRICS_HOST requires it; for example /)
  expect(others).toEqual([])
  const metrics = { METRICS_HOST: '10.0.0.1', METRICS_PORT: '9464' }
  expect(readProblems({ ...PRODUCTION, ...metrics })).toEqual([])
})

it('metrics have another port than the public one, on the same address', () => {
  const same = { ...PRODUCTION, PORT: '3000', METRICS_PORT: '3000' }
  for (const host of [{}, { HOST: '10.0.0.1', METRICS_HOST: '10.0.0.1' }]) {
    expect(readProblems({ ...same, ...host })).toEqual([
      expect.stringMatching(
        /^METRICS_PORT must differ from PORT on the same address; for example /,
      ),
    ])
  }
  expect(readProblems({ ...same, METRICS_HOST: '10.0.0.1' })).toEqual([])
  expect(readProblems({ ...same, PORT: '0', METRICS_PORT: '0' })).toEqual([])
})

it('a database may have several servers, each with its own port', () => {
  const url = 'postgres://ipn:password@one:5432,two:5433/ipn?target_session_attrs=primary'
  expect(readProblems({ ...PRODUCTION, DATABASE_URL: url })).toEqual([])
})

describe('a wrong setting', () => {
  it.each(WRONG)('%s=%s gives one line with the error and an example', (name, value, what) => {
    const lines = readProblems({ ...PRODUCTION, [name]: value })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(new RegExp(`^${name} .*; for example ${name}=`))
    expect(lines[0]).toMatch(what)
  })

  it.each(WRONG_SECRETS)('%s is named, its value never shown', (name, value) => {
    const lines = readProblems({ ...PRODUCTION, [name]: value })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(new RegExp(`^${name} must .*; for example ${name}=`))
    expect(lines[0]).not.toContain(value.trim() || 'got')
    expect(lines[0]).not.toContain('hunter2')
  })

  it.each(listSettingNames())(
    '%s: what it must be is said with a value that it accepts',
    (name) => {
      // No type accepts a line feed alone.
      const [line = '', ...others] = readProblems({ ...PRODUCTION, [name]: '\n' })
      expect(others).toEqual([])
      const [, example = ''] =
        new RegExp(`^${name} must .*; for example ${name}=(.+)$`).exec(line) ?? []
      // In place of a secret stands how to come by one.
      if (example.startsWith('<')) return expect(SECRET_SETTINGS).toContain(name)
      expect(example).not.toBe('')
      expect(SETTINGS[name].safeParse(example).success).toBe(true)
    },
  )

  it.each([
    ['GATEWAY_BASE_URL', 'https://user:hunter2@gateway.example'],
    ['GATEWAY_BASE_URL', 'ftp://user:hunter2@gateway.example'],
    ['GATEWAY_BASE_URL', 'user:hunter2@gateway.example'],
    ['GATEWAY_BASE_URL', 'https://gateway.example/?token=hunter2'],
    ['SANDBOX_IPN_URL', 'http://user:hun/ter2@gateway.example'],
  ])('%s: the credentials in %s are not shown', (name, value) => {
    const lines = readProblems({ ...PRODUCTION, [name]: value })
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toMatch(/hunter2|hun\/ter2/)
  })

  it('stays one short line whatever the value holds', () => {
    const lines = readProblems({ PORT: `1\nPORT=2\u001b[31m $& $' ${'x'.repeat(10_000)}` })
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toMatch(/\p{Cc}/u)
    expect(lines[0]).toContain("$& $'")
    expect(lines[0]?.length).toBeLessThan(300)
  })

  it('hides neither other invalid settings nor missing ones', () => {
    const lines = readProblems({ PORT: 'x', ROLE: 'y', GATEWAY_BASE_URL: 'z', API_KEY: 'short' })
    expect(lines.map((line) => line.split(' ')[0])).toEqual([
      ...['PORT', 'ROLE', 'GATEWAY_BASE_URL', 'API_KEY', 'DATA_ENCRYPTION_KEY'],
      ...['GATEWAY_REFUND_DEDUPES', 'GATEWAY_MERCHANT_CODE', 'GATEWAY_SECRET'],
    ])
  })
})

describe('what a setting becomes', () => {
  it('an empty value counts as unset', () => {
    const empty = Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, '']))
    const { accounts, ...config } = readConfig(empty)
    expect({ ...config, accounts }).toEqual(readConfig({}))
    expect(readConfig({ ...PRODUCTION, PORT: '', IPN_HASH_EXCLUDE: '' })).toMatchObject({
      PORT: 3000,
      IPN_HASH_EXCLUDE: ['TransAmount', 'ExtData'],
    })
  })

  it('whether the gateway refuses repeated request ids has to be stated, except in demo mode', () => {
    const { GATEWAY_REFUND_DEDUPES: _, ...unstated } = PRODUCTION
    const [line, ...others] = readProblems(unstated)
    expect(line).toMatch(
      /^GATEWAY_REFUND_DEDUPES is not set, .* for example GATEWAY_REFUND_DEDUPES=/,
    )
    expect(others).toEqual([])
    const read = (value: string) =>
      readConfig({ ...PRODUCTION, GATEWAY_REFUND_DEDUPES: value }).GATEWAY_REFUND_DEDUPES
    expect([read('true'), read('false')]).toEqual([true, false])
    expect(readConfig({}).GATEWAY_REFUND_DEDUPES).toBe(true)
  })

  it.each([
    ['GATEWAY_REFUND_FINAL_CODES', '31,32,33,34,37', '1,-2'],
    ['IPN_REFUND_FINAL_CODES', '-1,1,18,30,31,32,33,34,37', '19,-2'],
  ] as const)('%s is a list of codes, by default %s', (name, usual, other) => {
    const read = (codes?: string) => readConfig({ ...PRODUCTION, [name]: codes })[name].join()
    expect([read(), read(other), read('none')]).toEqual([usual, other, ''])
  })

  it('the thresholds of approval are amounts by currency, by default none', () => {
    const read = (more: Environment) => readConfig({ ...PRODUCTION, ...more }).REFUND_APPROVAL_ABOVE
    expect(read({})).toEqual([])
    expect(read({ REFUND_APPROVAL_ABOVE: 'VND:5000000,USD:0.5' })).toEqual([
      { currency: 'VND', amount: '5000000' },
      { currency: 'USD', amount: '0.5' },
    ])
  })

  it('webhooks may go to this machine only in a demo that this machine alone can reach', () => {
    const read = (env: Environment) => readConfig(env).webhookReach
    expect(read({})).toBe('loopback')
    expect(read({ DEMO: 'true', HOST: '0.0.0.0' })).toBe('public')
    expect(read({ WEBHOOK_ALLOW_PRIVATE: 'false' })).toBe('public')
    expect(read({ WEBHOOK_ALLOW_PRIVATE: 'true' })).toBe('private')
    expect(read(PRODUCTION)).toBe('public')
    expect(read({ ...PRODUCTION, WEBHOOK_ALLOW_PRIVATE: 'true' })).toBe('private')
  })

  it('none makes a list of exclusions empty', () => {
    const none = { IPN_HASH_EXCLUDE: 'none', GATEWAY_REFUND_HASH_EXCLUDE: 'none' }
    expect(readConfig({ ...PRODUCTION, ...none })).toMatchObject({
      IPN_HASH_EXCLUDE: [],
      GATEWAY_REFUND_HASH_EXCLUDE: [],
    })
    expect(describeSandbox(readConfig({ ...none, DEMO: 'true' }))).toMatchObject({
      ipnHashExclude: [],
      refundHashExclude: [],
    })
  })

  it('networks of both families are parsed, and a bare address is a network of its own', () => {
    const networks = '203.0.113.0/24, 2001:db8::/32,198.51.100.7'
    expect(readConfig({ ...PRODUCTION, IPN_ALLOW_CIDRS: networks }).IPN_ALLOW_CIDRS).toEqual([
      { address: '203.0.113.0', prefix: 24, family: 'ipv4' },
      { address: '2001:db8::', prefix: 32, family: 'ipv6' },
      { address: '198.51.100.7', prefix: 32, family: 'ipv4' },
    ])
  })

  it.each(['http://127.0.0.1:4010', 'http://localhost:4010', 'http://[::1]:4010', 'http://127.1'])(
    'plain %s needs no permission',
    (base) => {
      expect(readProblems({ ...PRODUCTION, GATEWAY_BASE_URL: base })).toEqual([])
    },
  )

  it.each(['http://127.0.0.1.evil.example', 'http://localhost.evil.example', 'http://10.0.0.1'])(
    'plain %s needs GATEWAY_ALLOW_HTTP',
    (base) => {
      const env = { ...PRODUCTION, GATEWAY_BASE_URL: base }
      expect(readProblems(env)).toHaveLength(1)
      expect(readProblems({ ...env, GATEWAY_ALLOW_HTTP: 'true' })).toEqual([])
    },
  )
})

describe('the access token for cards', () => {
  const TOKEN_URL = 'https://login.example/token'
  const CLIENT = { GATEWAY_CLIENT_ID: 'shop', GATEWAY_CLIENT_SECRET: 'hunter2' }

  it('is set directly or fetched, by default below the gateway', () => {
    const read = (more: Environment) => readConfig({ ...PRODUCTION, ...more }).accounts[0].token
    expect(read({})).toBeUndefined()
    expect(read({ GATEWAY_ACCESS_TOKEN: 'T1' })).toEqual({ kind: 'static', accessToken: 'T1' })
    const client = { kind: 'client', clientId: 'shop', clientSecret: 'hunter2' }
    expect(read(CLIENT)).toEqual({ ...client, url: '/v2/auth/oauth2/token' })
    expect(
      read({ ...CLIENT, GATEWAY_TOKEN_URL: TOKEN_URL, GATEWAY_TOKEN_SCOPE: 'cards:read' }),
    ).toEqual({ ...client, url: TOKEN_URL, scope: 'cards:read' })
  })

  it.each([
    [
      'GATEWAY_ACCESS_TOKEN',
      /^\S+ cannot be combined with GATEWAY_CLIENT_ID; use one or the other/,
      {},
    ],
    ['GATEWAY_CLIENT_SECRET', /^\S+ is not set, but GATEWAY_CLIENT_ID requires it/, undefined],
    ['GATEWAY_CLIENT_ID', /^\S+ is not set, but GATEWAY_CLIENT_SECRET requires it/, undefined],
    ['GATEWAY_TOKEN_URL', /^\S+ must start with https:\/\/ .*GATEWAY_ALLOW_HTTP=true/, {}],
  ])('%s that conflicts with the others gives one line', (name, what, value) => {
    const wrong = name === 'GATEWAY_TOKEN_URL' ? 'http://login.example/token' : 'T1'
    const lines = readProblems({ ...PRODUCTION, ...CLIENT, [name]: value && wrong })
    expect(lines).toEqual([expect.stringMatching(what)])
    expect(lines[0]).toMatch(new RegExp(`for example ${name}=`))
    expect(lines[0]).not.toContain('hunter2')
  })

  it('needs a client: a URL or a scope alone is not enough', () => {
    for (const alone of [{ GATEWAY_TOKEN_URL: TOKEN_URL }, { GATEWAY_TOKEN_SCOPE: 'cards' }]) {
      const lines = readProblems({ ...PRODUCTION, ...alone })
      expect(lines).toEqual([expect.stringMatching(/^GATEWAY_CLIENT_ID is not set/)])
    }
  })

  it('may be fetched over plain http on loopback, or where that is allowed', () => {
    const env = { ...PRODUCTION, ...CLIENT }
    expect(readProblems({ ...env, GATEWAY_TOKEN_URL: 'http://127.0.0.1:1/token' })).toEqual([])
    const remote = { ...env, GATEWAY_TOKEN_URL: 'http://login.example/token' }
    expect(readProblems({ ...remote, GATEWAY_ALLOW_HTTP: 'true' })).toEqual([])
  })
})

describe('demo mode', () => {
  const isDemo = (env: Environment) => readConfig(env).demo

  it('is on when nothing is set, with an account of its own', () => {
    expect(readConfig({})).toMatchObject({ demo: true, accounts: [DEMO_ACCOUNT] })
    expect(isDemo({ HOST: '::1', PORT: '8080', LOG_LEVEL: 'info' })).toBe(true)
  })

  it.each([
    { DATABASE_URL: 'postgres://db/ipn' },
    { API_KEY: 'test-key-with-every-scope-0123456789' },
    { GATEWAY_TIMEOUT_MS: '5000' },
    { GATEWAY_ANYTHING: 'x' },
    { HOST: '0.0.0.0' },
    { MERCHANTS_FILE: '/nowhere' },
    { NODE_ENV: 'production' },
  ])('is off when %j is set, and then a gateway is required', (env) => {
    expect(readProblems(env).join('\n')).toMatch(/^GATEWAY_BASE_URL is not set/m)
  })

  it('is off when a secret is read from a file', () => {
    const lines = readProblems({ DATABASE_URL_FILE: '/nowhere' }).join('\n')
    expect(lines).toMatch(/^DATABASE_URL_FILE must name a file .*ENOENT/)
    expect(lines).toMatch(/^GATEWAY_BASE_URL is not set/m)
  })

  it('is off in production without any setting, which lists all that is missing', () => {
    const names = readProblems({ NODE_ENV: 'production' }).map((line) => line.split(' ')[0])
    expect(names.toSorted()).toEqual(Object.keys(PRODUCTION).toSorted())
    expect(isDemo({ NODE_ENV: 'production', DEMO: 'true' })).toBe(true)
    expect(isDemo({ NODE_ENV: 'development' })).toBe(true)
  })

  it('can be switched on and off by name', () => {
    expect(isDemo({ DEMO: 'true', HOST: '0.0.0.0', DATABASE_URL: 'postgres://db/ipn' })).toBe(true)
    expect(readProblems({ DEMO: 'false' }).join('\n')).toMatch(/GATEWAY_BASE_URL is not set/)
  })
})

describe('production', () => {
  it('starts with a gateway, an account and an encryption key', () => {
    expect(readConfig({ ...PRODUCTION, GATEWAY_SECRET_PREVIOUS: 'old' })).toMatchObject({
      demo: false,
      accounts: [{ merchantCode: 'SHOP1', secret: 'signing-secret', previousSecret: 'old' }],
    })
  })

  it.each(Object.keys(PRODUCTION))('does not start without %s', (name) => {
    const lines = readProblems({ ...PRODUCTION, [name]: undefined })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(new RegExp(`^${name} is not set.*; for example ${name}=`))
    expect(lines[0]).not.toContain(PRODUCTION.GATEWAY_SECRET)
  })
})
