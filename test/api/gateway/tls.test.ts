import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { expectProblem, withKey } from '../../support/api.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { CARDS, CLIENT, writeDetail } from '../../support/cards.ts'
import { makeAuthority } from '../../support/certificates.ts'
import { type BorrowedDatabase, borrowDatabase } from '../../support/database.ts'
import { listen, makeClient } from '../../support/gateway.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
import { waitUntil } from '../../support/wait-until.ts'

const authority = makeAuthority()
const RIGHT = authority.issue('127.0.0.1')
const WRONG = authority.issue('gateway.example')

const folder = mkdtempSync(join(tmpdir(), 'ipn-ca-'))
const caFile = join(folder, 'ca.pem')
writeFileSync(caFile, authority.cert)

let database: BorrowedDatabase
beforeAll(async () => {
  database = await borrowDatabase()
})
afterAll(async () => {
  await database.release()
  rmSync(folder, { recursive: true })
})

/** A gateway over TLS that answers every request; `show` replaces its certificate. */
async function serveTls() {
  const seen: string[] = []
  let beforeAnswer = (_what: string) => {}
  const server = createServer(RIGHT, async (request, response) => {
    const body = await text(request)
    const what = /"svc_Command":"(\w+)"/.exec(body)?.[1] ?? request.url?.replace(/\?.*/, '') ?? ''
    seen.push(what)
    beforeAnswer(what)
    const id = /"svc_TransactionID":"([^"]*)"/.exec(body)?.[1]
    response.setHeader('connection', 'close').end(ANSWERS[what]?.(id) ?? writeDetail())
  })
  const url = `https://127.0.0.1:${await listen(server)}`
  return {
    url,
    seen,
    show: (identity: typeof RIGHT) => server.setSecureContext(identity),
    onRequest(act: typeof beforeAnswer) {
      beforeAnswer = act
    },
  }
}

const ANSWERS: Record<string, (id?: string) => string> = {
  QUERY_PT: (id) =>
    JSON.stringify({
      svc_ResponseCode: 0,
      svc_ResponseMsg: 'ok',
      svc_ResponseData: [
        { id: `P-${id}`, status: 'SUCCESS', amount: 100, refundedAmount: 0, paymentMethod: 'CC' },
      ],
    }),
  REFUND: () =>
    JSON.stringify({ svc_ResponseCode: 0, svc_ResponseMsg: 'ok', svc_ResponseData: {} }),
  '/v2/auth/oauth2/token': () => JSON.stringify({ access_token: 'T1', token_type: 'Bearer' }),
}

/** The service as a process: Node reads `NODE_EXTRA_CA_CERTS` when it starts. */
async function startTrusting(gatewayUrl: string, role = 'all') {
  return await startServiceProcess({
    ...settingsFor(database.url, gatewayUrl),
    ...CLIENT,
    ROLE: role,
    NODE_EXTRA_CA_CERTS: caFile,
    SYNC_BACKOFF_MS: '20',
    SYNC_BACKOFF_MAX_MS: '100',
    REFUND_BACKOFF_MS: '20',
    REFUND_BACKOFF_MAX_MS: '100',
  })
}

const sync = (url: string, id: string) =>
  fetch(`${url}/v1/transactions/${id}/sync`, { method: 'POST', ...withKey() })

async function untilPaid(url: string, id: string): Promise<void> {
  const isPaid = async () => {
    const response = await fetch(`${url}/v1/transactions/${id}`, withKey())
    return (await response.text()).includes('"state":"paid"')
  }
  await waitUntil(isPaid, { what: `${id} is paid` })
}

it('an authority of NODE_EXTRA_CA_CERTS is trusted, and a certificate of another name is not: unavailable, and no byte of a query left', async () => {
  const gateway = await serveTls()
  const { url } = await startTrusting(gateway.url)
  await sync(url, 'T-right')
  await untilPaid(url, 'T-right')

  gateway.show(WRONG)
  gateway.seen.length = 0
  await sync(url, 'T-wrong')
  const calls = () =>
    database.sql`select outcome, message from gateway_calls where transaction_id = 'T-wrong'`
  await waitUntil(async () => (await calls()).length > 0, { what: 'a call' })
  expect((await calls())[0]).toEqual({
    outcome: 'unavailable',
    message: 'ERR_TLS_CERT_ALTNAME_INVALID',
  })
  expect(gateway.seen).toEqual([])

  gateway.show(RIGHT)
  await untilPaid(url, 'T-wrong')
})

it('a refund met by a certificate of another name stays pending: nothing was sent, and it is sent once the name is right', async () => {
  const gateway = await serveTls()
  const { url } = await startTrusting(gateway.url)
  await sync(url, 'T-refund')
  await untilPaid(url, 'T-refund')
  // The gateway answers the query before the refund, then presents another certificate.
  gateway.onRequest(() => gateway.show(WRONG))
  gateway.seen.length = 0
  const { id } = await expectTaken(await ask({ url }, 'P-T-refund', { amount: '10' }))
  const attempts = () => database.sql`
    select outcome, message from refund_attempts where refund_id = ${id} and outcome is not null`
  await waitUntil(async () => (await attempts()).length > 0, { what: 'an attempt' })
  expect((await attempts())[0]).toEqual({
    outcome: 'unavailable',
    message: 'ERR_TLS_CERT_ALTNAME_INVALID',
  })
  const status = async () => {
    const response = await fetch(`${url}/v1/refunds/${id}`, withKey())
    return /"status":"(\w+)"/.exec(await response.text())?.[1]
  }
  expect(await status()).toBe('pending')
  expect(gateway.seen).toEqual(['QUERY_PT'])

  gateway.onRequest(() => {})
  gateway.show(RIGHT)
  await waitUntil(async () => (await status()) === 'accepted', { what: 'an accepted refund' })
  expect(gateway.seen.filter((what) => what === 'REFUND')).toHaveLength(1)
})

it('a card and a token are not asked for at a certificate of another name', async () => {
  const gateway = await serveTls()
  const { url } = await startTrusting(gateway.url, 'web')
  const read = () => fetch(`${url}${CARDS}/VC-1`, withKey())
  gateway.show(WRONG)
  await expectProblem(await read(), 502, 'gateway_token_refused')
  expect(gateway.seen).toEqual([])
  gateway.show(RIGHT)
  await waitUntil(async () => (await read()).status === 200, { what: 'a card' })
  gateway.show(WRONG)
  gateway.seen.length = 0
  await expectProblem(await read(), 502, 'gateway_failed')
  expect(gateway.seen).toEqual([])
})

it('a certificate of an unknown authority is refused, also when the environment asks for no verification', async () => {
  const gateway = await serveTls()
  const outcome = { kind: 'unavailable', reason: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' }
  expect((await makeClient(gateway.url).ask()).outcome).toEqual(outcome)
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  onTestFinished(() => void vi.unstubAllEnvs())
  expect((await makeClient(gateway.url).ask()).outcome).toEqual(outcome)
  expect(gateway.seen).toEqual([])
})
