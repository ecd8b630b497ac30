import { expect, it } from 'vitest'
import { CACHE_TTL_MS, createKeyCache } from '../../../src/access/keys.ts'
import { addKey } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const TEXT = 'key-that-is-known-0123456789'

const database = useTestDatabase()

async function revoke(text: string): Promise<void> {
  await database.sql`
    update actors set ended_at = now() where hash = sha256(${text}::bytea)`
}

it('a revoked key stays cached for a second at most, for reads only, and is evicted once the database lacks it', async () => {
  let time = 0
  const keys = createKeyCache(database.sql, () => time)
  await addKey(database, TEXT, ['payments:read'])
  expect(await keys.find(TEXT, 'cached')).toMatchObject({ scopes: ['payments:read'] })
  await revoke(TEXT)
  time = CACHE_TTL_MS - 1
  expect(await keys.find(TEXT, 'cached')).toBeDefined()
  expect(keys.peek(TEXT)).toMatchObject({ scopes: ['payments:read'] })
  time = CACHE_TTL_MS
  expect(keys.peek(TEXT)).toBeUndefined()
  expect(await keys.find(TEXT, 'cached')).toBeUndefined()
})

it("the result of a write's lookup replaces the cached one for later reads", async () => {
  const keys = createKeyCache(database.sql, () => 0)
  const text = `${TEXT}-written`
  await addKey(database, text, ['payments:read'])
  expect(await keys.find(text, 'cached')).toBeDefined()
  await revoke(text)
  expect(await keys.find(text, 'current')).toBeUndefined()
  expect(await keys.find(text, 'cached')).toBeUndefined()
})

it('an unknown key is looked up each time', async () => {
  const keys = createKeyCache(database.sql, () => 0)
  const text = `${TEXT}-made-later`
  expect(await keys.find(text, 'cached')).toBeUndefined()
  await addKey(database, text, ['ops'])
  expect(await keys.find(text, 'cached')).toMatchObject({ scopes: ['ops'] })
})

it('the cache keeps a thousand keys and evicts the one fetched the longest ago', async () => {
  const keys = createKeyCache(database.sql, () => 0)
  const text = `${TEXT}-pushed-out`
  await addKey(database, text, ['ops'])
  await database.sql`
    insert into actors (id, kind, name, folded_name, chain_id, hash, scopes, merchants)
    select gen_random_uuid(), 'key', 'other', 'other', gen_random_uuid(), sha256(('other-' || n)::bytea), '{ops}', '{*}' from generate_series(1, 1000) as n`
  expect(await keys.find(text, 'cached')).toBeDefined()
  await revoke(text)
  await Promise.all(Array.from({ length: 999 }, (_, n) => keys.find(`other-${n + 1}`, 'cached')))
  expect(await keys.find(text, 'cached')).toBeDefined()
  await keys.find('other-1000', 'cached')
  expect(await keys.find(text, 'cached')).toBeUndefined()
})
