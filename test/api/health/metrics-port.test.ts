import { describe, expect, it, onTestFinished } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { makeGate } from '../../support/gate.ts'
import { startTestService } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { METRICS_PORT: '0', ROLE: 'web' } })

/** Reads the whole answer: undici throws where a connection that is not kept ends before that. */
async function status(url: string): Promise<number> {
  const response = await fetch(url)
  await response.arrayBuffer()
  return response.status
}

describe('with METRICS_PORT', () => {
  it('metrics and health are served there, and nothing else', async () => {
    const url = rig.service.metricsUrl ?? ''
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('database_up 1')
    expect(await status(`${url}/healthz`)).toBe(200)
    expect(await status(`${url}/readyz`)).toBe(200)
    for (const path of ['/v1/transactions', '/openapi.json', '/console', '/ipn', '/']) {
      expect([path, await status(url + path)]).toEqual([path, 404])
    }
  })

  it('the public port has health, but answers /metrics with 404, however it is written', async () => {
    const { url } = rig.service
    expect(await status(`${url}/healthz`)).toBe(200)
    expect(await status(`${url}/readyz`)).toBe(200)
    for (const path of ['/metrics', '/%6detrics', '/metrics?x=1', '/metrics/', '//metrics']) {
      expect([path, await status(url + path)]).toEqual([path, 404])
    }
  })

  it('a worker serves them there, too', async () => {
    const settings = { METRICS_PORT: '0', ROLE: 'worker' }
    const worker = await startTestService(rig.database, rig.sandbox.url, { settings })
    onTestFinished(() => worker.stop())
    expect(await status(`${worker.metricsUrl}/metrics`)).toBe(200)
    expect(await status(`${worker.url}/metrics`)).toBe(404)
    expect(await status(`${worker.url}/readyz`)).toBe(200)
  })

  it('the listener of the metrics closes last', async () => {
    const settings = { METRICS_PORT: '0', ROLE: 'web' }
    const service = await startTestService(rig.database, rig.sandbox.url, { settings })
    const work = makeGate()
    // The service is still busy with its last notifications.
    service.ctx.inbox.drain = () => work.opened
    const stopped = service.stop()
    await expect(fetch(`${service.url}/healthz`)).rejects.toThrow()
    expect(await status(`${service.metricsUrl}/healthz`)).toBe(200)
    expect(await status(`${service.metricsUrl}/readyz`)).toBe(503)
    expect(await status(`${service.metricsUrl}/metrics`)).toBe(200)
    work.open()
    await stopped
    await expect(fetch(`${service.metricsUrl}/healthz`)).rejects.toThrow()
  })
})

describe('without METRICS_PORT', () => {
  it('a public address is a warning at the start, loopback or METRICS_PORT is none', async () => {
    const warn = async (settings: Record<string, string>) => {
      const { log, saying } = keepLog()
      const options = { settings: { ROLE: 'web', ...settings }, log }
      await (await startTestService(rig.database, rig.sandbox.url, options)).stop()
      return saying('METRICS_PORT is not set')
    }
    expect(await warn({ HOST: '0.0.0.0' })).toHaveLength(1)
    expect(await warn({ HOST: '0.0.0.0', METRICS_PORT: '0', METRICS_HOST: '127.0.0.1' })).toEqual(
      [],
    )
    expect(await warn({ HOST: '127.0.0.1' })).toEqual([])
  })

  it('150 requests at once are one count in the database, and so are those of the next second', async () => {
    expect(readConfig({ DEMO: 'true' }).healthReuseMs).toBe(1_000)
    const service = await startTestService(rig.database, rig.sandbox.url, {
      settings: { ROLE: 'web' },
      config: { healthReuseMs: 60_000 },
    })
    onTestFinished(() => service.stop())
    let counts = 0
    const { countEndedRefunds } = service.ctx
    service.ctx.countEndedRefunds = () => {
      counts += 1
      return countEndedRefunds()
    }
    const ask = () =>
      Promise.all(Array.from({ length: 150 }, () => status(`${service.url}/metrics`)))
    expect(new Set(await ask())).toEqual(new Set([200]))
    expect(new Set(await ask())).toEqual(new Set([200]))
    expect(counts).toBe(1)
  })
})
