import { createServer, request } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { readBody } from '../../../../src/http/body.ts'
import { listen } from '../../../support/gateway.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const MIB = 1024 * 1024

it('while bodies in flight hold all they may, 4 KiB of another are read and not a byte more', async () => {
  let received = 0
  const server = createServer((incoming, response) => {
    incoming.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    readBody(incoming, { limit: 64 * MIB, timeoutMs: 60_000 }).then(({ kind }) =>
      response.setHeader('connection', 'close').end(kind),
    )
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  const slow = request(url, { method: 'POST', headers: { 'content-length': 40 * MIB } })
  // It is ended before it is complete.
  slow.on('error', () => {})
  onTestFinished(() => void slow.destroy())
  slow.write(Buffer.alloc(32 * MIB + 4_096))
  await waitUntil(() => received === 32 * MIB + 4_096, { what: 'all of the slow body' })
  const send = async (bytes: number) =>
    (await fetch(url, { method: 'POST', body: 'x'.repeat(bytes) })).text()
  expect([await send(4_096), await send(4_097)]).toEqual(['whole', 'over_budget'])
  slow.destroy()
  await waitUntil(async () => (await send(4_097)) === 'whole', { what: 'what it held is free' })
})
