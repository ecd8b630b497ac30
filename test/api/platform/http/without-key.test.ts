import { afterEach, expect, it, vi } from 'vitest'
import { useRig } from '../../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web', TRUSTED_PROXIES: '127.0.0.1' } })
const ask = (path: string, address: string, etag = '') =>
  fetch(rig.service.url + path, {
    headers: { 'x-forwarded-for': address, ...(etag === '' ? {} : { 'if-none-match': etag }) },
  })

afterEach(() => {
  vi.useRealTimers()
})

const DOCUMENTS = ['/openapi.json', '/docs', '/docs/swagger-ui-bundle.js', '/docs/start.js']

it.each(DOCUMENTS)('%s has a tag, and whoever has it gets no bytes', async (path) => {
  const first = await ask(path, '192.0.2.1')
  const etag = first.headers.get('etag') ?? ''
  expect([first.status, etag]).toEqual([200, expect.stringMatching(/^"[\w-]{43}"$/)])
  expect((await first.arrayBuffer()).byteLength).toBeGreaterThan(100)
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
    const again = await ask(path, '192.0.2.1', known)
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
  }
  expect((await ask(path, '192.0.2.1', '"other"')).status).toBe(200)
})

it('one network has one pace for all that needs no key, and others are served', async () => {
  // No turn is given back meanwhile, however slow the machine is.
  vi.useFakeTimers({ toFake: ['performance'] })
  vi.advanceTimersByTime(60_000)
  const paths = ['/openapi.json', '/docs', '/console/sign-in', '/healthz']
  const flood = Array.from({ length: 450 }, async (_, n) => {
    const response = await ask(paths[n % paths.length] ?? '/', `2001:db8::${(n % 9) + 1}`)
    await response.arrayBuffer()
    return response.status
  })
  const statuses = await Promise.all(flood)
  expect(statuses.toSorted()).toEqual([...Array(400).fill(200), ...Array(50).fill(429)])
  expect((await ask('/openapi.json', '2001:db8:0:1::1')).status).toBe(200)
})
