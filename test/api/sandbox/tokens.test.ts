import { describe, expect, it } from 'vitest'
import { SHOP, useSandbox } from '../../support/sandbox.ts'

const OTHER = { merchantCode: 'SECOND', secret: 'A3EFDFABA8653DF2342E8DAC29B51AF0' }
const CLIENT = {
  kind: 'client' as const,
  url: 'http://gateway.example/token',
  clientId: 'C1',
  clientSecret: 'client-secret-1',
  scope: 'cards.read cards.list',
}

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

  it('can be requested by a form as well as by JSON, and nested', async () => {
    const { url, control } = await useSandbox()
    await control('PUT', '/token-mode', { lifetimeS: 7, nested: true })
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: 'UFLIYL',
      client_secret: 'sandbox-UFLIYL',
    })
    const answer = await fetch(`${url}/v2/auth/oauth2/token`, { method: 'POST', body })
    expect(await answer.json()).toMatchObject({
      code: 1,
      data: { access_token: expect.any(String), expires_in: 7 },
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
    expect([answer.status, await answer.json()]).toMatchObject([
      status,
      { error, error_description: expect.any(String) },
    ])
  })

  it('of a given client is issued to it within its scope, and not to the default client', async () => {
    const { askToken } = await useSandbox({ accounts: [{ ...SHOP, token: CLIENT }] })
    const own = { client_id: 'C1', client_secret: 'client-secret-1' }
    expect((await askToken(own)).status).toBe(200)
    expect((await askToken({ ...own, scope: 'cards.list' })).status).toBe(200)
    const refused = await askToken({ ...own, scope: 'cards.write' })
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: 'invalid_scope' }])
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
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    for (const other of [null, 'made-up']) await readCards('', { token: other })
    const verdicts = (await readCalls('cards')).map((entry) => entry.token)
    expect(verdicts).toEqual(['expired', 'accepted', 'expired', 'missing', 'unknown'])
  })
})

it('a token reads the cards of its account, a shared one those of all; static ones never expire', async () => {
  const { control, readCards } = await useSandbox({
    accounts: [{ ...SHOP, token: { kind: 'static', accessToken: 'token-of-the-shop' } }, OTHER],
    sharedToken: { kind: 'static', accessToken: 'token-of-all' },
  })
  await control('POST', '/tokens/expire')
  for (const [token, totalDocs, foreign] of [
    ['token-of-the-shop', 14, 404],
    ['token-of-all', 28, 200],
  ] as const) {
    expect(await (await readCards('', { token })).json()).toMatchObject({ data: { totalDocs } })
    expect((await readCards('/VC-SECOND-0001', { token })).status).toBe(foreign)
  }
})

it('faults refuse the client as often as set, with the status or the code', async () => {
  const { control, askToken } = await useSandbox()
  for (const fault of [
    { kind: 'code', code: 401 },
    { kind: 'code', code: 9 },
    { kind: 'http500' },
  ]) {
    await control('POST', '/faults', { command: 'token', times: 1, ...fault })
  }
  const refused = await askToken()
  expect([refused.status, await refused.json()]).toMatchObject([401, { error: 'invalid_client' }])
  expect(await (await askToken()).json()).toEqual({ code: 9, message: 'Failed' })
  expect((await askToken()).status).toBe(500)
  expect((await askToken()).status).toBe(200)
})

it('the journal has every token request, but neither a token nor a secret', async () => {
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
