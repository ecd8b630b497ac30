import { beforeEach, expect, it } from 'vitest'
import { useAuditChain } from '../../support/audit-chain.ts'
import { holdLocks } from '../../support/database.ts'
import { waitUntilBlocked } from '../../support/locks.ts'

const audit = useAuditChain()
beforeEach(() => audit.clear())

const count = async () => (await audit.database.sql`select from audit_entries`).length

it('entries past their retention are deleted from the beginning of each chain, and the rest can be verified', async () => {
  await audit.write(3, 'A', 401)
  await audit.write(2, 'A', 399)
  await audit.write(2, 'B', 401)
  await audit.chain()
  // One of B: the head of a chain stays.
  expect(await audit.expire()).toBe(4)
  expect(await count()).toBe(3)
  expect(await audit.verify()).toEqual([])
  await audit.write(1)
  await audit.chain()
  expect(await audit.verify()).toEqual([])
  await audit.database.sql`delete from audit_entries where id = (select min(id) from audit_entries)`
  expect(await audit.verify()).toEqual(['missing 4'])
})

it('an entry that is in no chain stays', async () => {
  await audit.write(3, 'A', 401)
  expect(await audit.expire()).toBe(0)
  expect(await count()).toBe(3)
})

it('a changed time makes no entry disappear, and is logged', async () => {
  await audit.write(4)
  await audit.chain()
  await audit.database.sql`update audit_entries set at = at - interval '500 days'`
  expect(await audit.expire()).toBe(0)
  expect(await count()).toBe(4)
  expect(audit.logged.join()).toContain('does not fit its chain and is not deleted')
})

it('nothing of a chain without a valid signature is deleted', async () => {
  await audit.write(4, 'A', 401)
  await audit.chain()
  await audit.database.sql`update audit_chains set mac = sha256('x')`
  expect(await audit.expire()).toBe(0)
  expect(await count()).toBe(4)
})

it('the pass waits for a deletion under way, and neither undoes the other', async () => {
  const { database } = audit
  const [id = 0] = await audit.write(2, 'A', 401)
  await audit.write(1)
  await audit.chain()
  await audit.write(1)
  const held = await holdLocks(
    database,
    (tx) => tx`select from audit_entries where id = ${id} for update`,
  )
  const expiring = audit.expire()
  await waitUntilBlocked(database, 1)
  const chaining = audit.chain()
  await waitUntilBlocked(database, 2)
  await held.release()
  expect(await expiring).toBe(2)
  await chaining
  expect(await audit.head()).toMatch(/^4:/)
  expect(await audit.verify()).toEqual([])
})
