import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { PRODUCTION, readProblems } from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'ipn-merchants-'))
afterAll(() => rmSync(folder, { recursive: true }))

const FILE = join(folder, 'merchants.json')
const TWO = [
  { merchantCode: 'SHOP1', secret: 'hunter2', previousSecret: 'hunter1' },
  { merchantCode: 'SHOP2', secret: 'hunter3' },
]

const { GATEWAY_MERCHANT_CODE: _code, GATEWAY_SECRET: _secret, ...WITHOUT_ACCOUNT } = PRODUCTION

function write(content: unknown, more: Record<string, string> = {}) {
  writeFileSync(FILE, typeof content === 'string' ? content : JSON.stringify(content))
  return { ...WITHOUT_ACCOUNT, MERCHANTS_FILE: FILE, ...more }
}

const read = (content: unknown, more?: Record<string, string>) => readConfig(write(content, more))
const readLines = (content: unknown, more?: Record<string, string>) =>
  readProblems(write(content, more))

it('several accounts are read with their secrets', () => {
  expect(read(TWO).accounts).toEqual(TWO)
})

const CLIENT = { clientId: 'shop', clientSecret: 'hunter4' }

it('an account has its own access token for cards, given or fetched, or none', () => {
  const tokens = (content: unknown) => read(content).accounts.map(({ token }) => token)
  const tokenUrl = 'https://login.example/token'
  expect(
    tokens([
      { ...TWO[0], accessToken: 'T1' },
      { ...TWO[1], ...CLIENT, tokenUrl, tokenScope: 'cards' },
      { ...TWO[1], merchantCode: 'SHOP3' },
    ]),
  ).toEqual([
    { kind: 'static', accessToken: 'T1' },
    { kind: 'client', url: tokenUrl, ...CLIENT, scope: 'cards' },
    undefined,
  ])
})

it('a token in the settings is shared by several accounts, and belongs to a single one', () => {
  const token = { kind: 'static', accessToken: 'T1' }
  const shared = read(TWO, { GATEWAY_ACCESS_TOKEN: 'T1' })
  expect(shared).toMatchObject({ accounts: TWO, sharedToken: token })
  const single = read(TWO.slice(1), { GATEWAY_ACCESS_TOKEN: 'T1' })
  expect(single.accounts).toEqual([{ ...TWO[1], token }])
  expect(single.sharedToken).toBeUndefined()
})

it('a token for all accounts beside the token of one account is refused as ambiguous', () => {
  const lines = readLines([{ ...TWO[0], accessToken: 'hunter5' }, TWO[1]], {
    GATEWAY_ACCESS_TOKEN: 'hunter6',
  })
  expect(lines).toEqual([expect.stringMatching(/^MERCHANTS_FILE has tokens of its own/)])
  expect(lines.join()).not.toMatch(/hunter/)
})

it.each([
  [
    'both ways',
    { ...CLIENT, accessToken: 'hunter5' },
    /accessToken cannot be combined with clientId/,
  ],
  ['half a client', { clientId: 'shop' }, /clientSecret is not set, but clientId requires it/],
  [
    'a plain address',
    { ...CLIENT, tokenUrl: 'http://login.example/hunter' },
    /tokenUrl must start with https/,
  ],
])(
  'an account whose token is given by %s gives one line that names the account',
  (_what, words, why) => {
    const lines = readLines([TWO[1], { ...TWO[0], ...words }])
    expect(lines).toEqual([expect.stringMatching(/^MERCHANTS_FILE .* is invalid at SHOP1: /)])
    expect(lines[0]).toMatch(why)
    expect(lines[0]).not.toMatch(/hunter/)
  },
)

it.each([
  ['not JSON', '[{"merchantCode":"SHOP1","secret":"hunter2"', /is not valid JSON/],
  ['that is a secret alone', 'hunter2', /is not valid JSON/],
  ['empty', '', /is not valid JSON/],
  ['no list', TWO[0], /invalid at the top level/],
  ['without accounts', [], /invalid at the top level: contains no accounts/],
  ['with a secret missing', [{ merchantCode: 'SHOP1', hunter2: '' }], /invalid at 0\.secret/],
  [
    'with an empty secret',
    [TWO[1], { ...TWO[0], secret: '' }],
    /invalid at 1\.secret: must not be/,
  ],
  ['with a code of no form', [{ ...TWO[0], merchantCode: 'hunter2 ' }], /at 0\.merchantCode: must/],
  ['with the code of all', [{ ...TWO[0], merchantCode: '*' }], /at 0\.merchantCode: must/],
  ['with a secret that is a number', [{ ...TWO[0], secret: 2 }], /invalid at 0\.secret/],
  ['with an unknown member', [{ ...TWO[0], hunterToken: '' }], /at 0: it has an unknown member/],
  [
    'with a token unfit for a header',
    [{ ...TWO[0], accessToken: 'hunter 5' }],
    /0\.accessToken: must/,
  ],
  ['with one account twice', [TWO[0], TWO[1], TWO[0]], /lists the account SHOP1 twice/],
])('a file %s gives one line that names the place, without the content', (_what, content, why) => {
  const lines = readLines(content)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(
    /^MERCHANTS_FILE .*; for example MERCHANTS_FILE=.* with \[\{"merchantCode"/,
  )
  expect(lines[0]).toMatch(why)
  expect(lines[0]).not.toMatch(/hunter/)
})

it('a file that is not there is named', () => {
  const file = join(folder, 'nothing.json')
  expect(readLines(TWO, { MERCHANTS_FILE: file })).toEqual([
    expect.stringMatching(/^MERCHANTS_FILE .*nothing\.json cannot be read; for example /),
  ])
})

it.each(['GATEWAY_MERCHANT_CODE', 'GATEWAY_SECRET', 'GATEWAY_SECRET_PREVIOUS'])(
  'the file together with %s is refused: one of them would be ignored',
  (name) => {
    const lines = readLines(TWO, { [name]: 'hunter4' })
    expect(lines).toEqual([expect.stringMatching(/^MERCHANTS_FILE cannot be combined with /)])
    expect(lines.join()).not.toMatch(/hunter/)
  },
)
