import { createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { createWebhookSender } from '../../../src/webhooks/send.ts'
import { listen, serve } from '../../support/gateway.ts'

const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const TEST_MS = 120

function makeSender() {
  const resolve = () => Promise.resolve(['127.0.0.1'])
  const sender = createWebhookSender('private', resolve, { testMs: TEST_MS })
  onTestFinished(() => sender.close())
  return sender
}

const message = (port: number) => ({
  url: `http://127.0.0.1:${port}/`,
  secrets: [SECRET],
  id: '1',
  at: new Date(),
  body: '{}',
})

it('a test that gets no HTTP answer takes one time and has one wording, whatever listens there', async () => {
  const silent = await listen(createServer(() => {}))
  const other = await listen(createServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')))
  const hangingUp = await listen(createServer((socket) => socket.destroy()))
  const sender = makeSender()
  const { signal } = new AbortController()
  const results = await Promise.all(
    [65_535, silent, other, hangingUp].map(async (port) => {
      const began = performance.now()
      const result = await sender.sendTest(message(port), signal)
      expect(performance.now() - began).toBeGreaterThanOrEqual(TEST_MS - 2)
      return result
    }),
  )
  for (const one of results) {
    expect(one).toEqual({ status: null, error: 'no answer', answer: null, durationMs: TEST_MS })
  }
})

it('a receiver that answers is reported at once, as it answered', async () => {
  const receiver = await serve((response) => response.writeHead(503).end('closed'))
  const resolve = () => Promise.resolve(['127.0.0.1'])
  const sender = createWebhookSender('private', resolve)
  onTestFinished(() => sender.close())
  const { signal } = new AbortController()
  const result = await sender.sendTest(message(Number(new URL(receiver.url).port)), signal)
  expect(result).toMatchObject({ status: 503, error: 'answered 503', answer: 'closed' })
  expect(result.durationMs).toBeLessThan(4_000)
})
