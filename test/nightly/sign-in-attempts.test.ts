import { expect, it } from 'vitest'
import { MAX_FAILED_OF_NETWORK } from '../../src/access/sign-in-limits.ts'
import { addTestPerson, makeLink } from '../support/console.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web', TRUSTED_PROXIES: '127.0.0.1' } })

/** Presses the button of a sign-in link, from an address as a trusted proxy passes it on. */
const press = (path: string, address: string) =>
  fetch(rig.service.url + path, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': address },
  })

async function invite() {
  const { personId } = await addTestPerson(rig.database)
  return `/console/sign-in/${await makeLink(rig.database, personId)}`
}

it('10,000 attempts from one address open nothing, and almost all are refused unread', async () => {
  const address = '203.0.113.250'
  const statuses = new Map<number, number>()
  const attempt = async (n: number) => {
    const guess = `/console/sign-in/${String(n).padStart(43, 'A')}`
    const response = await press(guess, address)
    await response.arrayBuffer()
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
    expect(response.headers.get('set-cookie')).toBeNull()
    if (response.status === 429) expect(response.headers.get('retry-after')).toBe('60')
  }
  const next = Array.from({ length: 10_000 }, (_, n) => n)
  const startedAt = Date.now()
  const work = async () => {
    for (let n = next.pop(); n !== undefined; n = next.pop()) await attempt(n)
  }
  await Promise.all(Array.from({ length: 20 }, work))
  const minutes = 2 + Math.floor((Date.now() - startedAt) / 60_000)
  expect([...statuses.keys()].toSorted()).toEqual([403, 429])
  expect(statuses.get(403)).toBeLessThanOrEqual(MAX_FAILED_OF_NETWORK * minutes)
  // As many in the next minute, which may begin now.
  await rig.database.sql`
    insert into sign_in_attempts (subject, minute, attempts)
    values (${`network ${address}`}, date_trunc('minute', now()) + interval '1 minute', ${MAX_FAILED_OF_NETWORK})
    on conflict do nothing`
  const path = await invite()
  expect((await press(path, address)).status).toBe(429)
  expect((await press(path, '203.0.113.1')).status).toBe(303)
  const rows = await rig.database
    .sql`select from sign_in_attempts where subject = ${`network ${address}`}`
  expect(rows.length).toBeLessThanOrEqual(minutes + 1)
}, 120_000)
