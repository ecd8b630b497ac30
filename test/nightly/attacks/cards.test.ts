import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { CARDS, serveCards, startCards, writeDetail, writeList } from '../../support/cards.ts'
import { KEY } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

/** How a slash, a backslash and a dot can be written, also for servers that decode twice, or too much. */
const SLASHES = [
  ...'/ %2f %2F %252f %25252f \\ %5c %255c %c0%af %e0%80%af %f0%80%80%af %ef%bc%8f'.split(' '),
  ...'%e2%88%95 %u2215 ;/ /;x=y/ %00/ //'.split(' '),
]
const DOTS = '.. . %2e%2e %2E. .%2e %252e%252e %c0%ae%c0%ae %e2%80%a4%e2%80%a4 ..; ..%00 ...'.split(
  ' ',
)

const TARGETS = ['secret', 'v2/vc/virtual-cards/VC-2', 'api/v1/paygate/svcpay']

const SINGLE = [
  ...'%00 VC-1%00 VC-1%00.json VC-1%0d%0aX-Injected:%201 VC-1%0aGET%20/secret'.split(' '),
  ...'VC-1%3fadmin=true VC-1%23 VC-1;/../secret VC-1;jsessionid=1 %2e %2e%2e .. . %ff'.split(' '),
  ...'%ed%a0%80 % %zz http:%2f%2fevil.example%2f http://evil.example/ //evil.example/'.split(' '),
  ...'%40evil.example :80 * %20 VC%2D1 \u202e1-CV'.split(' '),
]

/** Ids that climb one to three steps, with or without an id before them. */
const CLIMBS = ['', 'VC-1'].flatMap((before) =>
  DOTS.flatMap((dots) =>
    SLASHES.map((slash, n) => {
      const steps = Array.from({ length: 1 + (n % 3) }, () => dots + slash).join('')
      return (before === '' ? '' : before + slash) + steps + TARGETS[n % TARGETS.length]
    }),
  ),
)

/** Sends a request target exactly as given: `fetch` would resolve the dots. */
function send(port: string, target: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const path = Buffer.from(target).toString('latin1')
    request({ port, path, headers: { authorization: `Bearer ${KEY}` } }, async (response) =>
      resolve({ status: response.statusCode ?? 0, body: await text(response) }),
    )
      .on('error', reject)
      .end()
  })
}

/** What leaves the place of cards in a path that the gateway was sent; undefined if nothing does. */
function findEscape(path: string): string | undefined {
  const { pathname, host } = new URL(path, 'http://gateway.example')
  if (host !== 'gateway.example') return 'another host'
  if (pathname === CARDS) return path === pathname ? undefined : 'a list with more'
  if (!pathname.startsWith(`${CARDS}/`) || !path.startsWith(`${CARDS}/`)) return 'another path'
  const id = decodeURIComponent(pathname.slice(CARDS.length + 1))
  if (/[/\\\p{Cc}]/u.test(id)) return 'a separator or a control character'
  return id === '.' || id === '..' ? 'a step' : undefined
}

it('no id of a card leads the gateway, or the token, to another path', async () => {
  const gateway = await serveCards((response, { path }) =>
    response.end(path === CARDS ? writeList([]) : writeDetail()),
  )
  const { service } = await startCards(database, gateway.url)
  const { port, host } = new URL(gateway.url)
  const own = new URL(service.url).port
  const targets = [
    ...[...SINGLE, ...CLIMBS].map((id) => `${CARDS}/${id}`),
    ...[`http://evil.example${CARDS}/VC-1`, `http://127.0.0.1:${port}/secret`, `//${host}/secret`],
    ...TARGETS.map((target) => `${CARDS}/../../../${target}`),
  ]
  const statuses = new Map<number, number>()
  for (const target of targets) {
    const { status } = await send(own, target).catch((error: Error) => {
      // Node's own client refuses to send some of them.
      expect(error.message).toMatch(/unescaped characters/)
      return { status: 0 }
    })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, n]) => `${n} × ${status}`)
  console.log(
    `${targets.length} ids of cards: ${counts.join(', ')}; ${gateway.reads.length} reached the gateway`,
  )
  expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([])
  expect(gateway.reads.length).toBeGreaterThan(10)
  const escapes = gateway.reads.flatMap(({ path }) => {
    const way = findEscape(path)
    return way ? [`${way}: ${path}`] : []
  })
  expect(escapes).toEqual([])
  expect(new Set(gateway.reads.map(({ headers }) => headers.host))).toEqual(new Set([host]))
  expect(gateway.reads.filter(({ headers }) => 'x-injected' in headers)).toEqual([])
})
