import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start.ts'
import { PUBLISHED_QUERY, PUBLISHED_QUERY_HASH } from '../../support/published.ts'
import { makeControl, SHOP } from '../../support/sandbox.ts'

const accounts = [SHOP]
const QUERY = { ...PUBLISHED_QUERY, svc_SecureHash: PUBLISHED_QUERY_HASH }

let sandbox: Sandbox
beforeEach(async () => {
  sandbox = await startSandbox({ accounts, seed: 7 })
  await control('POST', '/transactions', {
    transactionId: QUERY.svc_TransactionID,
    payments: [{ id: '1439211', amount: '10', paymentMethod: 'CC', status: 'SUCCESS' }],
    ipn: false,
  })
})
afterEach(() => sandbox.stop())

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 5000, interval: 5 })

const control = makeControl(() => sandbox)
const setFault = (fault: object) => control('POST', '/faults', { command: 'QUERY_PT', ...fault })

const ask = (params: object = QUERY, signal: AbortSignal | null = null) =>
  fetch(`${sandbox.url}/api/v1/paygate/svcpay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(params),
    signal,
  })

const readCalls = (command: string) =>
  control('GET', `/calls?command=${command}`).then((answer) => answer.json())

const expectLastCall = async (entry: object) =>
  expect(await readCalls('QUERY_PT')).toEqual({
    data: expect.arrayContaining([expect.objectContaining(entry)]),
  })

describe('faults that do no work', () => {
  it('http500 is a server error', async () => {
    await setFault({ kind: 'http500' })
    expect((await ask()).status).toBe(500)
    await expectLastCall({ outcome: 'http500', code: null, workCode: null })
  })

  it('reset breaks the connection before an answer', async () => {
    await setFault({ kind: 'reset' })
    await expect(ask()).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    await expectLastCall({ outcome: 'reset', workCode: null })
  })

  it('garbage is a success that is not JSON', async () => {
    await setFault({ kind: 'garbage' })
    const answer = await ask()
    expect(answer.status).toBe(200)
    await expect(answer.json()).rejects.toThrow()
    await expectLastCall({ outcome: 'garbage', workCode: null })
  })

  it('code refuses with the configured code', async () => {
    await setFault({ kind: 'code', code: 99 })
    expect(await (await ask()).json()).toMatchObject({ svc_ResponseCode: 99, svc_ResponseData: [] })
    await expectLastCall({ outcome: 'code', code: 99, workCode: null })
  })
})

describe('faults that do the work', () => {
  it('delay answers late but correctly', async () => {
    await setFault({ kind: 'delay', delayMs: 40 })
    const start = performance.now()
    expect(await (await ask()).json()).toMatchObject({ svc_ResponseCode: 0 })
    expect(performance.now() - start).toBeGreaterThanOrEqual(39)
    await expectLastCall({ outcome: 'delay', code: 0, workCode: 0 })
  })

  it('truncate announces the whole body and sends half of it', async () => {
    await setFault({ kind: 'truncate' })
    const answer = await ask()
    expect(answer.status).toBe(200)
    expect(Number(answer.headers.get('content-length'))).toBeGreaterThan(100)
    await expect(answer.text()).rejects.toThrow('terminated')
    await expectLastCall({ outcome: 'truncate', code: null, workCode: 0 })
  })

  it('acceptThenReset breaks the connection after the work', async () => {
    await setFault({ kind: 'acceptThenReset' })
    await expect(ask()).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    await expectLastCall({ outcome: 'acceptThenReset', code: null, workCode: 0 })
  })

  it('acceptThenHang never answers', async () => {
    await setFault({ kind: 'acceptThenHang' })
    const client = new AbortController()
    const hanging = ask(QUERY, client.signal)
    await eventually(() => expectLastCall({ outcome: 'acceptThenHang', workCode: 0 }))
    client.abort()
    await expect(hanging).rejects.toThrow('abort')
    await expectLastCall({ outcome: 'acceptThenHang', code: null })
  })

  it('acceptThenCode reports a failure although the request succeeded', async () => {
    await setFault({ kind: 'acceptThenCode' })
    expect(await (await ask()).json()).toMatchObject({ svc_ResponseCode: 1 })
    await expectLastCall({ outcome: 'acceptThenCode', code: 1, workCode: 0 })
  })

  it('a client that hangs does not keep the sandbox from stopping', async () => {
    await setFault({ kind: 'acceptThenHang', times: 1 })
    await setFault({ kind: 'delay', delayMs: 3_600_000 })
    const cut = Promise.allSettled([ask(), ask()])
    await eventually(() => expectLastCall({ outcome: 'delay' }))
    await sandbox.stop()
    expect(await cut).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])
  })
})

describe('which fault applies', () => {
  it('the first one added applies as often as its times, then the next', async () => {
    await setFault({ kind: 'code', code: 9, times: 2 })
    await setFault({ command: '*', kind: 'code', code: 18 })
    await setFault({ kind: 'code', code: 31 })
    const codes = [await ask(), await ask(), await ask()].map((answer) => answer.json())
    expect(await Promise.all(codes)).toMatchObject([
      { svc_ResponseCode: 9 },
      { svc_ResponseCode: 9 },
      { svc_ResponseCode: 18 },
    ])
  })

  it('a fault of another command leaves a query alone', async () => {
    await setFault({ command: 'REFUND', kind: 'reset' })
    await setFault({ command: 'cards', kind: 'reset' })
    expect((await ask()).status).toBe(200)
  })

  it('deleting them restores normal behaviour', async () => {
    await setFault({ kind: 'reset' })
    await control('DELETE', '/faults')
    expect((await ask()).status).toBe(200)
  })

  it('a probability gives the same sequence under the same seed', async () => {
    const play = async () => {
      await setFault({ kind: 'http500', probability: 0.5 })
      const statuses = []
      for (let asked = 0; asked < 20; asked += 1) statuses.push((await ask()).status)
      return statuses
    }
    const first = await play()
    await sandbox.stop()
    sandbox = await startSandbox({ accounts, seed: 7 })
    expect(await play()).toEqual(first)
    expect(new Set(first)).toEqual(new Set([200, 500]))
  })
})

describe('the journal', () => {
  it('records requests, answers and signature verdicts', async () => {
    await ask()
    await ask({ ...QUERY, svc_SecureHash: '0'.repeat(64) })
    await ask({ svc_Command: 'NONSENSE' })
    expect(await readCalls('QUERY_PT')).toMatchObject({
      data: [
        {
          at: expect.stringMatching(/^\d{4}-.*Z$/),
          outcome: 'answered',
          code: 0,
          merchantCode: 'UFLIYL',
          transactionId: QUERY.svc_TransactionID,
          signature: 'verified',
          rawBodySha256: expect.stringMatching(/^[0-9a-f]{64}$/),
          params: QUERY,
        },
        { code: 204, signature: 'wrong' },
      ],
    })
    expect(await readCalls('NONSENSE')).toMatchObject({
      data: [{ code: 201, signature: 'unchecked' }],
    })
  })

  it('drops the oldest entries beyond its limit', async () => {
    await sandbox.stop()
    sandbox = await startSandbox({ accounts, journalLimit: 2 })
    for (const name of ['first', 'second', 'third']) await ask({ svc_Command: name })
    const kept = await (await control('GET', '/calls')).json()
    expect(kept).toMatchObject({ data: [{ command: 'second' }, { command: 'third' }] })
  })
})
