import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { expect, it } from 'vitest'
import { startSandbox } from '../../../src/sandbox/start.ts'
import { MERCHANT } from '../../support/service.ts'
import { useStarted } from '../../support/use-started.ts'

const sandbox = useStarted(
  () => startSandbox({ accounts: [MERCHANT] }),
  (started) => started.stop(),
)

/** Sends a request with any `Host`, as a browser does after DNS rebinding, and returns its status. */
async function ask(
  path: string,
  host: string,
  body?: string,
  port = sandbox.port,
): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const headers = { host, 'content-type': 'application/json' }
    const sent = request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const OWN = [
  ...['127.0.0.1', '127.0.0.2:8080', 'localhost', 'LOCALHOST:4010', 'a.localhost', '[::1]:4010'],
]
const FOREIGN = ['evil.example', '127.0.0.1.evil.example', 'localhost.evil.example', '10.0.0.1']

it.each(OWN)('a request to %s is answered', async (host) => {
  expect(await ask('/sandbox/calls', host)).toBe(200)
})

it.each([...FOREIGN, 'evil.example:4010', '[::2]', '0.0.0.0'])(
  'a request to %s is refused, read or written, by a page or a program',
  async (host) => {
    for (const path of ['/', '/healthz', '/sandbox/calls', '/sandbox/transactions']) {
      expect(await ask(path, host)).toBe(421)
    }
    for (const path of ['/sandbox/seed', '/sandbox/faults', '/api/v1/paygate/svcpay']) {
      expect(await ask(path, host, '{}')).toBe(421)
    }
  },
)

it('no host that is none passes', async () => {
  for (const host of ['127.0.0.1@evil.example', 'localhost/', 'x y']) {
    expect(await ask('/sandbox/calls', host)).toBeOneOf([400, 421])
  }
})

it('its own host is answered, where it is another one', async () => {
  const other = await startSandbox({ accounts: [MERCHANT], host: '0.0.0.0' })
  expect(await ask('/healthz', '0.0.0.0', undefined, other.port)).toBe(200)
  await other.stop()
})

it('a body of more than 64 KiB is refused, announced or not', async () => {
  const padded = (bytes: number) => JSON.stringify({ text: 'x'.repeat(bytes) })
  for (const path of ['/sandbox/faults', '/api/v1/paygate/svcpay', '/v2/auth/oauth2/token']) {
    expect(await ask(path, 'localhost', padded(64 * 1024))).toBe(413)
    expect(await ask(path, 'localhost', padded(60 * 1024))).not.toBe(413)
  }
  const stream = new ReadableStream({
    start(controller) {
      for (let n = 0; n < 70; n += 1)
        controller.enqueue(new TextEncoder().encode('x'.repeat(1_024)))
      controller.close()
    },
  })
  const init: RequestInit = { method: 'POST', body: stream, duplex: 'half' }
  expect((await fetch(`${sandbox.url}/sandbox/faults`, init)).status).toBe(413)
})

it('the example of the settings trusts one proxy, not a network', () => {
  const text = readFileSync(new URL('../../../.env.example', import.meta.url), 'utf8')
  const trusted = /TRUSTED_PROXIES=(.*)/.exec(text)?.[1] ?? ''
  expect(trusted).toMatch(/^\d+(\.\d+){3}$/)
})
