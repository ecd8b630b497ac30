import { expect, it, onTestFinished } from 'vitest'
import type { MerchantAccount, TokenSource } from '../../../src/config/accounts.ts'
import { createBreakers } from '../../../src/gateway/breakers.ts'
import { createCardGateway } from '../../../src/gateway/cards.ts'
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

it('each account reads with a token of its own, which is fetched once and kept', async () => {
  const { url, reads, fetches } = await serveCards((response) => response.end('{}'))
  const gateway = createCardGateway({
    ...{ breakers: createBreakers(), baseUrl: url, prefix: 'svc' },
    ...{ successCode: '1', notFoundCodes: [] },
    ...{ timeoutMs: 5_000, maxConcurrency: 1, onCall: () => {} },
    accounts: [makeAccount('ONE', makeClient('first')), makeAccount('TWO', makeToken('A'))],
    signal: new AbortController().signal,
  })
  onTestFinished(() => gateway.close())
  for (const merchantCode of ['ONE', 'TWO', 'ONE']) await gateway.readCards({ merchantCode })
  const tokens = reads.map(({ headers }) => headers.authorization)
  expect(tokens).toEqual(['Bearer T1', 'Bearer A', 'Bearer T1'])
  expect(fetches).toHaveLength(1)
})
