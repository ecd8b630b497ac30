import { createServer, request } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { readBody } from '../../../../src/http/body.ts'
import { expectProblem, withKey } from '../../../support/api.ts'
import { listen } from '../../../support/gateway.ts'
import { KEY } from '../../../support/service.ts'
import { useRig } from '../../../support/use-started.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const MIB = 1024 * 1024

/** The same process as this test, so that bodies share what they may hold. */
const rig = useRig({ settings: { ROLE: 'web' } })

/** A server that reads bodies, one of which holds all that those in flight may, until it is released. */
async function holdAll() {
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
  const release = () => void slow.destroy()
  onTestFinished(release)
  slow.write(Buffer.alloc(32 * MIB + 4_096))
  await waitUntil(() => received === 32 * MIB + 4_096, { what: 'all of the slow body' })
  return { url, release }
}

it('while bodies in flight hold all they may, 4 KiB of another are read and not a byte more', async () => {
  const { url, release } = await holdAll()
  const send = async (bytes: number) =>
    (await fetch(url, { method: 'POST', body: 'x'.repeat(bytes) })).text()
  expect([await send(4_096), await send(4_097)]).toEqual(['whole', 'over_budget'])
  release()
  await waitUntil(async () => (await send(4_097)) === 'whole', { what: 'what it held is free' })
})

it('a body for which those in flight leave no room is refused by every route, to be sent again', async () => {
  const { release } = await holdAll()
  const post = (path: string, bytes: number) =>
    fetch(rig.service.url + path, {
      method: 'POST',
      ...withKey(KEY, { 'content-type': 'application/json', 'idempotency-key': 'over-budget' }),
      body: '{}'.padEnd(bytes),
    })
  const refused = await post('/ipn', 5_000)
  const answer = [refused.status, refused.headers.get('retry-after'), await refused.json()]
  expect(answer).toMatchObject([503, '1', { respcode: 1 }])
  const refunds = '/v1/payments/P-none/refunds'
  await expectProblem(await post(refunds, 5_000), 503, 'unavailable')
  await expectProblem(await post(refunds, 4_000), 404, 'payment_not_found')
  release()
  await waitUntil(async () => (await post(refunds, 5_000)).status === 404, { what: 'room again' })
})
