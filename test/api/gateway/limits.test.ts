import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { expectProblem } from '../../support/api.ts'
import { serveCards, startCards, writeDetail } from '../../support/cards.ts'
import { makeClient, serve } from '../../support/gateway.ts'
import { MERCHANT } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** What a gateway could answer to do harm. That an unknown outcome is kept as such: test/api/gateway-answers. */

const MIB = 1024 * 1024
const database = useTestDatabase()

/** Answers 50 MB as fast as they are read. */
function makePourer() {
  const poured = { bytes: 0, whole: false, over: false }
  function answer(response: ServerResponse): void {
    const chunk = Buffer.alloc(MIB / 16, ' ')
    response.on('close', () => {
      poured.over = true
      poured.whole = response.writableFinished
    })
    const more = () => {
      while (poured.bytes < 50 * MIB && !response.destroyed) {
        poured.bytes += chunk.length
        if (!response.write(chunk)) return response.once('drain', more)
      }
      return response.end()
    }
    more()
  }
  /** The connection was cut: far less than the answer went out, buffers of the system included. */
  async function check(): Promise<void> {
    await waitUntil(() => poured.over, { what: 'the end of the answer' })
    expect(poured.whole).toBe(false)
    expect(poured.bytes).toBeLessThan(30 * MIB)
  }
  return { answer, check }
}

/** Another host, and a redirect to it. */
async function makeRedirect() {
  const elsewhere = await serve((response) => response.end(writeDetail()))
  const answer = (response: ServerResponse) =>
    response.writeHead(307, { location: `${elsewhere.url}/elsewhere` }).end()
  return { answer, check: async () => expect(elsewhere.seen).toEqual([]) }
}

describe.each([
  ['an answer of 50 MB is cut at 1 MiB', makePourer, 'the answer exceeds 1048576 bytes'],
  ['a redirect is not followed, the other host sees nothing', makeRedirect, 'HTTP status 307'],
])('%s', (_, make, reason) => {
  it('to a query, or to a refund: unknown', async () => {
    const order = { refundId: 'R', paymentId: 'P', amount: '10' }
    for (const call of ['query', 'refund']) {
      const { answer, check } = await make()
      const { url, seen } = await serve(answer)
      const { client, ask } = makeClient(url)
      const refund = client.prepareRefund({ merchantCode: MERCHANT.merchantCode, ...order })
      const { outcome } = call === 'query' ? await ask() : await refund.send()
      expect(outcome).toEqual({ kind: 'unknown', reason })
      await check()
      expect(seen).toHaveLength(1)
    }
  })

  it('to a card, or to a token: 502', async () => {
    const card = await make()
    const { get } = await startCards(database, (await serveCards(card.answer)).url)
    await expectProblem(await get('/VC-1'), 502, 'gateway_failed')
    await card.check()
    const token = await make()
    const other = await serveCards((response) => response.end(writeDetail()), token.answer)
    const { get: getOther } = await startCards(database, other.url)
    await expectProblem(await getOther('/VC-1'), 502, 'gateway_token_refused')
    await token.check()
    expect(other.reads).toEqual([])
  })
})

it('an answer that never ends is cut off by the time-out of the whole call', async () => {
  const { url } = await serve((response) => {
    response.writeHead(200)
    const drip = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(drip))
  })
  const { outcome, record } = await makeClient(url, { GATEWAY_TIMEOUT_MS: 300 }).ask()
  expect(outcome).toEqual({ kind: 'unknown', reason: 'no answer within 300 ms' })
  expect(record.httpStatus).toBe(200)
})

it('oversized headers end the call, too', async () => {
  const { url } = await serve((response) =>
    response.writeHead(200, { 'x-much': 'y'.repeat(64 * 1024) }).end(),
  )
  const { outcome } = await makeClient(url).ask()
  expect(outcome).toEqual({ kind: 'unknown', reason: 'UND_ERR_HEADERS_OVERFLOW' })
})
