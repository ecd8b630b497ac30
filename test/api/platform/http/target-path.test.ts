import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readTargetPath } from '../../../../src/http/raw-response.ts'

const TARGETS = [
  '/ipn',
  '/ipn?a=%2F',
  '/%69pn',
  '/%69%70%6E?a=1',
  '/./ipn',
  '/v1/../ipn',
  '/v1/%2e%2e/ipn?b',
  'http://shop.example/ipn',
  'http://shop.example/%69pn?a=1',
  'http://me:secret@shop.example/ipn',
  'HTTP://shop.example/ipn',
  'http://shop.example/v1/../ipn',
  '/IPN',
  '/ipn/',
  '//ipn',
  '/%2569pn',
  '/ipn%3Fa',
  '/ipn%23a',
  '/%FFipn',
  '/%',
  '/v1/ipn',
  '/\\ipn',
  'ipn',
  '*',
  'ftp://shop.example/ipn',
]

const app = new Hono().all('/ipn', (c) => c.text('matched'))
const server = createServer((incoming, outgoing) => {
  void getRequestListener(app.fetch)(incoming, outgoing)
})
beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => void server.close())

/** Whether the framework's router finds the route `/ipn` for the target. */
async function isMatched(path: string): Promise<boolean> {
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const sent = request({ port, path, host: '127.0.0.1', agent: false }).end()
  return new Promise((resolve, reject) => {
    sent
      .on('error', reject)
      .on('response', (answer) => text(answer).then((body) => resolve(body === 'matched'), reject))
  })
}

describe('the path of a target', () => {
  it.each(TARGETS)('%s is /ipn if the router of the framework finds that route', async (target) => {
    expect(readTargetPath(target) === '/ipn').toBe(await isMatched(target))
  })
})
