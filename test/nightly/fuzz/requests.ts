import fc from 'fast-check'
import { KEY } from '../../support/service.ts'
import { mutateOneOf, ODD, UNFIT } from './mutate.ts'
import { type Sent, writeHeader } from './send.ts'

/** What is there to be found, by the parameter's name in a route. */
export type Known = Readonly<Record<string, string>>

const BODIES = [
  '{}',
  '{"amount":"1"}',
  '{"amount":0.5,"reason":"returned goods"}',
  '{"amount":"2","receiver":{"accountName":"NGUYEN VAN A","accountNumber":"123456789","swiftCode":"ASCBVNVX"}}',
  '{"outcome":"failed","reason":"a test"}',
  '{"merchantCode":"UFLIYL"}',
]

const QUERY: Record<string, readonly string[]> = {
  merchantCode: ['UFLIYL', 'OTHER1'],
  wait: ['0', '00', '61'],
  include: ['proof'],
  dryRun: ['true', 'false'],
  limit: ['1', '200', '0', '201'],
  cursor: [
    ['2026-11-20 09:33:03.254+00', 'T-1', 'UFLIYL'],
    ['2026-02-31 09:33:03+00', '1', ''],
    ['2026-11-20 09:33:03+00', '1cf2bd0e-3a0e-4d5b-8a53-6f3f6c1f0a11', '\0'],
    ['2026-11-20 09:33:03+00', '\ud800', 'UFLIYL'],
    ['2026-11-20 09:33:03+00', '999999999999999999', 'UFLIYL'],
    [null, {}],
  ].map((one) => Buffer.from(JSON.stringify(one)).toString('base64url')),
  state: ['paid', 'pending'],
  status: ['SUCCESS', 'accepted', 'ACTIVED'],
  kind: ['ipn_missing', 'unexplained_growth'],
  orderId: ['ORDER-1'],
  paymentId: ['P-1'],
  paymentMethod: ['CC'],
  from: ['2026-11-20T00:00:00Z', '0000-01-01T00:00:00Z', '2026-11-20T00:00:00.1234567890Z'],
  to: ['2026-11-20T00:00:00+23:59', '9999-12-31T23:59:60Z'],
  dateFr: ['2026-11-20', '2026-02-29'],
  dateTo: ['2026-11-21'],
  pageIndex: ['1', '999999999'],
  pageSize: ['100'],
  requestId: ['REQ-1'],
  cardBrand: ['visa'],
}

const odd = fc.oneof(
  fc.constantFrom(...UNFIT),
  fc.constantFrom(...ODD.filter((text) => text.length < 1_000)),
  fc.string({ unit: 'binary', maxLength: 140 }),
)

/** Now and then as it is, with escapes of its own. */
const escaped = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(text, fc.nat(3))
    .map(([one, way]) => (way > 0 ? percent(one) : one.replace(/[#\s]/g, '')))

const percent = (text: string) => encodeURIComponent(text.toWellFormed())

/** What is there; a neighbour of it by some bytes; anything. */
function near(known: string): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 5, arbitrary: fc.constant(known) },
    escaped(mutateOneOf([known], 1).map((bytes) => bytes.subarray(0, 400).toString('latin1'))),
    escaped(odd),
  )
}

const parameter = fc
  .constantFrom(...Object.entries(QUERY).flatMap(([name, all]) => all.map((one) => [name, one])))
  .chain(([name = '', one = '']) => near(one).map((value) => ({ name, value })))

/** The one parameter whose value is more than a word. */
const cursor = fc
  .constantFrom(...(QUERY.cursor ?? []))
  .chain((one) => near(one).map((value) => ({ name: 'cursor', value })))

const anyName = fc.record({ name: escaped(odd), value: escaped(odd) })

/** No reader is kept waiting: what a wait does has tests of its own. */
const query = fc
  .array(fc.oneof({ weight: 5, arbitrary: parameter }, { weight: 2, arbitrary: cursor }, anyName), {
    maxLength: 3,
  })
  .map((list) => list.filter(({ name, value }) => !/^wait/.test(name) || !/[1-9]/.test(value)))
  .map((list) => list.map(({ name, value }) => `${name}=${value}`).join('&'))

const value = (...usual: string[]) =>
  fc.oneof(
    fc.constantFrom(...usual),
    fc.string({ unit: 'binary', maxLength: 300 }).map(writeHeader),
  )

const headers = fc
  .record(
    {
      'content-type': fc.oneof(
        { weight: 8, arbitrary: fc.constant('application/json') },
        value('text/plain', 'application/problem+json; charset=latin1'),
      ),
      'idempotency-key': value('K-1', '"K-2"', '"K\\"3"', 'x'.repeat(256)),
      'if-none-match': value('*', 'W/"1", "2"', '"'),
      'accept-language': value('vi', 'en-GB;q=0.1, vi;q=0', ';q=,,'),
      'x-request-id': value('mine-1'),
      'x-forwarded-for': value('192.0.2.1, 10.0.0.1'),
    },
    { requiredKeys: ['content-type'] },
  )
  .chain((rest) =>
    fc
      .oneof(
        { weight: 20, arbitrary: fc.constant(`Bearer ${KEY}`) },
        value('Bearer ', `Basic ${KEY}`, `bearer  ${KEY}`, `Bearer ${KEY}x`),
      )
      .map((authorization): Record<string, string> => ({ ...rest, authorization })),
  )

const body = fc.oneof(
  { weight: 6, arbitrary: mutateOneOf(BODIES) },
  fc.json().map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
)

/** A request of one of the routes (`GET /v1/…/:id`), with any part of it gone wrong. */
export function makeRequest(routes: readonly string[], known: Known): fc.Arbitrary<Sent> {
  return fc.constantFrom(...routes).chain((route) => {
    const [method = '', pattern = ''] = route.split(' ')
    const parts = pattern.split('/').map((part) => {
      const id = known[part.slice(1)]
      if (part.startsWith(':')) return near(id ?? 'X-1')
      return fc.oneof({ weight: 60, arbitrary: fc.constant(part) }, escaped(odd))
    })
    return fc
      .record({
        method: fc.oneof(
          { weight: 30, arbitrary: fc.constant(method) },
          fc.constantFrom('HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'POST', 'GET'),
        ),
        path: fc.tuple(...parts).map((list) => `/${list.join('/').replace(/^\/+/, '')}`),
        query,
        headers,
        body:
          method === 'POST' ? fc.option(body, { nil: undefined, freq: 8 }) : fc.constant(undefined),
      })
      .map(({ query, ...sent }) => ({
        ...sent,
        path: query === '' ? sent.path : `${sent.path}?${query}`,
      }))
  })
}

const write = ({ method, path, headers, body = Buffer.alloc(0) }: Sent) =>
  [
    `${method} ${path} HTTP/1.1`,
    'host: shop.example',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${body.length}`,
    '',
    body.toString(),
  ].join('\r\n')

/** Whole requests as they were recorded, byte by byte: what is no HTTP is for the parser to refuse. */
export function makeBytes(notified: string): fc.Arbitrary<Buffer> {
  const json = { 'content-type': 'application/json' }
  const keyed = { ...json, authorization: `Bearer ${KEY}`, 'idempotency-key': 'RAW-1' }
  const form = { 'content-type': 'application/x-www-form-urlencoded', expect: '100-continue' }
  const get = (path: string) => write({ method: 'GET', path, headers: keyed, body: undefined })
  const post = (path: string, headers: Record<string, string>, body: string) =>
    write({ method: 'POST', path, headers, body: Buffer.from(body) })
  const chunked = post('/ipn', { ...json, 'transfer-encoding': 'chunked' }, '2\r\n{}\r\n0\r\n\r\n')
  return mutateOneOf(
    [
      post('/ipn', json, notified),
      post('/ipn', form, 'svc_TransactionID=T-1'),
      chunked.replace(/content-length: \d+\r\n/, ''),
      get('/v1/transactions/T-1?merchantCode=UFLIYL'),
      get('/v1/payments?limit=2'),
      get('http://shop.example/v1/refunds'),
      post('/v1/payments/P-1/refunds', keyed, '{"amount":"1"}'),
      post('/v1/transactions/T-1/sync', keyed, ''),
    ],
    1,
  )
}
