import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { expectProblem, OTHER, writeMerchantsFile } from '../../support/api.ts'
import {
  CARDS,
  makeItem,
  serveCards,
  startCards,
  writeDetail,
  writeList,
} from '../../support/cards.ts'
import { type BorrowedDatabase, borrowDatabase } from '../../support/database.ts'
import { addKey, KEY, MERCHANT } from '../../support/service.ts'

const MINE = 'key-bound-to-the-first-account-0123456789'
const THEIRS = 'key-bound-to-the-other-account-0123456789'
const NAME_MINE = `merchantCode=${MERCHANT.merchantCode}`
const NAME_THEIRS = `merchantCode=${OTHER.merchantCode}`

let database: BorrowedDatabase
beforeAll(async () => {
  database = await borrowDatabase()
  await addKey(database, MINE, ['cards:read'], MERCHANT.merchantCode)
  await addKey(database, THEIRS, ['cards:read'], OTHER.merchantCode)
})
afterAll(() => database.release())

/** A gateway that shows cards of both accounts, and of one that is not ours, whatever the token. */
async function startWith(accounts: readonly object[], settings: Record<string, string> = {}) {
  const file = writeMerchantsFile(accounts)
  onTestFinished(file.remove)
  const codes = [MERCHANT.merchantCode, OTHER.merchantCode, 'STRANGER', null]
  const gateway = await serveCards((response, { path }) => {
    const nth = Number(/VC-(\d)/.exec(path)?.[1])
    const docs = codes.map((merchantCode) => makeItem({ merchantCode }))
    response.end(nth >= 0 ? writeDetail({ merchantCode: codes[nth] }) : writeList(docs))
  })
  const started = await startCards(database, gateway.url, {
    MERCHANTS_FILE: file.path,
    ...settings,
  })
  const listOwners = async (path: string, key?: string) => {
    const response = await started.get(path, key)
    const { data } = JSON.parse(await response.text())
    return data.docs.map(({ merchantCode }: { merchantCode: unknown }) => merchantCode)
  }
  return { ...gateway, ...started, listOwners }
}

const OWN = [
  { ...MERCHANT, accessToken: 'TOKEN-MINE' },
  { ...OTHER, accessToken: 'TOKEN-THEIRS' },
]

describe('accounts with tokens of their own', () => {
  it.each([
    ['the first', MINE, 0, 1, 'TOKEN-MINE'],
    ['the other', THEIRS, 1, 0, 'TOKEN-THEIRS'],
  ])(
    'are read by a key bound to %s with its token, and nothing else is',
    async (_, key, own, other, token) => {
      const { get, reads, listOwners } = await startWith(OWN)
      expect((await get(`/VC-${own}`, key)).status).toBe(200)
      const problem = await expectProblem(await get(`/VC-${other}`, key), 404, 'card_not_found')
      expect(problem.detail).toBe('No such virtual card')
      await expectProblem(await get('/VC-2', key), 404, 'card_not_found')
      expect((await get('/VC-3', key)).status).toBe(200)
      const code = [MERCHANT, OTHER][own]?.merchantCode
      expect(await listOwners('', key)).toEqual([code, null])
      const sent = reads.map(({ headers }) => headers.authorization)
      expect(new Set(sent)).toEqual(new Set([`Bearer ${token}`]))
    },
  )

  it('have lists that leave out the cards of others and keep the rest as it came', async () => {
    const { get, logged } = await startWith(OWN)
    const own = [MERCHANT.merchantCode, null].map((merchantCode) => makeItem({ merchantCode }))
    const body = await (await get('', MINE)).text()
    expect(body).toBe(writeList(own).replace('"totalDocs":2', '"totalDocs":4'))
    expect(logged()).toContain('left out')
  })

  it('cannot be named by a key of another', async () => {
    const { get, reads } = await startWith(OWN)
    for (const path of [`/VC-1?${NAME_THEIRS}`, `?${NAME_THEIRS}`, '?merchantCode=NOBODY']) {
      await expectProblem(await get(path, MINE), 404, 'merchant_not_found')
    }
    expect(reads).toEqual([])
  })

  it('have to be named by a key of all, and the name is not passed on', async () => {
    const { get, reads, listOwners } = await startWith(OWN)
    for (const path of ['/VC-1', '']) {
      const problem = await expectProblem(await get(path, KEY), 409, 'ambiguous_merchant')
      expect(problem.detail).toContain('merchantCode')
    }
    await expectProblem(await get('?merchantCode=NOBODY'), 404, 'merchant_not_found')
    expect((await get(`/VC-1?${NAME_THEIRS}`)).status).toBe(200)
    await expectProblem(await get(`/VC-1?${NAME_MINE}`), 404, 'card_not_found')
    expect(await listOwners(`?status=A&${NAME_MINE}`)).toEqual([MERCHANT.merchantCode, null])
    expect(reads.map(({ path }) => path.slice(CARDS.length))).toEqual([
      '/VC-1',
      '/VC-1',
      '?status=A',
    ])
  })

  it('do not share what is kept', async () => {
    const { get, reads } = await startWith(OWN, { CARDS_CACHE_MS: '600000' })
    for (const _ of [1, 2]) {
      expect((await get('/VC-0', MINE)).status).toBe(200)
      await expectProblem(await get('/VC-0', THEIRS), 404, 'card_not_found')
    }
    expect(reads).toHaveLength(3)
  })

  it('one without a token gets an error that names the missing settings', async () => {
    const { get, reads } = await startWith([OWN[0] ?? {}, OTHER])
    const problem = await expectProblem(await get('/VC-1', THEIRS), 503, 'cards_not_configured')
    expect(problem.detail).toMatch(/OTHER1.*GATEWAY_ACCESS_TOKEN.*MERCHANTS_FILE/)
    expect((await get('/VC-0', MINE)).status).toBe(200)
    expect(reads).toHaveLength(1)
  })
})

describe('one token shared by several accounts', () => {
  const SHARED = { GATEWAY_ACCESS_TOKEN: 'TOKEN-ALL' }

  it('serves no key bound to one of them, whatever it names', async () => {
    const { get, reads } = await startWith([MERCHANT, OTHER], SHARED)
    for (const path of ['/VC-0', '', `?${NAME_MINE}`, `/VC-0?${NAME_MINE}`]) {
      await expectProblem(await get(path, MINE), 403, 'cards_token_shared')
    }
    expect(reads).toEqual([])
  })

  it('shows a key for all accounts the cards of our accounts only', async () => {
    const { get, listOwners, reads } = await startWith([MERCHANT, OTHER], SHARED)
    expect([(await get('/VC-0')).status, (await get('/VC-1')).status]).toEqual([200, 200])
    await expectProblem(await get('/VC-2'), 404, 'card_not_found')
    await expectProblem(await get('/VC-3'), 404, 'card_not_found')
    expect(await listOwners('')).toEqual([MERCHANT.merchantCode, OTHER.merchantCode])
    expect(reads[0]?.headers.authorization).toBe('Bearer TOKEN-ALL')
  })

  it('shows the cards of the account that is named, alone', async () => {
    const { get, listOwners } = await startWith([MERCHANT, OTHER], SHARED)
    expect((await get(`/VC-1?${NAME_THEIRS}`)).status).toBe(200)
    await expectProblem(await get(`/VC-0?${NAME_THEIRS}`), 404, 'card_not_found')
    expect(await listOwners(`?${NAME_THEIRS}`)).toEqual([OTHER.merchantCode])
  })

  it('is the own token of an account that is alone, whose cards may name any account', async () => {
    const { get, listOwners } = await startWith([MERCHANT], SHARED)
    expect(await listOwners('', MINE)).toHaveLength(4)
    expect((await get('/VC-0', MINE)).status).toBe(200)
    expect((await get('/VC-0', KEY)).status).toBe(200)
  })
})

it('an account without any token has no cards, and the error names the settings', async () => {
  const gateway = await serveCards((response) => response.end(writeDetail()))
  const { get } = await startCards(database, gateway.url, {})
  const problem = await expectProblem(await get('/VC-0', MINE), 503, 'cards_not_configured')
  expect(problem.detail).toContain('GATEWAY_CLIENT_ID')
  expect(gateway.reads).toEqual([])
})
