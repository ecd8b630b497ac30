import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createKey } from '../../../src/access/change-keys.ts'
import { replaceDemoKey } from '../../../src/access/first-key.ts'
import { hashKey, listKeys, type Scope, UNLIMITED } from '../../../src/access/keys.ts'
import { addPerson, endPerson, findPeople, listPeople } from '../../../src/access/people.ts'
import { coversSql, lockLiveKey } from '../../../src/access/principal.ts'
import { findSession } from '../../../src/access/sessions.ts'
import { listScopes, ROLES, type Role, SCOPES_OF_ROLES } from '../../../src/access/types.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { addTestPerson, addVisitor, makeLink } from '../../support/console.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

const add = (name: string, email: string | null = null) =>
  runInTransaction(database.sql, (tx) =>
    addPerson(tx, { name, email, roles: ['viewer'], merchants: ['*'] }),
  )
const end = (id: string) => runInTransaction(database.sql, (tx) => endPerson(tx, id))

/** The key of a person, as it is stored. */
async function readKey(personId: string) {
  const [key] = await database.sql<
    { id: string; scopes: string[]; merchantCode: string; principal: string; isLive: boolean }[]
  >`
    select k.id, scopes, merchant_code as "merchantCode", revoked_at is null as "isLive",
      'person:' || lower(k.person) as principal
    from api_keys as k join people as p on p.key_id = k.id where p.id = ${personId}`
  if (!key) throw new Error('the person has no key')
  return key
}

it('roles add up to scopes, and only an admin has all of them', () => {
  expect(listScopes(['viewer'])).toEqual(['payments:read', 'refunds:read'])
  expect(listScopes(['agent', 'approver'])).toEqual([
    ...['payments:read', 'refunds:read', 'refunds:write', 'refunds:approve'],
  ])
  expect(listScopes(['operator'])).not.toContain('refunds:write')
  expect(listScopes(['someday'])).toEqual([])
  const all = new Set(ROLES.flatMap((role) => SCOPES_OF_ROLES[role]))
  expect(new Set(SCOPES_OF_ROLES.admin)).toEqual(all)
})

it.each<[Role, Scope[]]>([
  ['viewer', []],
  ['agent', ['refunds:write']],
  ['approver', ['refunds:approve']],
  ['operator', ['ops', 'webhooks:write', 'cards:read']],
])('the role %s reads, and besides has only %j', (role, others) => {
  expect(listScopes([role])).toEqual(['payments:read', 'refunds:read', ...others])
})

it('two people cannot have the same name or e-mail address, whatever its letters and spaces', async () => {
  const name = `Đặng Ánh ${randomUUID()}`
  const email = `anh-${randomUUID()}@shop.example`
  const first = await add(name, email)
  if (first.kind !== 'added') throw new Error('not added')
  const doubled = name.toUpperCase().replace(' ', '  ')
  expect(await add(doubled)).toEqual({ kind: 'taken', by: 'name' })
  expect(await add('Another', email.toUpperCase())).toEqual({ kind: 'taken', by: 'email' })
  expect(await findPeople(database.sql, 'Another')).toEqual([])
  await end(first.id)
  expect(await add(doubled, email)).toMatchObject({ kind: 'added' })
})

it('two additions of one name at once add one person, and leave no key of the other', async () => {
  const name = `Twice ${randomUUID()}`
  const kinds = (await Promise.all([add(name), add(name), add(name)])).map(({ kind }) => kind)
  expect(kinds.toSorted()).toEqual(['added', 'taken', 'taken'])
  expect(await database.sql`select from api_keys where name = ${name}`).toHaveLength(1)
})

it("a person's key is in no list of keys, opens nothing, and never becomes the demo's key", async () => {
  const { personId, name } = await addTestPerson(database)
  const key = await readKey(personId)
  expect((await listKeys(database.sql)).map(({ id }) => id)).not.toContain(key.id)
  await database.sql`update api_keys set name = 'demo' where id = ${key.id}`
  await replaceDemoKey(database.sql, 'a-new-text-of-the-demo-0123456789')
  const [row] = await database.sql`
    select from api_keys where id = ${key.id} and hash = ${hashKey('a-new-text-of-the-demo-0123456789')}`
  expect(row).toBeUndefined()
  expect(name).not.toBe('demo')
})

it('a person and the API keys that were created for them are one principal', async () => {
  const spelled = `Trần Bình ${randomUUID()}`
  await runInTransaction(database.sql, (tx) =>
    createKey(tx, {
      ...{ name: 'k', scopes: ['ops'], merchantCode: '*', person: spelled, expiresAt: null },
      ...UNLIMITED,
    }),
  )
  const { personId } = await addTestPerson(database, { name: spelled.toUpperCase() })
  const [row] =
    await database.sql`select person from api_keys where id = ${(await readKey(personId)).id}`
  expect(row).toEqual({ person: spelled })
})

it('ending a person ends key, sessions and links in one commit', async () => {
  const visitor = await addVisitor(database)
  const key = await readKey(visitor.personId)
  const link = await makeLink(database, visitor.personId)
  expect((await findSession(database.sql, visitor.token))?.isLive).toBe(true)
  await expect(lockLiveKey(database.sql, key.id)).resolves.toMatchObject({ name: visitor.name })
  expect(await end(visitor.personId)).toMatchObject({ id: visitor.personId })
  expect(await findSession(database.sql, visitor.token)).toBeUndefined()
  await expect(lockLiveKey(database.sql, key.id)).rejects.toMatchObject({ code: 'unauthenticated' })
  const open = await database.sql`
    select from sessions where person_id = ${visitor.personId} and ended_at is null
    union all select from sign_in_links where token_hash = ${hashKey(link)} and expires_at > now()`
  expect(open).toHaveLength(0)
  expect(await end(visitor.personId)).toBeUndefined()
  const listed = (await listPeople(database.sql)).find(({ id }) => id === visitor.personId)
  expect(listed).toMatchObject({ sessions: 0, endedAt: expect.any(String) })
})

it.each([
  [['*'], '*', { A: true, B: true, '': true }],
  [['A'], 'A', { A: true, B: false, '': false }],
  [['A', 'B'], '', { A: true, B: true, C: false }],
  [['A', '*'], '*', { A: true, C: true }],
])(
  'the key of a person with %j covers these accounts and no other',
  async (merchants, code, covered) => {
    const { personId } = await addTestPerson(database, { merchants })
    const key = await readKey(personId)
    expect(key.merchantCode).toBe(code)
    for (const [merchant, expected] of Object.entries(covered)) {
      const [row] = await database.sql`
      select ${database.sql.unsafe(coversSql(`'${merchant}'`))} as covers
      from api_keys as k where id = ${key.id}`
      expect([merchant, row?.covers]).toEqual([merchant, expected])
    }
  },
)
