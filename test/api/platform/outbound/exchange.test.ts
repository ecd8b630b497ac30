import { createServer as createTcpServer, type Socket } from 'node:net'
import { Pool, RetryAgent } from 'undici'
import { expect, it, onTestFinished } from 'vitest'
import { exchange } from '../../../../src/platform/outbound/exchange.ts'
import { listen, makeClient, serve } from '../../../support/gateway.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const BODY = '{"svc_ResponseCode":0,"svc_ResponseData":[]}'
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-length: ${BODY.length}\r\nconnection: keep-alive\r\n\r\n${BODY}`

/** A plain TCP server: `onRequest` is called for every complete request, with its number on the connection. */
async function serveTcp(onRequest: (socket: Socket, nth: number) => void) {
  const requests: string[] = []
  const sockets: Socket[] = []
  const server = createTcpServer((socket) => {
    sockets.push(socket)
    let nth = 0
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
      if (!text.endsWith('}')) return
      requests.push(/"svc_TransactionID":"([^"]*)"/.exec(text)?.[1] ?? '')
      text = ''
      nth += 1
      onRequest(socket, nth)
    })
  })
  const port = await listen(server)
  return { port, requests, sockets }
}

it('a refused connection is unavailable', async () => {
  const { ask } = makeClient('http://127.0.0.1:1')
  const { outcome, record } = await ask()
  expect(outcome).toEqual({ kind: 'unavailable', reason: 'ECONNREFUSED' })
  expect(record.httpStatus).toBeUndefined()
})

it('a host name that does not resolve is unavailable', async () => {
  const { outcome } = await makeClient('http://gateway.invalid').ask()
  expect(outcome).toEqual({
    kind: 'unavailable',
    reason: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/),
  })
})

it('a connection closed during the TLS handshake is unavailable: no byte of the request was written', async () => {
  const { port, sockets } = await serveTcp(() => {})
  const call = makeClient(`https://127.0.0.1:${port}`).ask()
  await waitUntil(() => sockets.length > 0, { what: 'the connection' })
  sockets[0]?.destroy()
  expect((await call).outcome.kind).toBe('unavailable')
})

it('a time-out while connecting is unavailable, one after sending is unknown', async () => {
  const { port, requests, sockets } = await serveTcp(() => {})
  const connecting = makeClient(`https://127.0.0.1:${port}`, { GATEWAY_TIMEOUT_MS: 500 })
  expect((await connecting.ask()).outcome).toEqual({
    kind: 'unavailable',
    reason: 'no answer within 500 ms',
  })
  await waitUntil(() => sockets.length === 1, { what: 'the connection' })
  expect(requests).toEqual([])
  const sending = makeClient(`http://127.0.0.1:${port}`, { GATEWAY_TIMEOUT_MS: 500 })
  expect((await sending.ask('T1')).outcome).toEqual({
    kind: 'unknown',
    reason: 'no answer within 500 ms',
  })
  await waitUntil(() => requests.length > 0, { what: 'the request' })
  expect(requests).toEqual(['T1'])
})

it('a connection that is not established in time is abandoned with its call and blocks no later one', async () => {
  const { port, sockets } = await serveTcp(() => {})
  const { ask } = makeClient(`https://127.0.0.1:${port}`, {
    GATEWAY_TIMEOUT_MS: 50,
    GATEWAY_MAX_CONCURRENCY: 1,
  })
  const isTriedAgain = async () =>
    (await ask()).outcome.kind === 'unavailable' && sockets.length > 1
  await waitUntil(isTriedAgain, { what: 'a second connection', timeoutMs: 5_000 })
})

it('a request aborted while connecting is not sent once the connection is established', async () => {
  const { port, requests } = await serveTcp((socket) => socket.write(ANSWER))
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 1 })
  onTestFinished(() => pool.destroy())
  const stop = new AbortController()
  const request = { path: '/', method: 'POST', headers: {}, timeoutMs: 5_000 } as const
  const body = (id: string) => JSON.stringify({ svc_TransactionID: id })
  const first = exchange(pool, { ...request, body: body('GIVEN-UP'), signal: stop.signal })
  stop.abort()
  expect(await first).toEqual({ kind: 'unavailable', reason: 'interrupted' })
  expect(await exchange(pool, { ...request, body: body('SENT') })).toMatchObject({ status: 200 })
  expect(requests).toEqual(['SENT'])
})

it('a keep-alive connection that closes on a request leaves it unknown, and it is sent once', async () => {
  const { port, requests, sockets } = await serveTcp((socket, nth) => {
    if (nth === 1) socket.write(ANSWER)
    else socket.destroy()
  })
  const { ask } = makeClient(`http://127.0.0.1:${port}`, { GATEWAY_MAX_CONCURRENCY: 1 })
  expect((await ask('T1')).outcome.kind).toBe('answered')
  expect((await ask('T2')).outcome.kind).toBe('unknown')
  expect((await ask('T3')).outcome.kind).toBe('answered')
  expect(requests).toEqual(['T1', 'T2', 'T3'])
  expect(sockets).toHaveLength(2)
})

it('however a server closes keep-alive connections, no request arrives twice', async () => {
  const { port, requests } = await serveTcp((socket, nth) => {
    socket.write(ANSWER)
    if (nth === 2) socket.end()
    if (nth === 1 && requests.length % 2 > 0) setImmediate(() => socket.destroy())
  })
  const { ask } = makeClient(`http://127.0.0.1:${port}`, { GATEWAY_MAX_CONCURRENCY: 3 })
  const asked: string[] = []
  for (let round = 0; round < 60; round += 1) {
    const ids = [0, 1, 2].map((one) => `T-${round}-${one}`)
    asked.push(...ids)
    const calls = await Promise.all(ids.map((id) => ask(id)))
    for (const { outcome } of calls) expect(['answered', 'unknown']).toContain(outcome.kind)
  }
  expect(requests.length).toBe(new Set(requests).size)
  expect(asked).toEqual(expect.arrayContaining(requests))
})

it('a dispatcher that retries by itself is stopped', async () => {
  const { url, seen } = await serve((response) => response.socket?.destroy())
  const agent = new RetryAgent(new Pool(url), { methods: ['POST'], minTimeout: 1, maxRetries: 3 })
  onTestFinished(() => agent.destroy())
  const request = { path: '/', method: 'POST', headers: {}, body: 'x', timeoutMs: 5_000 } as const
  expect(await exchange(agent, request)).toMatchObject({ kind: 'unknown' })
  expect(seen).toHaveLength(1)
})

it('calls reuse their connections, at most one for each call slot', async () => {
  const { port, sockets } = await serveTcp((socket) => socket.write(ANSWER))
  const { ask } = makeClient(`http://127.0.0.1:${port}`, { GATEWAY_MAX_CONCURRENCY: 2 })
  for (let round = 0; round < 5; round += 1) await Promise.all([ask(), ask()])
  expect(sockets.length).toBeLessThanOrEqual(2)
})

it('a closed client reports unavailable and sends nothing', async () => {
  const { url, seen } = await serve((response) => response.end(BODY))
  const { client, ask } = makeClient(url)
  expect((await ask()).outcome.kind).toBe('answered')
  await client.close()
  expect((await ask()).outcome.kind).toBe('unavailable')
  expect(seen).toHaveLength(1)
})
