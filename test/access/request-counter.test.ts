import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createRequestCounter } from '../../src/access/request-counter.ts'
import { expectProblem, withKey } from '../support/api.ts'
import { addKey } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

async function addLimitedKey(perMinute: number | null): Promise<string> {
  const key = randomUUID()
  await addKey(rig.database, key, ['payments:read'])
  await rig.database.sql`
    update api_keys set rate_per_minute = ${perMinute} where hash = sha256(${key}::bytea)`
  return key
}
const ask = (key: string, path = '/v1/payments') => fetch(rig.service.url + path, withKey(key))

describe('a key with a limit', () => {
  it('gets its policy and remaining quota with every response, refusals included', async () => {
    const key = await addLimitedKey(3)
    for (const [path, status, left] of [
      ['/v1/payments', 200, 2],
      ['/v1/payments/P-none', 404, 1],
      ['/v1/refunds', 403, 0],
    ] as const) {
      const { status: got, headers } = await ask(key, path)
      expect(got).toBe(status)
      expect(headers.get('ratelimit-policy')).toBe('"key";q=3;w=60')
      expect(headers.get('ratelimit')).toMatch(
        new RegExp(`^"key";r=${left};t=([1-9]|[1-5]\\d|60)$`),
      )
      expect(headers.get('retry-after')).toBeNull()
    }
  })

  it('is refused above it with 429 and Retry-After on every path, and other keys are not', async () => {
    const key = await addLimitedKey(1)
    expect((await ask(key)).status).toBe(200)
    for (const path of ['/v1/payments', '/v1/transactions/T-1', '/v2/vc/virtual-cards/VC-1']) {
      const response = await ask(key, path)
      const { headers } = response
      await expectProblem(response, 429, 'rate_limited')
      expect(headers.get('ratelimit')).toMatch(/^"key";r=0;t=\d+$/)
      expect(headers.get('retry-after')).toBe(headers.get('ratelimit')?.split('t=')[1])
    }
    expect((await ask(await addLimitedKey(1))).status).toBe(200)
  })

  it('is counted together with the one it replaced', async () => {
    const [old, key] = [await addLimitedKey(1), await addLimitedKey(1)]
    const { sql } = rig.database
    await sql`
      update api_keys k set replaces = o.id, chain_id = o.id from api_keys o
      where o.hash = sha256(${old}::bytea) and k.hash = sha256(${key}::bytea)`
    expect((await ask(old)).status).toBe(200)
    await expectProblem(await ask(key), 429, 'rate_limited')
  })
})

it('a key without a limit gets no rate limit headers', async () => {
  const { status, headers } = await ask(await addLimitedKey(null))
  expect(status).toBe(200)
  expect([headers.get('ratelimit'), headers.get('ratelimit-policy')]).toEqual([null, null])
})

it('a new minute begins with the first request after the previous one', () => {
  let at = 1_000
  const counter = createRequestCounter(() => at)
  const count = () => counter.count('K', 2)
  expect(count()).toEqual({ allowed: true, left: 1, resetS: 60 })
  at += 59_999
  expect(count()).toEqual({ allowed: true, left: 0, resetS: 1 })
  expect(count()).toEqual({ allowed: false, left: 0, resetS: 1 })
  expect(counter.count('other', 2).allowed).toBe(true)
  at += 1
  expect(count()).toEqual({ allowed: true, left: 1, resetS: 60 })
})

it('a minute that begins between two milliseconds also has 60 seconds', () => {
  // Adding 60,000 to this number and subtracting it again gives 60,000.00000000001.
  const counter = createRequestCounter(() => 57_470.1875625232)
  expect(counter.count('K', 2).resetS).toBe(60)
})
