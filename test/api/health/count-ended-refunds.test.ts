import { describe, expect, it } from 'vitest'
import { createEndedRefundCounter } from '../../../src/health/gauges.ts'
import type { Sql } from '../../../src/platform/postgres/types.ts'
import { borrowDatabase } from '../../support/database.ts'
import { countBlocked, waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { useStarted } from '../../support/use-started.ts'

/** Without a service: a sync of its own would wait for the same lock. */
const database = useStarted(borrowDatabase, (one) => one.release())

describe('the count of ended refunds', () => {
  const lock = (held: Sql) => held`lock table refunds in access exclusive mode`

  it('is shared by concurrent callers, and not repeated soon after a slow one', async () => {
    const countEnded = createEndedRefundCounter(database.sql)
    const asked = await whileUncommitted(database, lock, async () => {
      const all = [countEnded(), countEnded()]
      await waitUntilBlocked(database)
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(await countBlocked(database)).toBe(1)
      return all
    })
    const [first, second] = await Promise.all(asked)
    expect(second).toBe(first)
    expect(await countEnded()).toBe(first)
  })

  it('is repeated by the next caller after a failure', async () => {
    const countEnded = createEndedRefundCounter(database.sql)
    await whileUncommitted(database, lock, async () => {
      const failed = countEnded().catch((error: unknown) => error)
      await waitUntilBlocked(database)
      await database.sql`
        select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`
      expect(await failed).toBeInstanceOf(Error)
    })
    expect(await countEnded()).toEqual([])
  })
})
