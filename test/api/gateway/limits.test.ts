import type { ServerResponse } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { expectProblem, withKey } from '../../support/api.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { CARDS, CLIENT, serveCards, startCards, writeDetail } from '../../support/cards.ts'
import { makeClient, serve } from '../../support/gateway.ts'
import { startTestService } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const MIB = 1024 * 1024
const TOO_MUCH = 'the answer exceeds 1048576 bytes'

const database = useTestDatabase()

/** Answers 50 MB as fast as they are read; `poured` records how much was written and how it ended. */
function makePourer() {
  const poured = { bytes: 0, whole: false, over: false }
  function pour(response: ServerResponse): void {
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
  async function expectCut(): Promise<void> {
    await waitUntil(() => poured.over, { what: 'the end of the answer' })
    expect(poured.whole).toBe(false)
    expect(poured.bytes).toBeLessThan(30 * MIB)
  }
  return { pour, expectCut }
}

/** Another host, and a redirect to it; the host records every request. */
async function makeRedirect() {
  const elsewhere = await serve((response) => response.end(writeDetail()))
  const redirect = (response: ServerResponse) =>
    response.writeHead(307, { location: `${elsewhere.url}/elsewhere` }).end()
  return { redirect, expectUnseen: () => expect(elsewhere.seen).toEqual([]) }
}

const PAID = JSON.stringify({
  svc_ResponseCode: 0,
  svc_ResponseMsg: 'ok',
  svc_ResponseData: [
    { id: 'P', status: 'SUCCESS', amount: 100, refundedAmount: 0, paymentMethod: 'CC' },
  ],
})

/** The service beside a gateway that answers each query and each refund by the given function. */
async function startBeside(answer: {
  query?: (response: ServerResponse) => void
  refund?: (response: ServerResponse) => void
}) {
  const { url: gatewayUrl, seen } = await serve((response, { body }) => {
    const isRefund = body.includes('"REFUND"')
    const given = isRefund ? answer.refund : answer.query
    if (given) given(response)
    else response.end(PAID.replace('"P"', `"P-${/"svc_TransactionID":"(.*?)"/.exec(body)?.[1]}"`))
  })
  const service = await startTestService(database, gatewayUrl, {
    settings: { SYNC_BACKOFF_MS: '60000', GATEWAY_TIMEOUT_MS: '20000' },
  })
  onTestFinished(() => service.stop())
  const sync = (id: string) =>
    fetch(`${service.url}/v1/transactions/${id}/sync`, { method: 'POST', ...withKey() })
  return { url: service.url, seen, sync }
}

async function untilCalled(transactionId: string, command: string) {
  const find = () => database.sql<{ outcome: string; message: string }[]>`
    select outcome, message from gateway_calls
    where transaction_id = ${transactionId} and command = ${command}`
  await waitUntil(async () => (await find()).length > 0, { what: `${command} ${transactionId}` })
  return (await find())[0]
}

/** Requests a refund; returns the outcome of its only attempt, and the status of the refund. */
async function refundOnce(url: string, transactionId: string) {
  const paymentId = `P-${transactionId}`
  const isKnown = async () =>
    (await fetch(`${url}/v1/payments/${paymentId}`, withKey())).status === 200
  await waitUntil(isKnown, { what: paymentId })
  const { id } = await expectTaken(await ask({ url }, paymentId, { amount: '10' }))
  const attempts = () => database.sql`
    select outcome, message from refund_attempts where refund_id = ${id} and outcome is not null`
  await waitUntil(async () => (await attempts()).length > 0, { what: 'an attempt' })
  const refund = await fetch(`${url}/v1/refunds/${id}`, withKey())
  return {
    attempt: (await attempts())[0],
    status: (await refund.text()).match(/"status":"\w+"/)?.[0],
  }
}

describe('an answer of 50 MB is cut at 1 MiB', () => {
  it('to a query: unknown, and tried again later', async () => {
    const { pour, expectCut } = makePourer()
    const { sync, seen } = await startBeside({ query: pour })
    await sync('T-big')
    expect(await untilCalled('T-big', 'QUERY_PT')).toEqual({
      outcome: 'unknown',
      message: TOO_MUCH,
    })
    await expectCut()
    expect(seen).toHaveLength(1)
  })

  it('to a refund: its outcome is unknown', async () => {
    const { pour, expectCut } = makePourer()
    const { url, sync } = await startBeside({ refund: pour })
    await sync('T-big-refund')
    expect(await refundOnce(url, 'T-big-refund')).toEqual({
      attempt: { outcome: 'unknown', message: TOO_MUCH },
      status: '"status":"unknown"',
    })
    await expectCut()
  })

  it('to a card, or to a token: 502', async () => {
    const card = makePourer()
    const gateway = await serveCards(card.pour)
    const { get } = await startCards(database, gateway.url)
    await expectProblem(await get('/VC-1'), 502, 'gateway_failed')
    await card.expectCut()

    const token = makePourer()
    const other = await serveCards((response) => response.end(writeDetail()), token.pour)
    const { get: getOther } = await startCards(database, other.url)
    await expectProblem(await getOther('/VC-1'), 502, 'gateway_token_refused')
    await token.expectCut()
    expect(other.reads).toEqual([])
  })
})

describe('a redirect to another host is not followed, and that host sees nothing', () => {
  it('of a query: unknown', async () => {
    const { redirect, expectUnseen } = await makeRedirect()
    const { sync } = await startBeside({ query: redirect })
    await sync('T-moved')
    const message = 'HTTP status 307'
    expect(await untilCalled('T-moved', 'QUERY_PT')).toEqual({ outcome: 'unknown', message })
    expectUnseen()
  })

  it('of a refund: its outcome is unknown', async () => {
    const { redirect, expectUnseen } = await makeRedirect()
    const { url, sync } = await startBeside({ refund: redirect })
    await sync('T-moved-refund')
    expect(await refundOnce(url, 'T-moved-refund')).toEqual({
      attempt: { outcome: 'unknown', message: 'HTTP status 307' },
      status: '"status":"unknown"',
    })
    expectUnseen()
  })

  it('of a card, or of a token: 502', async () => {
    const { redirect, expectUnseen } = await makeRedirect()
    const gateway = await serveCards(redirect)
    const { get } = await startCards(database, gateway.url)
    await expectProblem(await get('/VC-1'), 502, 'gateway_failed')
    const other = await serveCards((response) => response.end(writeDetail()), redirect)
    const { get: getOther } = await startCards(database, other.url)
    await expectProblem(await getOther('/VC-1'), 502, 'gateway_token_refused')
    expect(other.reads).toEqual([])
    expectUnseen()
  })
})

it('the token comes from the address that is configured, and cards from the gateway alone', async () => {
  const tokens = await serveCards((response) => response.end())
  const gateway = await serveCards((response) => response.end(writeDetail()))
  const settings = { ...CLIENT, GATEWAY_TOKEN_URL: `${tokens.url}/v2/auth/oauth2/token` }
  const { get } = await startCards(database, gateway.url, settings)
  expect((await get('/VC-1')).status).toBe(200)
  expect([tokens.fetches.length, tokens.reads.length]).toEqual([1, 0])
  expect([gateway.fetches.length, gateway.reads.map(({ path }) => path)]).toEqual([
    0,
    [`${CARDS}/VC-1`],
  ])
})

it('an answer that never ends is cut off by the time-out of the whole call', async () => {
  const { url } = await serve((response) => {
    response.writeHead(200)
    const drip = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(drip))
  })
  const { outcome, record } = await makeClient(url, { timeoutMs: 1_000 }).ask()
  expect(outcome).toEqual({ kind: 'unknown', reason: 'no answer within 1000 ms' })
  expect(record.httpStatus).toBe(200)
})

it('oversized headers end the call, too', async () => {
  const { url } = await serve((response) =>
    response.writeHead(200, { 'x-much': 'y'.repeat(64 * 1024) }).end(PAID),
  )
  expect((await makeClient(url).ask()).outcome).toEqual({
    kind: 'unknown',
    reason: 'UND_ERR_HEADERS_OVERFLOW',
  })
})
