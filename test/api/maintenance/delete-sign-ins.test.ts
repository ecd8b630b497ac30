import { expect, it } from 'vitest'
import { erase } from '../../../src/maintenance/delete-expired.ts'
import { addTestPerson, addVisitor, makeLink } from '../../support/console.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

it('what a sign-in leaves behind is deleted once it is long over, and nothing before', async () => {
  const { sql } = database
  const retention = { db: database, config: { RETENTION_DAYS: 400 } }
  const { personId } = await addTestPerson(database)
  await makeLink(database, personId)
  await addVisitor(database)
  expect(await erase(retention, 'sessions')).toBe(0)
  await sql`update sessions set link_until = now() - interval '25 hours'`
  expect(await erase(retention, 'sessions')).toBe(1)
  await sql`update sessions set ended_at = now() - interval '31 days'`
  expect(await erase(retention, 'sessions')).toBe(1)
  expect(await sql`select from sessions`).toHaveLength(0)
})
