import { describe, expect, it, onTestFinished } from 'vitest'
import { prepareAccess } from '../../../src/access/setting-keys.ts'
import { FIRST_KEY_LOCK } from '../../../src/db/names.ts'
import type { Tx } from '../../../src/platform/postgres/types.ts'
import type { ServiceOptions } from '../../../src/service.ts'
import { withKey } from '../../support/api.ts'
import { holdLocks } from '../../support/database.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { pickPort } from '../../support/ports.ts'
import { KEY, postIpn, signIpn, startTestService } from '../../support/service.ts'
import { makeTransaction } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

/** Returns status and reason of a probe; undefined while nothing listens. */
async function probe(url: string, path = '/readyz') {
  const response = await fetch(url + path).catch(() => undefined)
  return response && `${response.status} ${await response.text()}`
}

/** Starts a service in the background, on ports that are known before it listens. */
async function beginStart(role: string, prepare: ServiceOptions['prepare'] = prepareAccess) {
  const [PORT, METRICS_PORT] = [await pickPort(), await pickPort()]
  const started = startTestService(rig.database, rig.sandbox.url, {
    settings: { PORT, METRICS_PORT, ROLE: role, API_KEY: KEY },
    prepare,
  })
  onTestFinished(async () => (await started).stop())
  const [url, metricsUrl] = [PORT, METRICS_PORT].map((port) => `http://127.0.0.1:${port}`)
  return { started, url: url ?? '', metricsUrl: metricsUrl ?? '' }
}

describe('while a process starts', () => {
  it('it is not ready before the key of API_KEY is valid, and then accepts it at once', async () => {
    const { started, url, metricsUrl } = await whileUncommitted(
      rig.database,
      (held) => held`select pg_advisory_xact_lock(${held.unsafe(FIRST_KEY_LOCK)})`,
      async () => {
        const start = await beginStart('web')
        await waitUntilBlocked(rig.database)
        expect(await probe(start.metricsUrl)).toMatch(/^503 .*is starting/)
        expect(await probe(start.metricsUrl, '/healthz')).toMatch(/^200 /)
        expect(await probe(start.url)).toBeUndefined()
        return start
      },
    )
    await started
    for (const address of [url, metricsUrl]) expect(await probe(address)).toMatch(/^200 /)
    expect((await fetch(`${url}/v1/transactions`, withKey())).status).toBe(200)
  })

  it('it is not ready before its background work runs, and what reaches it is served', async () => {
    let release = async () => {}
    // What a start reads last; the requests below need none of it.
    const { started, url, metricsUrl } = await beginStart('all', async (ctx) => {
      await prepareAccess(ctx)
      const lock = (tx: Tx) => tx`lock table merchant_accounts in access exclusive mode`
      release = (await holdLocks(rig.database, lock)).release
    })
    onTestFinished(() => release())
    await waitUntilBlocked(rig.database)
    for (const address of [url, metricsUrl]) {
      expect(await probe(address)).toMatch(/^503 .*is starting/)
      expect(await probe(address, '/healthz')).toMatch(/^200 /)
    }
    const notification = signIpn({ svc_TransactionID: 'T-EARLY' })
    expect((await postIpn(url, notification)).status).toBe(200)
    expect((await fetch(`${url}/v1/transactions`, withKey())).status).toBe(200)
    await release()
    await started
    expect(await probe(url)).toMatch(/^200 /)
  })
})

describe('a process that drains', () => {
  it('is not ready on either listener, stays alive, and serves everything on connections that end', async () => {
    const settings = { ROLE: 'all', METRICS_PORT: '0' }
    const service = await startTestService(rig.database, rig.sandbox.url, { settings })
    onTestFinished(() => service.stop())
    const { url, metricsUrl = '' } = service
    const before = await fetch(`${url}/v1/transactions`, withKey())
    expect(before.headers.get('connection')).toBe('keep-alive')
    service.drain()
    for (const address of [url, metricsUrl]) {
      expect(await probe(address)).toMatch(/^503 .*is stopping/)
      expect(await probe(address, '/healthz')).toMatch(/^200 /)
    }
    await makeTransaction(rig, 'T-DRAIN')
    expect((await postIpn(url, signIpn({ svc_TransactionID: 'T-DRAIN' }))).status).toBe(200)
    const read = await fetch(`${url}/v1/transactions/T-DRAIN?wait=20`, withKey())
    expect(await read.json()).toMatchObject({ state: 'paid', final: true })
    for (const path of ['/v1/transactions/T-DRAIN', '/v1/payments', '/ipn', '/console']) {
      const answer = await fetch(url + path, { ...withKey(), redirect: 'manual' })
      // undici throws where a connection that is not kept ends before the whole answer is read.
      await answer.arrayBuffer()
      expect([path, answer.headers.get('connection')]).toEqual([path, 'close'])
    }
  })
})
