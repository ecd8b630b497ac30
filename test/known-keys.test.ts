import { afterAll, beforeAll, expect, it } from 'vitest'
import { BELIEVED_MS, createKnownKeys } from '../src/access/known-keys.ts'
import { createTestDatabase } from './support/database.ts'
import { addKey } from './support/service.ts'

const TEXT = 'key-that-is-known-0123456789'

let database: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

async function revoke(text: string): Promise<void> {
  await database.sql`
    update api_keys set revoked_at = now() where hash = sha256(${text}::bytea)`
}

it('a key that ended is believed for a second at most, by reads only, and never again once it was missed', async () => {
  let time = 0
  const keys = createKnownKeys(database.sql, () => time)
  await addKey(database, TEXT, ['payments:read'])
  expect(await keys.find(TEXT, 'lately')).toMatchObject({ scopes: ['payments:read'] })
  await revoke(TEXT)
  time = BELIEVED_MS - 1
  expect(await keys.find(TEXT, 'lately')).toBeDefined()
  time = BELIEVED_MS
  expect(await keys.find(TEXT, 'lately')).toBeUndefined()
})

it('what a write has learnt counts for the reads behind it', async () => {
  const keys = createKnownKeys(database.sql, () => 0)
  const text = `${TEXT}-written`
  await addKey(database, text, ['payments:read'])
  expect(await keys.find(text, 'lately')).toBeDefined()
  await revoke(text)
  expect(await keys.find(text, 'now')).toBeUndefined()
  expect(await keys.find(text, 'lately')).toBeUndefined()
})

it('a key that is not there is looked for each time', async () => {
  const keys = createKnownKeys(database.sql, () => 0)
  const text = `${TEXT}-made-later`
  expect(await keys.find(text, 'lately')).toBeUndefined()
  await addKey(database, text, ['ops'])
  expect(await keys.find(text, 'lately')).toMatchObject({ scopes: ['ops'] })
})

it('a thousand others push out the one that was asked for the longest ago', async () => {
  const keys = createKnownKeys(database.sql, () => 0)
  const text = `${TEXT}-pushed-out`
  await addKey(database, text, ['ops'])
  await database.sql`
    insert into api_keys (name, hash, scopes, merchant_code)
    select 'other', sha256(('other-' || n)::bytea), '{ops}', '*' from generate_series(1, 1000) as n`
  expect(await keys.find(text, 'lately')).toBeDefined()
  await revoke(text)
  await Promise.all(Array.from({ length: 999 }, (_, n) => keys.find(`other-${n + 1}`, 'lately')))
  expect(await keys.find(text, 'lately')).toBeDefined()
  await keys.find('other-1000', 'lately')
  expect(await keys.find(text, 'lately')).toBeUndefined()
})
