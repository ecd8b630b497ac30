import { beforeEach, describe, expect, it, vi } from 'vitest'
import { PUBLISHED_QUERY, PUBLISHED_QUERY_HASH } from '../../support/published.ts'
import { type SandboxRig, useSandbox } from '../../support/sandbox.ts'

const QUERY = { ...PUBLISHED_QUERY, svc_SecureHash: PUBLISHED_QUERY_HASH }

let rig: SandboxRig
beforeEach(async () => {
  rig = await start()
})

async function start(options = {}) {
  const started = await useSandbox({ seed: 7, ...options })
  await started.control('POST', '/transactions', {
    transactionId: QUERY.svc_TransactionID,
    payments: [{ id: '1439211', amount: '10', paymentMethod: 'CC', status: 'SUCCESS' }],
    ipn: false,
  })
  return started
}

const setFault = (fault: object) =>
  rig.control('POST', '/faults', { command: 'QUERY_PT', ...fault })

const ask = (params: object = QUERY, signal: AbortSignal | null = null) =>
  fetch(`${rig.url}/api/v1/paygate/svcpay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(params),
    signal,
  })

const readLast = async () => (await rig.readCalls('QUERY_PT')).at(-1)
const expectWorked = (outcome: string) =>
  vi.waitFor(async () => expect(await readLast()).toMatchObject({ outcome, workCode: 0 }))

describe('a fault', () => {
  it.each([
    ['http500 is a server error', { kind: 'http500' }, 500, 'Internal Server Error', [null, null]],
    ['garbage is no JSON', { kind: 'garbage' }, 200, /^<html>/, [null, null]],
    ['code refuses', { kind: 'code', code: 99 }, 200, /"svc_ResponseCode":99/, [99, null]],
    ['delay answers', { kind: 'delay', delayMs: 9 }, 200, /"svc_ResponseCode":0/, [0, 0]],
    ['acceptThenCode lies', { kind: 'acceptThenCode' }, 200, /"svc_ResponseCode":1/, [1, 0]],
  ] as const)('%s: %j', async (_, fault, status, body, [code, workCode]) => {
    await setFault(fault)
    const answer = await ask()
    expect(answer.status).toBe(status)
    expect(await answer.text()).toMatch(body)
    expect(await readLast()).toMatchObject({ outcome: fault.kind, code, workCode })
  })

  it.each([
    ['reset', null],
    ['acceptThenReset', 0],
  ])('%s breaks the connection; result of the work: %s', async (kind, workCode) => {
    await setFault({ kind })
    await expect(ask()).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    expect(await readLast()).toMatchObject({ outcome: kind, code: null, workCode })
  })

  it('delay answers late', async () => {
    await setFault({ kind: 'delay', delayMs: 40 })
    const start = performance.now()
    await ask()
    expect(performance.now() - start).toBeGreaterThanOrEqual(39)
  })

  it('truncate announces the whole body and sends half of it', async () => {
    await setFault({ kind: 'truncate' })
    const answer = await ask()
    expect(answer.status).toBe(200)
    expect(Number(answer.headers.get('content-length'))).toBeGreaterThan(100)
    await expect(answer.text()).rejects.toThrow('terminated')
    expect(await readLast()).toMatchObject({ outcome: 'truncate', code: null, workCode: 0 })
  })

  it('acceptThenHang never answers', async () => {
    await setFault({ kind: 'acceptThenHang' })
    const client = new AbortController()
    const hanging = ask(QUERY, client.signal)
    await expectWorked('acceptThenHang')
    client.abort()
    await expect(hanging).rejects.toThrow('abort')
    expect(await readLast()).toMatchObject({ code: null })
  })

  it('that hangs or waits does not keep the sandbox from stopping', async () => {
    await setFault({ kind: 'acceptThenHang', times: 1 })
    await setFault({ kind: 'delay', delayMs: 3_600_000 })
    const hanging = ask()
    await expectWorked('acceptThenHang')
    const cut = Promise.allSettled([hanging, ask()])
    await vi.waitFor(async () => expect(await readLast()).toMatchObject({ outcome: 'delay' }))
    await rig.stop()
    expect(await cut).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])
  })
})

describe('which fault applies', () => {
  it('the first one added applies as often as its times, then the next', async () => {
    await setFault({ command: 'REFUND', kind: 'reset' })
    await setFault({ kind: 'code', code: 9, times: 2 })
    await setFault({ command: '*', kind: 'code', code: 18 })
    await setFault({ kind: 'code', code: 31 })
    const codes: unknown[] = []
    for (let asked = 0; asked < 3; asked += 1) codes.push(await (await ask()).json())
    expect(codes).toMatchObject([9, 9, 18].map((code) => ({ svc_ResponseCode: code })))
  })

  it('none of another command, and none when they are deleted', async () => {
    await setFault({ command: 'cards', kind: 'reset' })
    expect((await ask()).status).toBe(200)
    await setFault({ kind: 'reset' })
    expect((await rig.control('DELETE', '/faults')).status).toBe(204)
    expect((await ask()).status).toBe(200)
  })

  it('a delay lasts a second by default', async () => {
    const add = async (fault: object) => (await setFault(fault)).json()
    expect(await add({ kind: 'delay' })).toMatchObject({ delayMs: 1_000 })
    expect(await add({ kind: 'delay', delayMs: 7 })).toMatchObject({ delayMs: 7 })
  })
})

describe('the journal', () => {
  it('records requests, answers and signature verdicts', async () => {
    await ask()
    await ask({ ...QUERY, svc_SecureHash: '0'.repeat(64) })
    await ask({ svc_Command: 'NONSENSE' })
    expect(await rig.readCalls('QUERY_PT')).toMatchObject([
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
    ])
    expect(await rig.readCalls('NONSENSE')).toMatchObject([{ code: 201, signature: 'unchecked' }])
  })

  it('drops the oldest entries beyond its limit', async () => {
    rig = await start({ journalLimit: 2 })
    for (const name of ['first', 'second', 'third']) await ask({ svc_Command: name })
    const kept = await (await rig.control('GET', '/calls')).json()
    expect(kept).toMatchObject({ data: [{ command: 'second' }, { command: 'third' }] })
  })
})
