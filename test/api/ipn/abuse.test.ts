import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { borrowRig } from '../../support/borrow-rig.ts'
import { type Rig, type RigOptions, sendIpn, signIpn } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'
import { waitUntil } from '../../support/wait-until.ts'

async function startHere(options: RigOptions = {}): Promise<Rig> {
  const rig = await borrowRig(options)
  onTestFinished(() => rig.stop())
  return rig
}

const Refusals = z.array(
  z.object({
    verdict: z.string().optional(),
    address: z.string().optional(),
    leftOut: z.int().optional(),
  }),
)

const FORGED = { ...signIpn({ svc_TransactionID: 'T-FORGED' }), svc_SecureHash: '0'.repeat(64) }

describe('bad signatures of one address', () => {
  it('are answered 429 with Retry-After beyond the limit, and a good one is still accepted', async () => {
    const rig = await startHere({
      settings: { ROLE: 'web', TRUSTED_PROXIES: '127.0.0.0/8,::1' },
    })
    const send = (body: Record<string, unknown>, address: string) =>
      sendIpn(rig.service.url, body, {
        ...{ 'content-type': 'application/json', 'x-forwarded-for': address },
      })
    /** On a slow machine, some of what the network may send comes back meanwhile. */
    async function untilThrottled(least: number): Promise<Response> {
      for (let n = 0; n < 200; n += 1) {
        const refused = await send(FORGED, '192.0.2.1')
        if (refused.status === 429 && n >= least) return refused
        expect(refused.status).toBe(401)
      }
      return expect.unreachable('nothing is throttled')
    }
    const refused = await untilThrottled(30)
    expect(await refused.json()).toMatchObject({ respcode: 1 })
    expect(refused.headers.get('retry-after')).toMatch(/^[12]$/)

    const good = await send(signIpn({ svc_TransactionID: 'T-GOOD' }), '192.0.2.1')
    expect([good.status, await good.json()]).toEqual([200, { respcode: 0, respmsg: 'received' }])
    await untilThrottled(0)
    expect((await send(FORGED, '192.0.2.2')).status).toBe(401)
    const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
    expect(metrics).toContain('ipn_received_total{verdict="throttled"} 2')
  })
})

describe('refusals', () => {
  it('are logged once a second per verdict, with the sender and the number of suppressed lines', async () => {
    const { log, text } = keepLog()
    const rig = await startHere({
      settings: { ROLE: 'web', TRUSTED_PROXIES: '127.0.0.0/8,::1' },
      log,
    })
    let senders = 0
    // A few of each network: more are refused as throttled.
    const send = (type: string) =>
      sendIpn(rig.service.url, 'nonsense', {
        ...{ 'content-type': type, 'x-forwarded-for': `192.0.2.${++senders % 250}` },
      })
    const refused = (verdict: string) =>
      Refusals.parse(JSON.parse(text())).filter((line) => line.verdict === verdict)
    const nonsense = () => send('application/json')
    await Promise.all([...Array.from({ length: 30 }, nonsense), send('text/plain')])
    expect(refused('content_type')).toMatchObject([{ address: '192.0.2.31', leftOut: 0 }])
    let sent = 30
    // The next line, a second later, counts all that were suppressed.
    const allCounted = () =>
      refused('malformed').reduce((sum, { leftOut = 0 }) => sum + 1 + leftOut, 0) === sent
    await waitUntil(
      async () => {
        await nonsense()
        sent += 1
        return allCounted()
      },
      { what: 'the rest to be counted', everyMs: 100 },
    )
    expect(refused('malformed').length).toBeLessThan(10)
  })
})
