import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { signIpn } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({
  settings: { ROLE: 'web' },
  // Short, so that a request that never ends is answered soon.
  serverLimits: { headersMs: 400, requestMs: 800, checkMs: 50 },
  config: { bodyTimeoutMs: 400 },
})

/** What came back on one connection: the status of each response, and everything as it was received. */
type RawAnswer = { statuses: number[]; text: string }

/**
 * Sends bytes exactly as they are written, and reads until the server closes the connection. A request that it answers
 * and waits behind has to carry `Connection: close`.
 */
async function send(bytes: string): Promise<RawAnswer> {
  const { hostname, port } = new URL(rig.service.url)
  const socket = connect(Number(port), hostname)
  let text = ''
  socket.setEncoding('latin1').on('error', () => {})
  socket.on('data', (part) => {
    text += part
  })
  const closed = once(socket, 'close')
  socket.write(Buffer.from(bytes, 'latin1'))
  await closed
  // A response begins right behind the body of the one before.
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
  return { statuses, text }
}

/** A notification as a request of its own, hidden behind or inside another one. */
function writeNotification(transactionId: string, connection = 'close'): string {
  const body = JSON.stringify(signIpn({ svc_TransactionID: transactionId }))
  return `POST /ipn HTTP/1.1\r\nHost: here\r\nConnection: ${connection}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

async function isStored(transactionId: string): Promise<boolean> {
  const { sql } = rig.database
  const rows = await sql`select from ipn_events where transaction_id = ${transactionId}`
  return rows.length > 0
}

/** The head of a request whose length two readers may understand differently; a request follows in its body. */
const AMBIGUOUS: [string, string, string][] = [
  ['a length and chunks', 'Content-Length: 9999\r\nTransfer-Encoding: chunked', '0\r\n\r\n'],
  ['chunks and a length', 'Transfer-Encoding: chunked\r\nContent-Length: 4', '0\r\n\r\n'],
  ['two lengths', 'Content-Length: 0\r\nContent-Length: 9999', ''],
  ['a list of lengths', 'Content-Length: 0, 9999', ''],
  ['a signed length', 'Content-Length: +0', ''],
  ['a negative length', 'Content-Length: -1', ''],
  ['a hexadecimal length', 'Content-Length: 0x0', ''],
  ['a length beyond 64 bits', 'Content-Length: 18446744073709551616', ''],
  ['an unknown encoding', 'Transfer-Encoding: xchunked', '0\r\n\r\n'],
  ['chunks that are not last', 'Transfer-Encoding: chunked, identity', '0\r\n\r\n'],
  ['a space before the colon', 'Transfer-Encoding : chunked', '0\r\n\r\n'],
  ['a control character', 'Transfer-Encoding: \x0bchunked', '0\r\n\r\n'],
  ['a folded line', 'Content-Length: 0\r\nX-Folded: a\r\n Transfer-Encoding: chunked', ''],
  ['a line that ends with LF', 'X-Bare: a\nTransfer-Encoding: chunked', '0\r\n\r\n'],
  ['a line that ends with CR', 'X-Bare: a\rTransfer-Encoding: chunked', '0\r\n\r\n'],
  ['a name with NUL', 'Content-Length\0: 0', ''],
  ['a chunk of a negative size', 'Transfer-Encoding: chunked', '-1\r\n'],
  ['a chunk of a signed size', 'Transfer-Encoding: chunked', '+0\r\n\r\n'],
  ['a chunk beyond 64 bits', 'Transfer-Encoding: chunked', '10000000000000000\r\n'],
  ['a chunk with a bare LF', 'Transfer-Encoding: chunked', '1\na\r\n0\r\n\r\n'],
]

describe('a request that two readers may cut differently', () => {
  it.each(AMBIGUOUS)('with %s hides no second one', async (name, head, body) => {
    const transactionId = `T-SMUGGLED-${AMBIGUOUS.findIndex(([one]) => one === name)}`
    const { statuses } = await send(
      `POST /ipn HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n${head}\r\n\r\n${body}${writeNotification(transactionId)}`,
    )
    expect(statuses).toEqual([expect.toSatisfy(isRefusal)])
    expect(await isStored(transactionId)).toBe(false)
  })

  it('is told from two requests in a row, which are both answered', async () => {
    const { statuses } = await send(
      writeNotification('T-FIRST', 'keep-alive') + writeNotification('T-SECOND'),
    )
    expect(statuses).toEqual([200, 200])
    expect([await isStored('T-FIRST'), await isStored('T-SECOND')]).toEqual([true, true])
  })
})

const isRefusal = (status: number) => status >= 400 && status < 500
const isRefused = ({ statuses }: RawAnswer) => statuses.length === 1 && statuses.every(isRefusal)

describe('a request head', () => {
  it.each([
    ['is endless', `GET /healthz HTTP/1.1\r\nHost: here\r\nX-Long: ${'a'.repeat(200_000)}`, 431],
    ['has thousands of lines', `GET /healthz HTTP/1.1\r\n${'X: a\r\n'.repeat(20_000)}`, 431],
    ['has an endless target', `GET /${'a'.repeat(200_000)}`, 431],
    ['is of HTTP/0.9', 'GET /healthz\r\n\r\n', 400],
    ['is of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['names no host', 'GET /healthz HTTP/1.1\r\n\r\n', 400],
    ['is a tunnel', 'CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: here\r\n\r\n', undefined],
    ['is TLS', '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n', 400],
  ])('that %s is refused and cut off', async (_, bytes, status) => {
    const { statuses } = await send(bytes)
    expect(statuses).toEqual(status ? [status] : [])
  })

  it('of HTTP/1.0 is answered, and the connection ends', async () => {
    const { statuses } = await send('GET /healthz HTTP/1.0\r\nHost: here\r\n\r\n')
    expect(statuses).toEqual([200])
  })

  it('that waits for 100 gets it, and any other expectation is refused', async () => {
    const body = JSON.stringify(signIpn({ svc_TransactionID: 'T-EXPECTED' }))
    const ask = (expected: string) =>
      send(
        `POST /ipn HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Type: application/json\r\nExpect: ${expected}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
    expect((await ask('100-continue')).statuses).toEqual([100, 200])
    expect((await ask('a-miracle')).statuses[0]).toBe(417)
  })
})

describe('a target that is written otherwise', () => {
  const TARGETS = [
    'http://evil.example/v1/transactions',
    '//v1/transactions',
    '/./v1/transactions',
    '/healthz/../v1/transactions',
    '/healthz/%2e%2e/v1/transactions',
    '/%76%31/transactions',
    '/v1%2ftransactions',
    '/v1/transactions;x=1',
    '/v1/transactions%00',
    '/V1/transactions',
    '/v1//transactions',
    '\\v1\\transactions',
    '/v1/transactions#/healthz',
    '*',
  ]

  it.each(TARGETS)('reads nothing without a key: %s', async (target) => {
    const answer = await send(`GET ${target} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n`)
    expect(answer.text).not.toContain('"data"')
    expect(isRefused(answer)).toBe(true)
  })

  it.each([
    '/%69pn',
    '/./ipn',
    '/x/../ipn',
    'http://evil.example/ipn',
    '/ipn?x=1',
    '//ipn',
    '/IPN',
  ])('accepts no forged notification: %s', async (target) => {
    const forged = { ...signIpn({ svc_TransactionID: 'T-FORGED' }), svc_SecureHash: 'f'.repeat(64) }
    const body = JSON.stringify(forged)
    const head = `Host: here\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
    const answer = await send(`POST ${target} HTTP/1.1\r\n${head}\r\n\r\n${body}`)
    expect(isRefused(answer)).toBe(true)
    expect(await isStored('T-FORGED')).toBe(false)
  })
})

describe('a web page elsewhere', () => {
  it.each(['cross-site', 'same-site'])(
    'cannot make the sandbox gateway do anything (%s)',
    async (site) => {
      const payments = [{ amount: '1', paymentMethod: 'QR', status: 'SUCCESS' }]
      const body = JSON.stringify({ transactionId: 'T-CROSS', payments })
      for (const type of ['text/plain', 'application/json', 'application/x-www-form-urlencoded']) {
        const response = await fetch(`${rig.sandbox.url}/sandbox/transactions`, {
          method: 'POST',
          headers: { 'content-type': type, 'sec-fetch-site': site, origin: 'https://evil.example' },
          body,
        })
        expect([type, response.status]).toEqual([type, 403])
      }
      expect(await isStored('T-CROSS')).toBe(false)
    },
  )
})
