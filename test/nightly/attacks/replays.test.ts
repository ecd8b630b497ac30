import { expect, it } from 'vitest'
import { PUBLISHED_PAYMENTS } from '../../support/published.ts'
import { sign } from '../../support/recut.ts'
import { postIpn } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const REPLAYS = 1_200
const AT_ONCE = 50
/** Of all tables of the database: beside the rows, pages that are filled with versions of them before they are reused. */
const MAX_GROWTH_BYTES = 2 * 1024 * 1024

const rig = useRig({ settings: { ROLE: 'web' } })

/** One captured message, with other unsigned members each time, as many bytes as are read. */
function replay(n: number): string {
  const { 'a payment': payment = {} } = PUBLISHED_PAYMENTS
  const noise = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [`x${n}_${i}`, `${n}`.padEnd(700, 'x')]),
  )
  const unsigned = { svc_ExtData: `${n}`.padEnd(30_000, 'e'), svc_TransAmount: n }
  return JSON.stringify({ ...sign(payment), ...unsigned, ...noise })
}

const readSize = async () => {
  const [row] = await rig.database.sql<{ bytes: number }[]>`
    select sum(pg_total_relation_size(oid))::float8 as bytes from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace`
  return row?.bytes ?? 0
}

it(`${REPLAYS} replays of a captured message with other unsigned members are one row, and take no space`, async () => {
  const before = await readSize()
  let sent = 0
  const statuses: Record<number, number> = {}
  const work = async () => {
    while (sent < REPLAYS) {
      sent += 1
      const { status } = await postIpn(rig.service.url, replay(sent))
      statuses[status] = (statuses[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  const rows = await rig.database.sql<{ deliveries: number; bytes: number }[]>`
    select deliveries, octet_length(body) as bytes from ipn_events`
  const growth = (await readSize()) - before
  console.info(
    `${JSON.stringify(statuses)}: ${rows.length} row, its body ${rows[0]?.bytes} bytes; all tables grew by ${Math.round(growth / 1024)} KiB`,
  )
  expect(rows).toHaveLength(1)
  expect(rows[0]?.deliveries).toBe(statuses[200])
  expect(rows[0]?.bytes).toBeLessThanOrEqual(8 * 1024)
  expect(growth).toBeLessThan(MAX_GROWTH_BYTES)
}, 60_000)
