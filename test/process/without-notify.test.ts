import { expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { readAllEvents } from '../support/feed.ts'
import { useRefundRig, useStarted } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

/** A database in which NOTIFY reaches nobody. */
async function createSilentDatabase() {
  const database = await createTestDatabase()
  const name = new URL(database.url).pathname.slice(1)
  await database.sql`create schema silent`
  await database.sql`
    create function silent.pg_notify(text, text) returns void language sql as 'select'`
  await database.sql`
    alter database ${database.sql(name)} set search_path = silent, pg_catalog, public`
  return database
}

const database = useStarted(createSilentDatabase, (silent) => silent.drop())
const rig = useRefundRig({ database })

it('with NOTIFY switched off everything still happens, found by the polls', async () => {
  const heard: string[] = []
  const wakes = ['sync_due', 'event_recorded', 'events_published', 'transaction_changed']
  for (const channel of [...wakes, 'transactions_registered']) {
    await rig.database.sql.listen(
      channel,
      () => heard.push(channel),
      () => {},
    )
  }
  const paid = await rig.pay({ amount: '100' })
  const reader = rig.api(`/v1/transactions/${paid.transactionId}?wait=4`)
  const { body, status } = await rig.refund(paid.id, { amount: '40' })
  expect(status).toBe(202)
  expect(await rig.untilEnded(body.id)).toMatchObject({ status: 'succeeded' })
  expect((await reader).status).toBe(200)
  const published = async () =>
    (await readAllEvents(rig)).some(
      ({ type, data }) =>
        type === 'refund.updated' && 'status' in data && data.status === 'succeeded',
    )
  await waitUntil(published, { what: 'the refund in the change feed' })
  expect(heard).toEqual([])
}, 60_000)
