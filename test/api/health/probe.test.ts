import { describe, expect, inject, it } from 'vitest'
import { askHealth, readHealthUrl } from '../../../src/health/ask-health.ts'
import { serve } from '../../support/gateway.ts'
import { pickPort } from '../../support/ports.ts'
import { runNode } from '../../support/process.ts'

/** Runs the health check as the image does. */
async function probe(env: Record<string, string>, ...args: string[]) {
  const { ended, output } = runNode([inject('programs').probe, ...args], env)
  return { code: await ended, ...output() }
}

describe('the health check of the image', () => {
  it.each([
    [{}, 'http://127.0.0.1:3000'],
    [{ HOST: '0.0.0.0', PORT: '8080' }, 'http://127.0.0.1:8080'],
    [{ HOST: '::', PORT: '8080' }, 'http://[::1]:8080'],
    [{ HOST: '10.1.2.3' }, 'http://10.1.2.3:3000'],
    [{ HOST: '0.0.0.0', METRICS_PORT: '9464' }, 'http://127.0.0.1:9464'],
    [{ HOST: '0.0.0.0', METRICS_HOST: '10.1.2.3', METRICS_PORT: '9464' }, 'http://10.1.2.3:9464'],
    // Whether the other settings are valid is for the service to say.
    [{ RETENTION_DAYS: 'x' }, 'http://127.0.0.1:3000'],
  ])('with %j asks %s', (env, url) => {
    expect(readHealthUrl(env)).toBe(url)
  })

  it('refuses a port that is none', () => {
    expect(() => readHealthUrl({ METRICS_PORT: 'x' })).toThrow(/^METRICS_PORT must/)
  })

  it('is healthy only with a 200, and repeats what the service answered', async () => {
    let status = 200
    const { url } = await serve((response) => response.writeHead(status).end('{"why":"…"}'))
    expect(await askHealth(url, '/readyz')).toEqual({
      healthy: true,
      line: `${url}/readyz: 200 {"why":"…"}`,
    })
    for (status of [204, 404, 503]) {
      expect(await askHealth(url, '/healthz')).toEqual({
        healthy: false,
        line: expect.stringContaining(`${url}/healthz: ${status}`),
      })
    }
  })

  it('exits with 0 where the service answers, asked for its readiness or for its life', async () => {
    const { url, seen } = await serve((response) => response.writeHead(200).end('{}'))
    const { hostname: HOST, port: PORT } = new URL(url)
    expect(await probe({ HOST, PORT })).toMatchObject({
      code: 0,
      out: `${url}/readyz: 200 {}\n`,
    })
    expect(await probe({ HOST, PORT }, '/healthz')).toMatchObject({ code: 0 })
    expect(seen.map(({ path }) => path)).toEqual(['/readyz', '/healthz'])
  })

  it('exits with 1 and the reason where nothing listens, and with 2 on a path that it does not know', async () => {
    const port = await pickPort()
    expect(await probe({ HOST: '0.0.0.0', PORT: port })).toMatchObject({
      code: 1,
      out: expect.stringContaining(`http://127.0.0.1:${port}/readyz: no answer (`),
    })
    expect(await probe({}, '/metrics')).toMatchObject({
      code: 2,
      err: 'usage: probe.js [/readyz|/healthz]\n',
    })
    expect(await probe({ PORT: 'x' })).toMatchObject({
      code: 1,
      err: expect.stringContaining('PORT must'),
    })
  })
})
