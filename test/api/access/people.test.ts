import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createKey, rotateKey } from '../../../src/access/key-changes.ts'
import type { Scope } from '../../../src/access/keys.ts'
import { addPerson, endPerson, findPeople, listPeople } from '../../../src/access/people.ts'
import { coversSql } from '../../../src/access/principal.ts'
import { findSession } from '../../../src/access/sessions.ts'
import { listScopes, ROLES, type Role, SCOPES_OF_ROLES } from '../../../src/access/types.ts'
import { listKeys } from '../../../src/cli/keys.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { UNLIMITED } from '../../support/access.ts'
import { addPrincipal } from '../../support/approvals.ts'
import { addTestPerson, addVisitor, makeLink } from '../../support/console.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

const add = (name: string, email: string | null = null) =>
  runInTransaction(database.sql, (tx) =>
    addPerson(tx, { name, email, roles: ['viewer'], merchants: ['*'] }),
  )
const end = (id: string) => runInTransaction(database.sql, (tx) => endPerson(tx, id))

/** How the person is stored. */
async function read(personId: string) {
  const [row] = await database.sql<{ principal: string }[]>`
    select principal from actors where id = ${personId}`
  if (!row) throw new Error('there is no such person')
  return row
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

it('two additions of one name at once add one person, and nothing of the other', async () => {
  const name = `Twice ${randomUUID()}`
  const kinds = (await Promise.all([add(name), add(name), add(name)])).map(({ kind }) => kind)
  expect(kinds.toSorted()).toEqual(['added', 'taken', 'taken'])
  expect(await database.sql`select from actors where name = ${name}`).toHaveLength(1)
})

it('a person is in no list of keys', async () => {
  const { personId } = await addTestPerson(database)
  expect((await listKeys(database.sql)).map(({ id }) => id)).not.toContain(personId)
})

it('a person and the API keys that were created for them are one principal, however they are spelled', async () => {
  const spelled = `Trần Bình ${randomUUID()}`
  const { id } = await runInTransaction(database.sql, (tx) =>
    createKey(tx, {
      ...{ name: 'k', scopes: ['ops'], merchantCode: '*', person: spelled, expiresAt: null },
      ...UNLIMITED,
    }),
  )
  const { personId } = await addTestPerson(database, { name: spelled.toUpperCase() })
  expect(await read(personId)).toEqual(await read(id))
})

it('ending a person ends sessions and links in one commit', async () => {
  const visitor = await addVisitor(database)
  await makeLink(database, visitor.personId)
  expect((await findSession(database.sql, visitor.token))?.isLive).toBe(true)
  expect(await end(visitor.personId)).toEqual([])
  expect(await findSession(database.sql, visitor.token)).toBeUndefined()
  const open = await database.sql`
    select from sessions where person_id = ${visitor.personId} and ended_at is null`
  expect(open).toHaveLength(0)
  expect(await end(visitor.personId)).toBeUndefined()
  const listed = (await listPeople(database.sql)).find(({ id }) => id === visitor.personId)
  expect(listed).toMatchObject({ sessions: 0, endedAt: expect.any(String) })
})

it.each([
  [['*'], { A: true, B: true, '': true }],
  [['A'], { A: true, B: false, '': false }],
  [['A', 'B'], { A: true, B: true, C: false }],
  [['A', '*'], { A: true, C: true }],
])('a person with %j covers these accounts and no other', async (merchants, covered) => {
  const { personId } = await addTestPerson(database, { merchants })
  for (const [merchant, expected] of Object.entries(covered)) {
    const [row] = await database.sql`
      select ${database.sql.unsafe(coversSql(`'${merchant}'`))} as covers
      from actors as k where id = ${personId}`
    expect([merchant, row?.covers]).toEqual([merchant, expected])
  }
})

it('a key of a person that is rotated while they are ended leaves no successor', async () => {
  const { personId, name } = await addTestPerson(database)
  const { id } = await addPrincipal(database, { person: name })
  const keys = await whileUncommitted(
    database,
    (held) => rotateKey(held, id, 3_600),
    async (commit) => {
      const ended = end(personId)
      await waitUntilBlocked(database)
      await commit()
      return await ended
    },
  )
  expect(keys).toHaveLength(2)
})
