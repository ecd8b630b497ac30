import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { expectProblem, withKey } from '../../../support/api.ts'
import { createOwnDatabase } from '../../../support/database.ts'
import { KEY, signIpn, startTestService } from '../../../support/service.ts'
import { useRig } from '../../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

const PROTECTION = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}
const json = { 'content-type': 'application/json' }
const zipped = { ...json, 'content-encoding': 'gzip' }
const SIGNED = JSON.stringify(signIpn({ svc_TransactionID: 'T-1' }))

/** One request for every kind of response. */
const KINDS: [status: number, path: string, init?: RequestInit][] = [
  [200, '/healthz'],
  [200, '/readyz'],
  [200, '/metrics'],
  [404, '/nothing'],
  [405, '/healthz', { method: 'DELETE' }],
  [200, '/ipn', { method: 'POST', headers: json, body: SIGNED }],
  [400, '/ipn', { method: 'POST', headers: json, body: '{' }],
  [401, '/ipn', { method: 'POST', headers: json, body: SIGNED.replace('T-1', 'T-2') }],
  [405, '/ipn', { method: 'PUT' }],
  [415, '/ipn', { method: 'POST', body: SIGNED }],
  [415, '/ipn', { method: 'POST', headers: zipped, body: gzipSync(SIGNED) }],
  [
    415,
    '/v1/transactions/T-1/sync',
    { method: 'POST', body: gzipSync('{}'), ...withKey(KEY, zipped) },
  ],
  [401, '/v1/transactions'],
  [401, '/v1/no'],
  [404, '/v1/transactions/T-1/nothing', withKey()],
  [200, '/v1/transactions', withKey()],
  [200, '/v1/transactions/T-1', withKey()],
  [304, '/v1/transactions/T-1', withKey(KEY, { 'if-none-match': '*' })],
  [404, '/v1/payments/P-1', withKey()],
  [422, '/v1/payments?limit=x', withKey()],
  [405, '/v1/transactions/T-1', { method: 'PUT', body: 'a=b', ...withKey() }],
  [404, '/v1/nothing', { method: 'POST', body: 'a=b', ...withKey() }],
  [400, '/v1/transactions/T-1/sync', { method: 'POST', body: '{', ...withKey(KEY, json) }],
  [202, '/v1/transactions/T-1/sync', { method: 'POST', ...withKey() }],
  [503, '/v2/vc/virtual-cards/VC-1', withKey()],
]

// The transaction that is read, whichever kind comes first.
beforeAll(async () => {
  const told = await fetch(`${rig.service.url}/ipn`, {
    method: 'POST',
    headers: json,
    body: SIGNED,
  })
  expect(told.status).toBe(200)
})

it.each(KINDS)(
  '%i of %s has the security headers and the request id that was sent',
  async (status, path, init = {}) => {
    const headers = { ...Object.fromEntries(new Headers(init.headers)), 'x-request-id': 'mine-1' }
    const response = await fetch(rig.service.url + path, { ...init, headers })
    expect(response.status).toBe(status)
    if (status === 405 && path === '/healthz') {
      expect(response.headers.get('allow')).toBe('GET, HEAD')
    }
    if (status >= 400 && path !== '/ipn') {
      expect(response.headers.get('content-type')).toBe('application/problem+json')
    }
    expect(Object.fromEntries(response.headers)).toMatchObject({
      ...PROTECTION,
      'cache-control':
        path.startsWith('/v1/transactions/T-1') && status < 400 && !init.method
          ? 'private, no-cache'
          : 'no-store',
      'x-request-id': 'mine-1',
    })
  },
)

it('a request id that is sent twice, or unfit for a log, is replaced by a new one', async () => {
  const answered = await new Promise((resolve, reject) => {
    const headers = { 'x-request-id': ['a', 'b'] }
    request(`${rig.service.url}/healthz`, { headers }, (response) => {
      response.resume()
      resolve(response.headers['x-request-id'])
    })
      .on('error', reject)
      .end()
  })
  expect(answered).toMatch(/^[0-9a-f-]{36}$/)
  for (const unfit of ['has spaces', 'a"b', 'x'.repeat(256)]) {
    const response = await fetch(`${rig.service.url}/healthz`, {
      headers: { 'x-request-id': unfit },
    })
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  }
})

it.each([
  ['/v1/payments/a\\b', 'localhost'],
  ['/v1/payments', 'a/b'],
  ['/v1/payments', 'shop.1'],
  ['/v1/transactions/T-1?wait=0', 'shop.1'],
])('the address %s at the host %s is refused with a problem', async (path, host) => {
  const answered = await new Promise<Response>((resolve, reject) => {
    request(
      rig.service.url,
      { path, headers: { ...withKey().headers, host } },
      async (response) => {
        const { statusCode: status = 0, headers } = response
        const pairs = Object.entries(headers).map(([name, value]): [string, string] => [
          name,
          `${value}`,
        ])
        resolve(new Response(await text(response), { status, headers: pairs }))
      },
    )
      .on('error', reject)
      .end()
  })
  await expectProblem(answered, 400, 'invalid_address')
  expect(Object.fromEntries(answered.headers)).toMatchObject(PROTECTION)
})

it('no response shows a stack trace, a path or a statement, whatever fails inside; the log has it in full', async () => {
  const broken = await createOwnDatabase()
  const other = await startTestService(broken, 'http://127.0.0.1:1', { settings: { ROLE: 'web' } })
  onTestFinished(() => other.stop())
  const logged = vi.spyOn(other.ctx.log, 'error')
  await broken.sql`alter table payments rename to lost`
  await broken.sql`alter table ipn_events rename to lost_too`
  const answers = [
    await fetch(`${other.url}/v1/payments`, withKey(KEY, { 'x-request-id': 'own-1' })),
    await fetch(`${other.url}/v1/transactions`, withKey()),
    await fetch(`${other.url}/v1/payments/P-1/refunds`, {
      method: 'POST',
      ...withKey(KEY, { 'idempotency-key': 'k' }),
    }),
    await fetch(`${other.url}/ipn`, { method: 'POST', headers: json, body: SIGNED }),
  ]
  await broken.shutOut()
  answers.push(await fetch(`${other.url}/v1/payments`, withKey()))
  await broken.letIn()
  expect(answers.map(({ status }) => status)).toEqual([500, 500, 500, 500, 503])
  const err = expect.objectContaining({ message: expect.stringContaining('payments') })
  expect(logged).toHaveBeenCalledWith(
    expect.objectContaining({ requestId: 'own-1', path: '/v1/payments', err }),
    expect.any(String),
  )
  for (const answer of answers) {
    const shown = JSON.stringify([await answer.text(), ...answer.headers])
    expect(shown).not.toMatch(
      /\\n *at |\.[tj]s\b|node_modules|select|relation|lost|postgres|stack/i,
    )
  }
})
