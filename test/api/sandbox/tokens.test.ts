import { describe, expect, it } from 'vitest'
import { SHOP, useSandbox } from '../../support/sandbox.ts'

const OTHER = { merchantCode: 'SECOND', secret: 'A3EFDFABA8653DF2342E8DAC29B51AF0' }
const client = (clientId: string, scope?: string) => ({
  kind: 'client' as const,
  url: 'http://gateway.example/token',
  clientId,
  clientSecret: 'client-secret-1',
  scope,
})

describe('a token', () => {
  it('is issued to the default client of an account and gives access to its cards', async () => {
    const { askToken, readCards, fetchToken } = await useSandbox()
    const answer = await askToken()
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await answer.json()).toEqual({
      code: 1,
      message: 'Successful',
      access_token: expect.stringMatching(/^[\w-]{32}$/),
      token_type: 'Bearer',
      expires_in: 3600,
    })
    expect((await readCards('', { token: await fetchToken() })).status).toBe(200)
  })

  it('can be requested by a form as well as by JSON', async () => {
    const { url } = await useSandbox()
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: 'UFLIYL',
      client_secret: 'sandbox-UFLIYL',
    })
    const answer = await fetch(`${url}/v2/auth/oauth2/token`, { method: 'POST', body })
    expect(await answer.json()).toMatchObject({ token_type: 'Bearer' })
  })

  it('is nested under data, and has the lifetime, according to the mode', async () => {
    const { control, askToken } = await useSandbox()
    await control('PUT', '/token-mode', { nested: true, lifetimeS: 60 })
    expect(await (await askToken()).json()).toEqual({
      code: 1,
      message: 'Successful',
      data: { access_token: expect.any(String), token_type: 'Bearer', expires_in: 60 },
    })
  })

  it.each([
    ['a wrong secret', { client_secret: 'guessed' }, 401, 'invalid_client'],
    ['an unknown client', { client_id: 'NOBODY' }, 401, 'invalid_client'],
    ['another grant', { grant_type: 'password' }, 400, 'unsupported_grant_type'],
    ['a missing member', { client_id: undefined }, 400, 'invalid_request'],
  ])('is refused to %s', async (_, body, status, error) => {
    const { askToken } = await useSandbox()
    const answer = await askToken(body)
    expect(answer.status).toBe(status)
    expect(await answer.json()).toMatchObject({ error, error_description: expect.any(String) })
  })

  it('is refused for a scope the client does not have', async () => {
    const token = client('C1', 'cards.read cards.list')
    const { askToken } = await useSandbox({ accounts: [{ ...SHOP, token }] })
    const own = { client_id: 'C1', client_secret: 'client-secret-1' }
    expect((await askToken({ ...own, scope: 'cards.list' })).status).toBe(200)
    const refused = await askToken({ ...own, scope: 'cards.write' })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ error: 'invalid_scope' })
  })

  it('of a given client is issued to it, and not to the default client', async () => {
    const { askToken } = await useSandbox({ accounts: [{ ...SHOP, token: client('C1') }] })
    const given = { client_id: 'C1', client_secret: 'client-secret-1' }
    expect((await askToken(given)).status).toBe(200)
    expect((await askToken()).status).toBe(401)
  })

  it('expires after its lifetime, or when control expires all tokens', async () => {
    const { control, fetchToken, readCards, readCalls } = await useSandbox({ tokenLifetimeS: 0 })
    expect((await readCards('', { token: await fetchToken() })).status).toBe(401)
    await control('PUT', '/token-mode', {})
    const token = await fetchToken()
    expect((await readCards('', { token })).status).toBe(200)
    expect(await (await control('POST', '/tokens/expire')).json()).toEqual({ expired: 1 })
    const refused = await readCards('', { token })
    expect(refused.status).toBe(401)
    expect(refused.headers.get('www-authenticate')).toBe('Bearer')
    expect((await readCards('', { token: null })).status).toBe(401)
    expect((await readCards('', { token: 'made-up' })).status).toBe(401)
    const verdicts = (await readCalls('cards')).map((entry) => entry.token)
    expect(verdicts).toEqual(['expired', 'accepted', 'expired', 'missing', 'unknown'])
  })
})

describe('the cards a token gives access to', () => {
  it('are those of its account; for a shared token those of all accounts', async () => {
    const { readCards } = await useSandbox({
      accounts: [{ ...SHOP, token: { kind: 'static', accessToken: 'token-of-the-shop' } }, OTHER],
      sharedToken: { kind: 'static', accessToken: 'token-of-all' },
    })
    const own = await readCards('', { token: 'token-of-the-shop' })
    expect(await own.json()).toMatchObject({ data: { totalDocs: 14 } })
    const all = await readCards('?pageSize=100', { token: 'token-of-all' })
    expect(await all.json()).toMatchObject({ data: { totalDocs: 28 } })
    const foreign = '/VC-SECOND-0001'
    expect((await readCards(foreign, { token: 'token-of-the-shop' })).status).toBe(404)
    expect((await readCards(foreign, { token: 'token-of-all' })).status).toBe(200)
  })

  it('remain accessible to a static token when the issued ones are expired', async () => {
    const token = { kind: 'static' as const, accessToken: 'given' }
    const { control, readCards } = await useSandbox({ accounts: [{ ...SHOP, token }] })
    await control('POST', '/tokens/expire')
    expect((await readCards('', { token: 'given' })).status).toBe(200)
  })
})

describe('faults of tokens', () => {
  it('refuse the client the configured number of times with the configured status', async () => {
    const { control, askToken } = await useSandbox()
    await control('POST', '/faults', { command: 'token', kind: 'code', code: 401, times: 1 })
    await control('POST', '/faults', { command: 'token', kind: 'code', code: 9, times: 1 })
    await control('POST', '/faults', { command: 'token', kind: 'http500', times: 1 })
    const refused = await askToken()
    expect(refused.status).toBe(401)
    expect(await refused.json()).toMatchObject({ error: 'invalid_client' })
    expect(await (await askToken()).json()).toEqual({ code: 9, message: 'Failed' })
    expect((await askToken()).status).toBe(500)
    expect((await askToken()).status).toBe(200)
  })
})

describe('the journal', () => {
  it('has every token request, but neither a token nor a secret', async () => {
    const { askToken, readCards, fetchToken, control, readCalls } = await useSandbox()
    const token = await fetchToken()
    await askToken({ client_id: 'a-secret-in-the-wrong-place', client_secret: 'guessed' })
    await readCards(`?status=ACTIVED&access_token=${token}`, { token })
    expect(await readCalls('token')).toMatchObject([
      { outcome: 'answered', status: 200, clientId: 'UFLIYL' },
      { outcome: 'answered', status: 401, clientId: null },
    ])
    expect(await readCalls('cards')).toMatchObject([{ query: { status: 'ACTIVED' } }])
    const journal = await (await control('GET', '/calls')).text()
    expect(journal).not.toMatch(new RegExp(`${token}|sandbox-UFLIYL|guessed|wrong-place`))
  })
})
