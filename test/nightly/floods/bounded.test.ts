import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { FAILURES_OF_NETWORK } from '../../../src/access/sessions.ts'
import { ask, seedPaid } from '../../support/ask.ts'
import { addTestPerson, makeLink } from '../../support/console.ts'
import { PUBLISHED_PAYMENTS } from '../../support/published.ts'
import { sign } from '../../support/recut.ts'
import { addKey, postIpn } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const WRITER = 'key-that-writes-refunds-only-0123456789-01'
const Refusal = z.object({ code: z.string() })

const rig = useRig({ settings: { ROLE: 'web', TRUSTED_PROXIES: '127.0.0.1' } })
beforeAll(() => addKey(rig.database, WRITER, ['refunds:write']))

/** Plays so many requests, so many at once. @returns how many had which result */
async function flood(
  { times, atOnce }: { times: number; atOnce: number },
  send: (n: number) => Promise<string | number>,
): Promise<Record<string, number>> {
  const results: Record<string, number> = {}
  let sent = 0
  const sendOn = async () => {
    while (sent < times) {
      sent += 1
      const result = await send(sent)
      results[result] = (results[result] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: atOnce }, sendOn))
  return results
}

it.each([
  ['0.0001', null, 'invalid_request', 0],
  ['0.01', 'USD', 'too_many_open_refunds', 100],
])(
  '2,000 refunds of %s of one payment in %s: %s, but for %s that are stored',
  async (amount, currency, refusal, stored) => {
    const { id, transactionId } = await seedPaid(rig.database)
    await rig.database.sql`
      update transactions set currency = ${currency} where transaction_id = ${transactionId}`
    const results = await flood({ times: 2_000, atOnce: 50 }, async () => {
      const answer = await ask({ url: rig.service.url, key: WRITER }, id, { amount })
      return answer.status === 202 ? 'stored' : Refusal.parse(await answer.json()).code
    })
    expect(results).toEqual({ [refusal]: 2_000 - stored, ...(stored === 0 ? {} : { stored }) })
    const rows = await rig.database.sql`select from refunds where payment_id = ${id}`
    expect(rows).toHaveLength(stored)
  },
  120_000,
)

const readSize = async () => {
  const [row] = await rig.database.sql<{ bytes: number }[]>`
    select sum(pg_total_relation_size(oid))::float8 as bytes from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace`
  return row?.bytes ?? 0
}

/** Of all tables: beside the rows, pages that are filled with versions of them before they are reused. */
const MAX_GROWTH_BYTES = 2 * 1024 * 1024

it('1,200 replays of a captured message with other unsigned members are one row, and take no space', async () => {
  const { 'a payment': payment = {} } = PUBLISHED_PAYMENTS
  const before = await readSize()
  const statuses = await flood({ times: 1_200, atOnce: 50 }, async (n) => {
    const noise = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [`x${n}_${i}`, `${n}`.padEnd(700, 'x')]),
    )
    // As many bytes as are read.
    const unsigned = { svc_ExtData: `${n}`.padEnd(30_000, 'e'), svc_TransAmount: n }
    const body = JSON.stringify({ ...sign(payment), ...unsigned, ...noise })
    return (await postIpn(rig.service.url, body)).status
  })
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

/** Presses the button of a sign-in link, from an address as a trusted proxy passes it on. */
const press = (path: string, address: string) =>
  fetch(rig.service.url + path, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': address },
  })

it('10,000 sign-ins from one address open nothing, almost all are 429, and a link that is valid still works', async () => {
  const address = '203.0.113.250'
  const startedAt = Date.now()
  const statuses = await flood({ times: 10_000, atOnce: 20 }, async (n) => {
    const response = await press(`/console/sign-in/${String(n).padStart(43, 'A')}`, address)
    await response.arrayBuffer()
    expect(response.headers.get('set-cookie')).toBeNull()
    if (response.status === 429) expect(response.headers.get('retry-after')).toMatch(/^[1-6]$/)
    return response.status
  })
  const minutes = 2 + Math.floor((Date.now() - startedAt) / 60_000)
  expect(Object.keys(statuses).toSorted()).toEqual(['303', '429'])
  expect(statuses[303]).toBeLessThanOrEqual(FAILURES_OF_NETWORK.perMinute * minutes)
  const { personId } = await addTestPerson(rig.database)
  const path = `/console/sign-in/${await makeLink(rig.database, personId)}`
  expect((await press(path, address)).headers.get('set-cookie')).toContain('session=')
}, 120_000)
