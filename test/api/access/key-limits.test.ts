import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import {
  createKeyLimits,
  DEFAULT_AT_ONCE,
  DEFAULT_RATE_PER_MINUTE,
} from '../../../src/access/key-use.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { addKey } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { ROUTES, sendRow } from '../routes.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

async function addLimitedKey(perMinute: number | null): Promise<string> {
  const key = randomUUID()
  await addKey(rig.database, key, ['payments:read'])
  await rig.database.sql`
    update actors set rate_per_minute = ${perMinute} where hash = sha256(${key}::bytea)`
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
      update actors k set replaces = o.id, chain_id = o.chain_id from actors o
      where o.hash = sha256(${old}::bytea) and k.hash = sha256(${key}::bytea)`
    expect((await ask(old)).status).toBe(200)
    await expectProblem(await ask(key), 429, 'rate_limited')
  })
})

it('a key without a rate of its own has the default one', async () => {
  const { status, headers } = await ask(await addLimitedKey(null))
  expect(status).toBe(200)
  expect(headers.get('ratelimit-policy')).toBe(`"key";q=${DEFAULT_RATE_PER_MINUTE};w=60`)
})

it('only a request that is held open counts among those that wait', async () => {
  const admissions = vi.spyOn(rig.service.ctx.access.limits, 'admit')
  const key = randomUUID()
  await addKey(rig.database, key, ['cards:read'])
  const listWaiting = async (query: string) => {
    const waiting: string[] = []
    for (const [route, row] of Object.entries(ROUTES)) {
      admissions.mockClear()
      const path = route.replace(/^\w+ /, '').replace(/:\w+/g, 'X') + query
      await sendRow(rig, `Bearer ${key}`, route, row, path)
      expect(admissions).toHaveBeenCalledTimes(1)
      if (admissions.mock.lastCall?.[1]) waiting.push(route.replace('GET ', ''))
    }
    return waiting.sort()
  }
  const held = ['/v1/events', '/v1/refunds/:refundId', '/v1/transactions/:transactionId']
  expect(await listWaiting('?wait=1')).toEqual([...held, '/v1/events/stream'].sort())
  expect(await listWaiting('?wait=0')).toEqual(['/v1/events/stream'])
})

const admit = (limits = createKeyLimits(), key = { chainId: 'K', ratePerMinute: 600 }) =>
  limits.admit(key, false)

it('each process has the whole rate: a minute of requests at once, and not one more', () => {
  const processes = [createKeyLimits(), createKeyLimits()]
  for (const limits of processes) {
    const kinds = Array.from({ length: 610 }, () => {
      const admission = admit(limits)
      if (!admission.refusal) admission.leave()
      return admission.refusal?.message
    })
    expect(kinds.filter((kind) => kind === undefined).length).toBeGreaterThanOrEqual(600)
    expect(kinds.at(-1)).toBe('This key allows 600 requests per minute')
  }
})

it('a key has a bounded number of requests at once, waiting ones apart, and one too many takes nothing of its rate', () => {
  const limits = createKeyLimits()
  const key = { chainId: 'K', ratePerMinute: null }
  const enter = (times: number, isWaiting = false, of = { ...key }) => {
    const all = Array.from({ length: times }, () => limits.admit(of, isWaiting))
    return all.flatMap((one) => (one.refusal ? [] : [one.leave]))
  }
  const first = enter(DEFAULT_AT_ONCE)
  const [refused, another] = [limits.admit(key, false), limits.admit(key, false)]
  const atOnce = (most: number) => `This key allows ${most} requests at once`
  expect(refused.refusal?.message).toBe(atOnce(DEFAULT_AT_ONCE))
  const readLeft = ({ headers }: typeof refused) =>
    Number(/r=(\d+)/.exec(headers.ratelimit ?? '')?.[1])
  expect(readLeft(another)).toBeGreaterThanOrEqual(readLeft(refused))
  expect(enter(50, true)).toHaveLength(50)
  first.pop()?.()
  expect(enter(2)).toHaveLength(1)
  expect(enter(1, false, { ...key, chainId: 'other' })).toHaveLength(1)
  const wide = { chainId: 'wide', ratePerMinute: 60_000 }
  const many = Array.from({ length: 1_001 }, () => limits.admit(wide, false).refusal?.message)
  expect(many.indexOf(atOnce(1_000))).toBe(1_000)
})
