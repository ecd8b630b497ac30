import { describe, expect, it, onTestFinished } from 'vitest'
import { createTokenProvider } from '../../../src/gateway/tokens.ts'
import type { OutcomeKind } from '../../../src/gateway/types.ts'
import { expectProblem } from '../../support/api.ts'
import { findInTables } from '../../support/ask.ts'
import {
  CLIENT,
  giveToken,
  serveCards,
  startCards,
  TOKENS,
  writeDetail,
} from '../../support/cards.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const database = useTestDatabase()

type Cards = Parameters<typeof serveCards>

async function startWith(cards: Cards[0], tokens?: Cards[1], settings?: Record<string, string>) {
  const gateway = await serveCards(cards, tokens)
  return { ...gateway, ...(await startCards(database, gateway.url, settings)) }
}

/** Takes these tokens only. */
const taking =
  (isTaken: (token: string) => boolean): Cards[0] =>
  (response, { headers }) => {
    const good = isTaken(headers.authorization?.replace('Bearer ', '') ?? '')
    if (good) response.end(writeDetail())
    else response.writeHead(401).end('{"message":"token expired"}')
  }

const TAKEN = taking(() => true)

const readMany = (get: (path: string) => Promise<Response>, n: number) =>
  Promise.all(Array.from({ length: n }, (_, nth) => get(`/VC-${nth}`)))

describe('reads through the service', () => {
  it('twenty at once on a cold start fetch exactly one token, asked for as the client', async () => {
    const settings = { ...CLIENT, GATEWAY_TOKEN_SCOPE: 'cards:read' }
    const { get, reads, fetches } = await startWith(TAKEN, undefined, settings)
    const answers = await readMany(get, 20)
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(reads).toHaveLength(20)
    expect(fetches).toMatchObject([{ path: TOKENS }])
    expect(JSON.parse(fetches[0]?.body ?? '')).toEqual({
      grant_type: 'client_credentials',
      client_id: CLIENT.GATEWAY_CLIENT_ID,
      client_secret: CLIENT.GATEWAY_CLIENT_SECRET,
      scope: 'cards:read',
    })
  })

  it('whose token ran out at the gateway are renewed once, and no caller sees it', async () => {
    let good = 'T1'
    const { get, fetches } = await startWith(taking((token) => token === good))
    expect((await get('/VC-1')).status).toBe(200)
    good = 'T2'
    const answers = await readMany(get, 20)
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(fetches).toHaveLength(2)
  })

  it('that are refused whatever the token end after two tries, without a storm', async () => {
    const { get, reads, fetches, logged } = await startWith(taking(() => false))
    const began = performance.now()
    const problem = await expectProblem(await get('/VC-1'), 502, 'gateway_token_refused')
    expect([reads.length, fetches.length]).toEqual([2, 2])
    expect(JSON.stringify(problem) + logged()).not.toMatch(/T1|T2|hunter2/)
    for (const answer of await readMany(get, 20)) {
      await expectProblem(answer, 502, 'gateway_token_refused')
    }
    for (const answer of await readMany(get, 20)) {
      await expectProblem(answer, 502, 'gateway_token_refused')
    }
    // The third refused token in a row puts the account at fault: requests are paused for half a second or more, which a
    // slow machine outlasts. Without pauses it would be a token for every read.
    const pauses = Math.ceil((performance.now() - began) / 500)
    expect(fetches.length).toBeGreaterThanOrEqual(3)
    expect(fetches.length).toBeLessThanOrEqual(4 + pauses)
    expect(reads.length).toBeLessThan(60)
  })

  it('with a token that was given as it is are refused at once: it cannot be renewed', async () => {
    const settings = { GATEWAY_ACCESS_TOKEN: 'static-hunter2' }
    const { get, reads, fetches, logged } = await startWith(
      taking((token) => token !== 'static-hunter2' || reads.length > 1),
      undefined,
      settings,
    )
    await expectProblem(await get('/VC-1'), 502, 'gateway_token_refused')
    expect([reads.length, fetches.length]).toEqual([1, 0])
    expect((await get('/VC-1')).status).toBe(200)
    expect(reads[1]?.headers.authorization).toBe('Bearer static-hunter2')
    expect(logged()).not.toContain('hunter2')
  })

  it.each([
    ['a server error', 500, '{"message":"hunter2 is wrong"}'],
    ['a refusal', 401, '{"error":"invalid_client","client_secret":"client-secret-hunter2"}'],
  ])('without a token, because of %s, are 502 and ask for one once', async (_, status, body) => {
    const tokens: Cards[1] = (response) => response.writeHead(status).end(body)
    const { get, reads, fetches, logged } = await startWith(TAKEN, tokens)
    const startedAt = performance.now()
    for (const answer of [...(await readMany(get, 5)), ...(await readMany(get, 5))]) {
      const problem = await expectProblem(answer, 502, 'gateway_token_refused')
      expect(JSON.stringify(problem)).not.toContain('hunter2')
    }
    expect(reads).toEqual([])
    // After a failure the next one waits for at least half a second.
    expect(fetches.length).toBeGreaterThan(0)
    expect(fetches.length).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 500)
    expect(logged()).not.toContain('hunter2')
    expect(await findInTables(database, 'hunter2')).toEqual([])
  })

  it('whose token takes too long are 504', async () => {
    const settings = { ...CLIENT, GATEWAY_TIMEOUT_MS: '100' }
    const { get } = await startWith(TAKEN, () => {}, settings)
    await expectProblem(await get('/VC-1'), 504, 'gateway_timeout')
  })

  it('take a token that comes under `data`, from an address of its own', async () => {
    const elsewhere = await serveCards(
      () => {},
      (response) => response.end('{"code":1,"data":{"access_token":"T9","expires_in":"60"}}'),
    )
    const settings = { ...CLIENT, GATEWAY_TOKEN_URL: `${elsewhere.url}${TOKENS}` }
    const { get, reads, fetches } = await startWith(TAKEN, undefined, settings)
    expect((await get('/VC-1')).status).toBe(200)
    expect(reads[0]?.headers.authorization).toBe('Bearer T9')
    expect([fetches.length, elsewhere.fetches.length]).toEqual([0, 1])
  })
})

describe('a kept token', () => {
  /** A provider whose clock the test sets. */
  async function keepWith(tokens: Cards[1], random = 0) {
    const gateway = await serveCards(() => {}, tokens)
    const clock = { ms: 0 }
    const outcomes: OutcomeKind[] = []
    const provider = createTokenProvider(
      { kind: 'client', url: TOKENS, clientId: 'shop', clientSecret: 'secret' },
      {
        baseUrl: `${gateway.url}/`,
        timeoutMs: 5_000,
        signal: new AbortController().signal,
        onFetch: (outcome) => outcomes.push(outcome),
        random: () => random,
        now: () => clock.ms,
      },
    )
    onTestFinished(() => provider.close())
    const get = async () => {
      const result = await provider.get()
      return result.kind === 'token' ? result.token : result.kind
    }
    return { ...gateway, provider, get, clock, outcomes }
  }

  it.each([
    [0, 540_000],
    [0.5, 555_000],
  ])(
    'is renewed shortly before its end, with jitter %d, while callers keep the old',
    async (random, renewAt) => {
      const { get, clock, fetches } = await keepWith(giveToken({ expires_in: 600 }), random)
      expect(await get()).toBe('T1')
      clock.ms = renewAt - 1
      expect(await get()).toBe('T1')
      expect(fetches).toHaveLength(1)
      clock.ms = renewAt
      expect(await get()).toBe('T1')
      await waitUntil(async () => (await get()) === 'T2', { what: 'the new token' })
      expect(fetches).toHaveLength(2)
    },
  )

  it('that has expired is not returned', async () => {
    const { get, clock } = await keepWith(giveToken({ expires_in: 10 }))
    expect(await get()).toBe('T1')
    clock.ms = 10_000
    expect(await get()).toBe('T2')
  })

  it('without a stated life is kept until it is refused', async () => {
    const { get, clock, provider } = await keepWith(giveToken({}))
    expect(await get()).toBe('T1')
    clock.ms = 10 ** 12
    expect(await get()).toBe('T1')
    provider.invalidate('T1')
    expect(await get()).toBe('T2')
  })

  it('is not lost because an older one is refused late', async () => {
    const { get, provider, fetches } = await keepWith(giveToken())
    expect(await get()).toBe('T1')
    provider.invalidate('T1')
    expect(await get()).toBe('T2')
    provider.invalidate('T1')
    expect(await get()).toBe('T2')
    expect(fetches).toHaveLength(2)
  })

  it('that was taken counts as good: the next refusal is renewed at once, time and again', async () => {
    const { get, provider } = await keepWith(giveToken())
    for (const token of ['T1', 'T2', 'T3', 'T4', 'T5']) {
      expect(await get()).toBe(token)
      provider.confirm(token)
      provider.invalidate(token)
    }
  })

  it('that cannot be had is asked for again after a pause that doubles', async () => {
    const { get, clock, fetches, outcomes } = await keepWith((response, _, nth) => {
      if (nth < 3) response.writeHead(503).end()
      else response.end('{"access_token":"T3"}')
    })
    for (const [ms, asked] of [
      [0, 1],
      [499, 1],
      [500, 2],
      [1_499, 2],
    ] as const) {
      clock.ms = ms
      expect(await get()).toBe('none')
      expect(fetches).toHaveLength(asked)
    }
    clock.ms = 1_500
    expect(await get()).toBe('T3')
    expect(outcomes).toEqual(['unknown', 'unknown', 'answered'])
  })
})
