import { getEventListeners } from 'node:events'
import { inspect } from 'node:util'
import {
  AbortError,
  type ClientOptions,
  ConnectionError,
  createClient,
  ForbiddenError,
  type IpnProcessorError,
  NotFoundError,
  ProblemError,
  RateLimitedError,
  TimeoutError,
  UnauthenticatedError,
  UnavailableError,
} from '@ipn-processor/client'
import { beforeAll, describe, expect, it } from 'vitest'
import { seedTransaction } from '../../support/api.ts'
import { answerWith, catchError, connectFaulty, type Fault } from '../../support/faulty-fetch.ts'
import { serve } from '../../support/gateway.ts'
import { addKey, KEY, MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
beforeAll(async () => {
  await seedTransaction(rig.database, { transactionId: 'T1', state: 'paid' })
})

/** Creates a client of the real service whose first requests meet these faults. */
function connect({ faults = [], ...options }: Partial<ClientOptions> & { faults?: Fault[] } = {}) {
  const retried: { error: IpnProcessorError; inMs: number }[] = []
  const onRetry = (error: IpnProcessorError, inMs: number) => void retried.push({ error, inMs })
  const connected = connectFaulty(options.baseUrl ?? rig.service.url, { onRetry, ...options })
  connected.faults.push(...faults)
  return { ...connected, retried }
}

const always = (fault: Fault) => Array<Fault>(20).fill(fault)

describe('a read', () => {
  it('is retried after transient failures', async () => {
    const faults: Fault[] = ['refuse', 'lose_answer', answerWith(503, 'unavailable')]
    const { client, retried } = connect({ faults: [...faults, () => new Response('{"tr')] })
    expect(await client.transactions.get('T1')).toMatchObject({ transactionId: 'T1' })
    expect(retried.map(({ error }) => error.name)).toEqual([
      'ConnectionError',
      'ConnectionError',
      'UnavailableError',
      'ConnectionError',
    ])
  })

  it('fails after the configured number of retries', async () => {
    const { client, seen } = connect({
      faults: always(answerWith(500, 'internal_error')),
      retries: 2,
    })
    await expect(client.transactions.get('T1')).rejects.toThrow('500 internal_error')
    expect(seen).toHaveLength(3)
  })

  it('whose connection hangs is retried after the time-out of one attempt', async () => {
    const { client, seen } = connect({ faults: ['hang'], attemptTimeoutMs: 2_000 })
    expect(await client.transactions.get('T1')).toMatchObject({ transactionId: 'T1' })
    expect(seen).toHaveLength(2)
  })

  it('ends at its time-out, even if attempts have none and `fetch` ignores signals', async () => {
    const options = { faults: always('hang'), attemptTimeoutMs: Number.POSITIVE_INFINITY }
    const { client } = connect({ ...options, timeoutMs: 50 })
    await expect(client.transactions.get('T1')).rejects.toThrow(TimeoutError)
    const patient = connect(options).client
    await expect(patient.transactions.get('T1', { timeoutMs: 50 })).rejects.toThrow(TimeoutError)
  })

  it.each([Number.POSITIVE_INFINITY, 2 ** 40])('may take %d ms', async (ms) => {
    const { client, retried } = connect({ attemptTimeoutMs: ms, timeoutMs: ms })
    expect(await client.transactions.get('T1')).toMatchObject({ transactionId: 'T1' })
    expect(retried).toEqual([])
  })

  it('waits for `Retry-After`, in seconds or as a date', async () => {
    const inAnHour = new Date(Date.now() + 3_600_000).toUTCString()
    for (const [header, ms] of [
      ['2', 2_000],
      [inAnHour, 3_590_000],
    ] as const) {
      const end = new AbortController()
      const { client, retried } = connect({
        faults: [answerWith(503, 'unavailable', { headers: { 'retry-after': header } })],
        timeoutMs: 7_200_000,
        onRetry: (error, inMs) => {
          retried.push({ error, inMs })
          end.abort()
        },
      })
      const call = client.transactions.get('T1', { signal: end.signal })
      await expect(call).rejects.toThrow(AbortError)
      expect(retried[0]?.inMs).toBeGreaterThanOrEqual(ms)
    }
  })

  it('fails immediately with `retryAfterMs` if the wait would exceed its time-out', async () => {
    const headers = { 'retry-after': '3600' }
    const { client, seen } = connect({ faults: [answerWith(429, 'rate_limited', { headers })] })
    const error = await catchError(client.transactions.get('T1'))
    expect(error).toBeInstanceOf(RateLimitedError)
    expect(error).toMatchObject({ retryAfterMs: 3_600_000 })
    expect(seen).toHaveLength(1)
  })
})

it.each(['lose_answer', answerWith(503, 'unavailable')] as const)(
  'a request that is neither a read nor has a key is never sent twice: %s',
  async (fault) => {
    const { client, seen } = connect({ faults: [fault] })
    await expect(client.transactions.sync('T1')).rejects.toThrow(
      /^POST \/v1\/transactions\/T1\/sync/,
    )
    expect(seen).toHaveLength(1)
  },
)

it.each(['card_refused', 'gateway_refused', 'gateway_token_refused', 'cards_not_configured'])(
  'a 5xx that a retry cannot change is not retried: %s',
  async (code) => {
    const { client, seen } = connect({ faults: [answerWith(503, code)] })
    await expect(client.cards.get('C1')).rejects.toThrow(UnavailableError)
    expect(seen).toHaveLength(1)
  },
)

describe('a signal', () => {
  it('ends a call before it is sent, while it is in flight, and while it waits for a retry', async () => {
    for (const faults of [[], always('hang'), always('refuse')]) {
      const end = new AbortController()
      const reason = new Error('the shop closes')
      const { client, seen } = connect({
        faults,
        onRetry: () => queueMicrotask(() => end.abort(reason)),
      })
      if (faults.length === 0) end.abort(reason)
      const call = client.transactions.get('T1', { signal: end.signal })
      if (faults[0] === 'hang') end.abort(reason)
      const error = await catchError(call)
      expect(error).toBeInstanceOf(AbortError)
      expect(error).toMatchObject({ cause: reason })
      expect(seen).toHaveLength(faults.length === 0 ? 0 : 1)
    }
  })

  it('of the client ends all calls, and keeps no listener of a finished one', async () => {
    const end = new AbortController()
    const { client } = connect({ signal: end.signal, faults: ['refuse'] })
    await client.transactions.get('T1', { signal: end.signal })
    expect(getEventListeners(end.signal, 'abort')).toEqual([])
    end.abort()
    await expect(client.transactions.get('T1')).rejects.toThrow(AbortError)
  })
})

it('a signal gets one listener, however many calls it can end', async () => {
  const end = new AbortController()
  const { client } = connect({ signal: end.signal, faults: always('hang') })
  const calls = Array.from({ length: 12 }, () => catchError(client.transactions.get('T1')))
  expect(getEventListeners(end.signal, 'abort')).toHaveLength(1)
  end.abort()
  for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(AbortError)
  expect(getEventListeners(end.signal, 'abort')).toEqual([])
})

describe('an error', () => {
  it('has the class of its cause', async () => {
    const key = 'key-that-may-read-refunds-only-0123456789'
    await addKey(rig.database, key, ['refunds:read'])
    const unknown = connect({ apiKey: 'nobody-has-this-key-0123456789-abcdef' }).client
    await expect(unknown.transactions.get('T1')).rejects.toThrow(UnauthenticatedError)
    const { client } = connect({ apiKey: key })
    await expect(client.transactions.get('T1')).rejects.toThrow(ForbiddenError)
    await expect(connect().client.transactions.get('T2')).rejects.toThrow(NotFoundError)
    const error = await catchError(connect().client.transactions.list({ limit: 999 }).page())
    expect(error).toMatchObject({
      name: 'InvalidRequestError',
      requestId: expect.stringMatching(/^[\da-f-]{36}$/),
      errors: [{ path: 'limit' }],
    })
  })

  it('with an unknown code is a `ProblemError` with all its members', async () => {
    const headers = { 'x-request-id': 'R1' }
    const { client } = connect({ faults: [answerWith(418, 'teapot', { headers, shape: 'round' })] })
    const error = await catchError(client.transactions.get('T1'))
    if (!(error instanceof ProblemError)) throw error
    expect(error).toMatchObject({ status: 418, code: 'teapot', requestId: 'R1' })
    expect(error).toMatchObject({ detail: 'detail of teapot', extra: { shape: 'round' } })
  })

  it('is made for the page of a proxy, too', async () => {
    const page = () =>
      new Response('<h1>Bad Gateway</h1>', { status: 502, statusText: 'Bad Gateway' })
    const { client } = connect({ faults: [page], retries: 0 })
    const error = await catchError(client.transactions.get('T1'))
    expect(error).toBeInstanceOf(UnavailableError)
    expect(error).toMatchObject({ code: 'http_502', detail: 'Bad Gateway' })
  })

  it('never contains the API key, nor does the client', async () => {
    const faults: Fault[] = ['refuse', answerWith(403, 'scope_missing'), 'hang']
    const { client } = connect({ faults, retries: 0, timeoutMs: 50 })
    expect(inspect(client, { depth: 9, showHidden: true })).not.toContain(KEY)
    for (const _ of faults) {
      const error = await catchError(client.transactions.get('T1'))
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(KEY)
    }
    const broken = connect({ fetch, baseUrl: 'http://127.0.0.1:9', retries: 0 }).client
    const error = await catchError(broken.transactions.get('T1'))
    expect(error).toBeInstanceOf(ConnectionError)
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(KEY)
  })
})

it('a redirect is not followed, so that no other host gets the key', async () => {
  const thief = await serve((response) => response.end('{}'))
  const mover = await serve((response) => response.writeHead(307, { location: thief.url }).end())
  const client = createClient({ baseUrl: mover.url, apiKey: KEY })
  await expect(client.transactions.get('T1')).rejects.toThrow('307 http_307')
  expect(thief.seen).toEqual([])
})

it('a response that breaks off is a connection error, and is retried', async () => {
  const { url } = await serve((response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{"transactionId":')
    response.socket?.destroySoon()
  })
  const { client, retried } = connect({ baseUrl: url, fetch, retries: 1 })
  await expect(client.transactions.get('T1')).rejects.toThrow(ConnectionError)
  expect(retried).toHaveLength(1)
})

describe('the URL', () => {
  it('escapes any id, and names the account if one is configured', async () => {
    const strange = 'a/b?c=%2F#ü'
    await seedTransaction(rig.database, { transactionId: strange })
    const { client, seen } = connect({ merchantCode: MERCHANT.merchantCode })
    expect(await client.transactions.get(strange)).toMatchObject({ transactionId: strange })
    expect(seen[0]?.url.searchParams.get('merchantCode')).toBe(MERCHANT.merchantCode)
    const other = connect({ merchantCode: 'OTHER' }).client
    await expect(other.transactions.get(strange)).rejects.toThrow(NotFoundError)
  })

  it('rejects an id that would change the path', async () => {
    const { client, seen } = connect()
    for (const id of ['', '.', '..']) expect(() => client.transactions.get(id)).toThrow(TypeError)
    expect(seen).toEqual([])
  })

  it('keeps the path of the base URL', async () => {
    const { client, seen } = connect({
      baseUrl: 'http://ipn.example/shop/',
      faults: always('refuse'),
    })
    await catchError(client.transactions.get('T1', { timeoutMs: 1 }))
    expect(seen[0]?.url.href).toBe('http://ipn.example/shop/v1/transactions/T1')
  })
})

it.each([
  ['baseUrl', { baseUrl: 'ipn.example' }],
  ['baseUrl', { baseUrl: 'file:///etc' }],
  ['baseUrl', { baseUrl: 'https://user:hunter2@ipn.example' }],
  ['baseUrl', { baseUrl: 'https://ipn.example?x=1' }],
  ['apiKey', { apiKey: 'hunter2\n' }],
  ['apiKey', { apiKey: '' }],
  ['timeoutMs', { timeoutMs: 0 }],
  ['attemptTimeoutMs', { attemptTimeoutMs: Number.NaN }],
  ['retries', { retries: -1 }],
])('an invalid %s is named before anything is sent, without its value: %o', (name, wrong) => {
  const make = () => createClient({ baseUrl: 'https://ipn.example', apiKey: 'k', ...wrong })
  expect(make).toThrow(new RegExp(`^${name}: must`))
  expect(make).not.toThrow('hunter2')
})
