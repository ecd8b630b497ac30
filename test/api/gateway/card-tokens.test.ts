import { expect, it, onTestFinished } from 'vitest'
import type { MerchantAccount, TokenSource } from '../../../src/config/accounts.ts'
import { createBreakers } from '../../../src/gateway/breakers.ts'
import { createCardGateway } from '../../../src/gateway/card-gateway.ts'
import { serveCards } from '../../support/cards.ts'

const makeAccount = (merchantCode: string, token: TokenSource): MerchantAccount => ({
  merchantCode,
  secret: 'unused-by-cards',
  token,
})
const makeClient = (clientSecret: string): TokenSource => ({
  ...{ kind: 'client', url: '/v2/auth/oauth2/token', clientId: 'shop' },
  clientSecret,
})
const makeToken = (accessToken: string): TokenSource => ({ kind: 'static', accessToken })

it('after a reload reads use the new tokens, and a source that stayed the same keeps the token it fetched', async () => {
  const { url, reads, fetches } = await serveCards((response) => response.end('{}'))
  const directory = {
    accounts: [makeAccount('ONE', makeClient('first')), makeAccount('TWO', makeToken('A'))],
  }
  const gateway = createCardGateway({
    ...{ breakers: createBreakers(), baseUrl: url, prefix: 'svc' },
    ...{ successCode: '1', notFoundCodes: [] },
    ...{ timeoutMs: 5_000, maxConcurrency: 1, onCall: () => {}, directory },
    signal: new AbortController().signal,
  })
  onTestFinished(() => gateway.close())
  const readTokens = async () => {
    reads.splice(0)
    for (const merchantCode of ['ONE', 'TWO']) await gateway.readCards({ merchantCode })
    return reads.map(({ headers }) => headers.authorization)
  }
  expect(await readTokens()).toEqual(['Bearer T1', 'Bearer A'])
  directory.accounts = [makeAccount('ONE', makeClient('first')), makeAccount('TWO', makeToken('B'))]
  expect(await readTokens()).toEqual(['Bearer T1', 'Bearer B'])
  expect(fetches).toHaveLength(1)
  directory.accounts = [makeAccount('ONE', makeClient('next')), makeAccount('TWO', makeToken('B'))]
  expect(await readTokens()).toEqual(['Bearer T2', 'Bearer B'])
  expect(fetches).toHaveLength(2)
})
