import { expect, it } from 'vitest'
import { z } from 'zod'
import { compileNetworks, findClientAddress } from '../../../../src/http/client-address.ts'
import { borrowRig } from '../../../support/borrow-rig.ts'
import { keepLog } from '../../../support/sync.ts'

const isTrusted = compileNetworks([{ address: '127.0.0.0', prefix: 8, family: 'ipv4' }])

it.each([
  ['192.0.2.1', '192.0.2.1'],
  ['192.0.2.1:4711', '192.0.2.1'],
  ['2001:db8::1', '2001:db8::1'],
  ['[2001:db8::1]:4711', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['192.0.2.9, 192.0.2.1:80, 127.0.0.2:1', '192.0.2.1'],
  ['192.0.2.1:port', '127.0.0.1'],
  ['192.0.2.1:123456', '127.0.0.1'],
  ['[192.0.2.1', '127.0.0.1'],
  ['unknown', '127.0.0.1'],
  ['192.0.2.1, <script>', '127.0.0.1'],
  ['192.0.2.1,', '127.0.0.1'],
  ['198.51.100.1, 192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
])('X-Forwarded-For: %s of a trusted proxy is %s', (forwardedFor, address) => {
  expect(findClientAddress('127.0.0.1', forwardedFor, isTrusted)).toBe(address)
})

const Lines = z.array(z.looseObject({ msg: z.string(), peer: z.string().optional() }))

it('a proxy that nobody listed is warned of once, and a listed one never', async () => {
  const { log, text } = keepLog()
  for (const [proxies, warned] of [
    ['', 1],
    ['127.0.0.1', 1],
  ] as const) {
    const rig = await borrowRig({ settings: { ROLE: 'web', TRUSTED_PROXIES: proxies }, log })
    for (const path of ['/healthz', '/v1/payments', '/docs']) {
      await fetch(rig.service.url + path)
      await fetch(rig.service.url + path, { headers: { 'x-forwarded-for': '192.0.2.1' } })
    }
    await rig.stop()
    const lines = Lines.parse(JSON.parse(text())).filter(({ msg }) => /X-Forwarded-For/.test(msg))
    expect(lines).toHaveLength(warned)
    expect(lines[0]?.msg).toContain('TRUSTED_PROXIES')
    expect(lines[0]?.peer).toMatch(/127\.0\.0\.1$/)
  }
})
