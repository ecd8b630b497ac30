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
async function startTrusting(gatewayUrl: string) {
  return await startServiceProcess({
    ...settingsFor(database.url, gatewayUrl),
    ...CLIENT,
    NODE_EXTRA_CA_CERTS: caFile,
    SYNC_BACKOFF_MS: '20',
    SYNC_BACKOFF_MAX_MS: '100',
    REFUND_BACKOFF_MS: '20',
    REFUND_BACKOFF_MAX_MS: '100',
  })
}

const NAME_IS_WRONG = { outcome: 'unavailable', message: 'ERR_TLS_CERT_ALTNAME_INVALID' }

it('an authority of NODE_EXTRA_CA_CERTS is trusted, and no byte goes to a certificate of another name', async () => {
  const gateway = await serveTls()
  const { url } = await startTrusting(gateway.url)
  const get = (path: string) => fetch(url + path, withKey())
  const sync = (id: string) =>
    fetch(`${url}/v1/transactions/${id}/sync`, { method: 'POST', ...withKey() })
  const untilShown = async (path: string, text: string) =>
    waitUntil(async () => (await (await get(path)).text()).includes(text), { what: path })
  const show = (certificate: typeof RIGHT) => {
    gateway.seen.length = 0
    gateway.show(certificate)
  }
  await sync('T-right')
  await untilShown('/v1/transactions/T-right', '"state":"paid"')

  show(WRONG)
  await expectProblem(await get(`${CARDS}/VC-1`), 502, 'gateway_token_refused')
  await sync('T-wrong')
  const calls = () =>
    database.sql`select outcome, message from gateway_calls where transaction_id = 'T-wrong'`
  await waitUntil(async () => (await calls()).length > 0, { what: 'a call' })
  expect((await calls())[0]).toEqual(NAME_IS_WRONG)
  expect(gateway.seen).toEqual([])

  show(RIGHT)
  await untilShown('/v1/transactions/T-wrong', '"state":"paid"')
  await untilShown(`${CARDS}/VC-1`, 'VC-1')
  show(WRONG)
  await expectProblem(await get(`${CARDS}/VC-1`), 502, 'gateway_failed')
  expect(gateway.seen).toEqual([])

  // The gateway answers the query before the refund, then presents another certificate.
  show(RIGHT)
  gateway.onRequest(() => gateway.show(WRONG))
  const { id } = await expectTaken(await ask({ url }, 'P-T-right', { amount: '10' }))
  const attempts = () => database.sql`
    select outcome, message from refund_attempts where refund_id = ${id} and outcome is not null`
  await waitUntil(async () => (await attempts()).length > 0, { what: 'an attempt' })
  expect((await attempts())[0]).toEqual(NAME_IS_WRONG)
  await untilShown(`/v1/refunds/${id}`, '"status":"pending"')
  expect(gateway.seen).toEqual(['QUERY_PT'])
  gateway.onRequest(() => {})
  gateway.show(RIGHT)
  await untilShown(`/v1/refunds/${id}`, '"status":"accepted"')
  expect(gateway.seen.filter((what) => what === 'REFUND')).toHaveLength(1)
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
