import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  createKeyLimits,
  DEFAULT_AT_ONCE,
  DEFAULT_RATE_PER_MINUTE,
  type KeyLimits,
} from '../../../src/access/key-limits.ts'
import { createRequestCounter } from '../../../src/access/request-counter.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { addKey } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

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
  beforeEach(() => startOfMinute())

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

it('a key without a rate of its own has the default one', async () => {
  const { status, headers } = await ask(await addLimitedKey(null))
  expect(status).toBe(200)
  expect(headers.get('ratelimit-policy')).toBe(`"key";q=${DEFAULT_RATE_PER_MINUTE};w=60`)
})

it('a rate counts over all processes, and a busy key needs few statements', async () => {
  const key = await addLimitedKey(41)
  const [row] = await rig.database.sql<{ id: string }[]>`
    select id from api_keys where hash = sha256(${key}::bytea)`
  const limited = { chainId: row?.id ?? '', ratePerMinute: 41 }
  let statements = 0
  const sql = new Proxy(rig.database.sql, {
    apply(target, self, args) {
      statements += 1
      return Reflect.apply(target, self, args)
    },
  })
  const processes = [createKeyLimits(sql), createKeyLimits(sql)]
  const kinds: string[] = []
  const count = async () => {
    for (let n = 0; n < 60; n += 1) {
      const admission = await processes[n % 2]?.admit(limited, false)
      if (admission?.kind === 'admitted') admission.leave()
      kinds.push(admission?.kind ?? '')
    }
  }
  // Not across the end of a minute.
  await startOfMinute()
  await count()
  expect(kinds.filter((kind) => kind === 'admitted')).toHaveLength(41)
  expect(kinds.filter((kind) => kind === 'too_many')).toHaveLength(19)
  expect(statements).toBeLessThanOrEqual(35)
})

it('however many processes serve a key, each gets a part of its rate', async () => {
  const key = { chainId: randomUUID(), ratePerMinute: 600 }
  await startOfMinute()
  const kinds: string[] = []
  for (let n = 0; n < 40; n += 1) {
    kinds.push((await createKeyLimits(rig.database.sql).admit(key, false)).kind)
  }
  expect(new Set(kinds)).toEqual(new Set(['admitted']))
})

it('a key has a bounded number of requests at once, waiting ones apart, and processes share it', async () => {
  const key = { chainId: randomUUID(), ratePerMinute: null }
  const [one, two] = [createKeyLimits(rig.database.sql), createKeyLimits(rig.database.sql)]
  await startOfMinute()
  const enter = async (limits: KeyLimits, times: number, isWaiting = false) => {
    const all = await Promise.all(Array.from({ length: times }, () => limits.admit(key, isWaiting)))
    return all.flatMap((one) => (one.kind === 'admitted' ? [one.leave] : []))
  }
  const first = await enter(one, DEFAULT_AT_ONCE + 20)
  expect(first).toHaveLength(DEFAULT_AT_ONCE)
  expect(one.admitNow(key)?.kind).toBe('too_many_at_once')
  expect(await enter(one, 50, true)).toHaveLength(50)
  first.pop()?.()
  const again = one.admitNow(key)
  expect(again?.kind).toBe('admitted')
  expect(await enter(two, DEFAULT_AT_ONCE)).toHaveLength(DEFAULT_AT_ONCE / 2)
  const wide = { ...key, chainId: randomUUID(), ratePerMinute: 60_000 }
  const many = Array.from({ length: 500 }, () => one.admit(wide, false))
  expect((await Promise.all(many)).every(({ kind }) => kind === 'admitted')).toBe(true)
})

const LEASE = { granted: 2, unreserved: 0, processes: 1, endsInMs: 30_000 }

it('a new minute begins when that of the database ends', async () => {
  let at = 1_000
  const counter = createRequestCounter(
    () => Promise.resolve(LEASE),
    () => at,
  )
  const count = () => counter.count('K', 2)
  expect(counter.countNow('K', 2)).toBeUndefined()
  expect(await count()).toEqual({ allowed: true, left: 1, resetS: 30 })
  at += 29_999
  expect(await count()).toEqual({ allowed: true, left: 0, resetS: 1 })
  expect(await count()).toEqual({ allowed: false, left: 0, resetS: 1 })
  expect((await counter.count('other', 2)).allowed).toBe(true)
  at += 1
  expect(counter.countNow('K', 2)).toBeUndefined()
  expect(await count()).toEqual({ allowed: true, left: 1, resetS: 30 })
})

it('while nothing can be reserved requests are let in, a second at a time', async () => {
  let at = 1_000
  const counter = createRequestCounter(
    () => Promise.reject(new Error('the database is away')),
    () => at,
  )
  for (let n = 0; n < 5; n += 1) expect((await counter.count('K', 100)).allowed).toBe(true)
  expect(await counter.count('K', 100)).toEqual({ allowed: false, left: 0, resetS: 1 })
  at += 1_000
  expect((await counter.count('K', 100)).allowed).toBe(true)
})

/** Waits until the database's minute lasts for long enough. */
async function startOfMinute(): Promise<void> {
  await waitUntil(
    async () => {
      const [row] = await rig.database.sql<{ s: number }[]>`
        select extract(second from now())::float8 as s`
      return (row?.s ?? 60) < 50
    },
    { what: 'the next minute', everyMs: 200 },
  )
}
