import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Config } from '../../../src/config/config.ts'
import { computeStoredHmac } from '../../support/body-hmac.ts'
import { ENCRYPTION, makeClient, serve } from '../../support/gateway.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ID = '240830080146NDTISR'
const HASH = 'df594d1e467bd327a30fa45ce259987718a68bd54cc67afe74d1e15e255182a4'
const EMPTY = '{"svc_ResponseCode":0,"svc_ResponseData":[],"svc_ResponseMsg":"ok"}'
const NOTHING = { payments: [], unreadable: [], rounded: [], json: '[]', omittedBytes: 0 }
const FIELDS = {
  svc_Command: 'QUERY_PT',
  svc_MerchantCode: 'UFLIYL',
  svc_TransactionID: ID,
  svc_Version: '1',
  svc_SecureHash: HASH,
}
const PAID = {
  id: '1439211',
  status: 'SUCCESS',
  amount: '10000.50',
  refundedAmount: '0',
  paymentMethod: 'CC',
}

const rig = useRig({ settings: { ROLE: 'web' } })
beforeAll(async () => {
  const { refundedAmount: _, ...payment } = PAID
  await rig.control('POST', '/transactions', { transactionId: ID, payments: [payment], ipn: false })
})
beforeEach(async () => void (await rig.control('DELETE', '/faults')))

const setFault = (fault: object) =>
  rig.control('POST', '/faults', { command: 'QUERY_PT', ...fault })
const CALLS = z.object({
  data: z.array(z.object({ signature: z.string(), rawBodySha256: z.string() })),
})
const listCalls = async () => CALLS.parse(await rig.control('GET', '/calls?command=QUERY_PT')).data
const countCalls = async () => (await listCalls()).length

describe('on the wire', () => {
  it('the published query goes out as JSON with the published hash', async () => {
    const { url, seen } = await serve((response) => response.end(EMPTY))
    await makeClient(url).ask(ID)
    expect(seen).toMatchObject([
      { path: '/api/v1/paygate/svcpay', headers: { 'content-type': 'application/json' } },
    ])
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual(FIELDS)
  })

  it('as a form it has the same fields and the same hash', async () => {
    const { url, seen } = await serve((response) => response.end(EMPTY))
    await makeClient(url, { GATEWAY_ENCODING: 'form' }).ask(ID)
    expect(seen[0]?.headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect(Object.fromEntries(new URLSearchParams(seen[0]?.body))).toEqual(FIELDS)
  })

  it('another prefix changes every name and no value', async () => {
    const { url, seen } = await serve((response) => response.end(EMPTY.replaceAll('svc', 'brand')))
    const { outcome } = await makeClient(url, { GATEWAY_FIELD_PREFIX: 'brand' }).ask(ID)
    expect(outcome).toEqual({ kind: 'answered', value: NOTHING, message: 'ok' })
    const rebranded = Object.entries(FIELDS).map(([k, v]) => [k.replace('svc', 'brand'), v])
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual(Object.fromEntries(rebranded))
  })

  it('a base address with a path of its own is kept before the path of the operations', async () => {
    const { url, seen } = await serve((response) => response.end(EMPTY))
    await makeClient(`${url}/shop/`).ask()
    await makeClient(`${url}/shop`, { GATEWAY_PAYGATE_PATH: '/pay' }).ask()
    expect(seen.map(({ path }) => path)).toEqual(['/shop/api/v1/paygate/svcpay', '/shop/pay'])
  })

  it.each(['json', 'form'] as const)(
    'the sandbox verifies what goes out as %s',
    async (encoding) => {
      const { outcome, record } = await makeClient(rig.sandbox.url, {
        GATEWAY_ENCODING: encoding,
      }).ask(ID)
      expect(outcome).toMatchObject({
        kind: 'answered',
        value: { payments: [PAID] },
        message: 'Success',
      })
      const last = (await listCalls()).at(-1)
      expect(last).toMatchObject({ signature: 'verified' })
      expect(record.bodyHmac).toEqual(computeStoredHmac(ENCRYPTION, last?.rawBodySha256))
    },
  )

  it('a merchant without an account cannot be queried', () => {
    const { client } = makeClient(rig.sandbox.url)
    expect(() => client.queryPayments({ merchantCode: 'NOBODY', transactionId: 'T1' })).toThrow(
      'no account NOBODY',
    )
  })
})

describe('the outcome', () => {
  it('of an unknown transaction or a wrong secret is rejected with its code', async () => {
    expect((await makeClient(rig.sandbox.url).ask('T-NOBODY')).outcome).toMatchObject({
      kind: 'rejected',
      code: expect.stringMatching(/^[1-9]\d*$/),
      message: expect.stringMatching(/./),
    })
    const accounts: Config['accounts'] = [{ ...MERCHANT, secret: 'wrong' }]
    expect((await makeClient(rig.sandbox.url, { accounts }).ask(ID)).outcome.kind).toBe('rejected')
  })

  it.each([
    [{ kind: 'delay', delayMs: 20 }, { kind: 'answered' }, 200],
    [{ kind: 'code', code: 99 }, { kind: 'rejected', code: '99' }, 200],
    [{ kind: 'code', code: -1 }, { kind: 'rejected', code: '-1' }, 200],
    [{ kind: 'acceptThenCode' }, { kind: 'rejected', code: '1' }, 200],
    [{ kind: 'http500' }, { kind: 'unknown', reason: 'HTTP status 500' }, 500],
    [{ kind: 'garbage' }, { kind: 'unknown', reason: 'the answer is not a JSON object' }, 200],
    [
      { kind: 'reset' },
      { kind: 'unknown', reason: expect.stringMatching(/ECONNRESET|SOCKET/) },
      undefined,
    ],
    [{ kind: 'truncate' }, { kind: 'unknown', reason: expect.stringMatching(/./) }, 200],
    [
      { kind: 'acceptThenReset' },
      { kind: 'unknown', reason: expect.stringMatching(/./) },
      undefined,
    ],
  ])('of the fault %j is %j', async (fault, expected, status) => {
    await setFault({ times: 1, ...fault })
    const calls: unknown[] = []
    const onCall = (command: string, kind: string) => calls.push([command, kind])
    const { outcome, record } = await makeClient(rig.sandbox.url, {}, { onCall }).ask(ID)
    expect(outcome).toMatchObject(expected)
    expect(record).toMatchObject({ command: 'QUERY_PT', httpStatus: status })
    expect(calls).toEqual([['QUERY_PT', outcome.kind]])
  })

  it.each(['acceptThenHang', 'delay'])(
    'of the fault %s, longer than the time-out, is unknown within it',
    async (kind) => {
      await setFault({ kind, ...(kind === 'delay' ? { delayMs: 60_000 } : {}), times: 1 })
      const { outcome, record } = await makeClient(rig.sandbox.url, {
        GATEWAY_TIMEOUT_MS: 500,
      }).ask(ID)
      expect(outcome).toEqual({ kind: 'unknown', reason: 'no answer within 500 ms' })
      expect(record.durationMs).toBeGreaterThanOrEqual(499)
      expect(record.durationMs).toBeLessThan(5_000)
    },
  )

  it('of an interrupted call is unknown, and nothing is sent once the signal is aborted', async () => {
    await setFault({ kind: 'acceptThenHang', times: 1 })
    const { ask } = makeClient(rig.sandbox.url)
    const before = await countCalls()
    const stop = new AbortController()
    const call = ask(ID, stop.signal)
    await waitUntil(async () => (await countCalls()) > before, { what: 'the request' })
    stop.abort()
    expect((await call).outcome).toEqual({ kind: 'unknown', reason: 'interrupted' })
    expect((await ask(ID, stop.signal)).outcome).toEqual({
      kind: 'unavailable',
      reason: 'interrupted',
    })
    expect(await countCalls()).toBe(before + 1)
  })

  it('beyond the call slots is unavailable, and a slot is free again after its call', async () => {
    await setFault({ kind: 'acceptThenHang', times: 2 })
    const { ask } = makeClient(rig.sandbox.url, {
      GATEWAY_MAX_CONCURRENCY: 2,
      GATEWAY_TIMEOUT_MS: 1_000,
    })
    const before = await countCalls()
    const hanging = [ask(ID), ask(ID)]
    expect((await ask(ID)).outcome).toEqual({
      kind: 'unavailable',
      reason: 'all call slots are in use',
    })
    await Promise.all(hanging)
    expect(await countCalls()).toBe(before + 2)
    expect((await ask(ID)).outcome.kind).toBe('answered')
  })
})

describe('a response', () => {
  async function ask(body: string | Buffer, status = 200, headers: Record<string, string> = {}) {
    const { url, seen } = await serve((response) => response.writeHead(status, headers).end(body))
    const { outcome } = await makeClient(url).ask()
    expect(seen).toHaveLength(1)
    return outcome
  }

  it.each([201, 299])('of status %i is a success as well', async (status) => {
    expect(await ask(EMPTY, status)).toEqual({ kind: 'answered', value: NOTHING, message: 'ok' })
  })

  it.each([400, 429, 503])('of status %i is unknown, whatever its body', async (status) => {
    expect(await ask(EMPTY, status)).toEqual({ kind: 'unknown', reason: `HTTP status ${status}` })
  })

  it('that is no answer in the sense of the specification is unknown, with the reason', async () => {
    const reason = 'svc_ResponseCode is not a number'
    expect(await ask('{"svc_ResponseCode":"0","svc_ResponseData":[]}')).toEqual({
      kind: 'unknown',
      reason,
    })
  })

  it('of 1 MiB is read', async () => {
    expect(await ask(EMPTY.padEnd(1024 * 1024))).toMatchObject({ kind: 'answered' })
  })
})
