import { describe, expect, it } from 'vitest'
import { countReadConnections, createReads, type ReadDatabase } from '../../../src/db/reads.ts'
import { DomainError } from '../../../src/errors.ts'
import { expectProblem } from '../../support/api.ts'
import { makeGate } from '../../support/gate.ts'
import { KEY } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

/** Takes turns until `end`, and then gives them back. */
function occupy(holders: readonly string[], reads = rig.service.ctx.db.reads) {
  const gate = makeGate()
  const started: string[] = []
  const all = holders.map((holder) =>
    reads.run(holder, async () => {
      started.push(holder)
      await gate.opened
    }),
  )
  return { started, end: () => Promise.all([gate.open(), ...all]) }
}

describe('the sessions of reads', () => {
  it.each([
    [2, 1],
    [3, 1],
    [10, 3],
    [40, 12],
  ])('of %i connections are %i', (all, reads) => {
    expect(countReadConnections(all)).toBe(reads)
  })

  it('write nothing', async () => {
    const { sql } = rig.database
    await expect(
      rig.service.ctx.db.reads.run('k', (db) => db.sql`delete from merchant_accounts`),
    ).rejects.toMatchObject({ code: '25006' })
    expect(await sql`select from merchant_accounts`).not.toHaveLength(0)
    // Nor did that end the sessions of anything else.
    expect(await rig.service.ctx.db.sql`select 1 as n`).toEqual([{ n: 1 }])
  })

  it('give a statement three seconds, and the client advice', async () => {
    const [limit] = await rig.service.ctx.db.reads.run(
      'k',
      ({ sql }) => sql`show statement_timeout`,
    )
    expect(limit).toEqual({ statement_timeout: '3s' })
    const slow = ({ sql }: ReadDatabase) =>
      sql.begin(async (tx) => {
        await tx`set local statement_timeout = 1`
        return await tx`select pg_sleep(60)`
      })
    // As most lists do.
    const slowOfBuilder = ({ drizzle }: ReadDatabase) =>
      drizzle.transaction(async (tx) => {
        await tx.execute('set local statement_timeout = 1')
        return await tx.execute('select pg_sleep(60)')
      })
    for (const read of [slow, slowOfBuilder]) {
      await expect(rig.service.ctx.db.reads.run('k', read)).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('narrow the filter'),
        retryAfterS: 5,
      })
    }
  })
})

describe('while reads have all their sessions', () => {
  it('notifications, look-ups and writes are served, and lists are once there is a turn', async () => {
    await rig.database
      .sql`insert into transactions (merchant_code, transaction_id) values ('UFLIYL', 'T-1')`
    const others = occupy(['a', 'b', 'c'])
    await waitUntil(() => others.started.length === 3, { what: 'every turn is taken' })
    const paths = ['transactions', 'payments', 'refunds', 'discrepancies', 'search?q=T-1']
    const more = ['events', 'webhook-endpoints', 'transactions/T-1/timeline']
    const lists = [...paths, ...more].map((path) => rig.api(`/v1/${path}`))
    await waitUntil(() => rig.service.ctx.db.reads.count() === 3 + lists.length, {
      what: 'every list waits',
    })
    expect((await rig.api('/v1/transactions/T-1')).status).toBe(200)
    const synced = await rig.api('/v1/transactions/T-1/sync', { method: 'POST' })
    expect(synced.status).toBe(202)
    await others.end()
    expect((await Promise.all(lists)).map(({ status }) => status)).toEqual(lists.map(() => 200))
  })

  it('a key has 256 lists waiting at most, and the next one is told to come back', async () => {
    const { chainId = '' } = (await rig.service.ctx.access.keys.find(KEY, 'cached')) ?? {}
    const others = occupy(['a', 'b', 'c', ...Array.from({ length: 256 }, () => chainId)])
    const refused = await rig.api('/v1/transactions?state=refunded')
    expect(refused.headers.get('retry-after')).toBe('1')
    await expectProblem(refused, 503, 'unavailable')
    await others.end()
    expect((await rig.api('/v1/transactions?state=refunded')).status).toBe(200)
  })
})

describe('turns', () => {
  const make = (limits = {}) => createReads(rig.service.ctx.db, 3, limits)

  it('leave one session for another holder, whose turn comes before all that wait', async () => {
    const reads = make()
    const flood = occupy(['a', 'a', 'a', 'a'], reads)
    expect(flood.started).toEqual([])
    await waitUntil(() => flood.started.length > 0, { what: 'the flood has its share' })
    expect(flood.started).toEqual(['a'])
    const other = occupy(['b'], reads)
    await reads.run('c', async () => {})
    expect([flood.started, other.started]).toEqual([['a'], ['b']])
    await other.end()
    await flood.end()
  })

  it('are refused to a read that has waited too long, or finds too many', async () => {
    const reads = make({ maxWaitMs: 1, maxWaiting: 1 })
    const all = occupy(['a', 'b', 'c'], reads)
    const late = reads.run('d', async () => {})
    await expect(reads.run('e', async () => {})).rejects.toThrow(DomainError)
    await expect(late).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 1 })
    await all.end()
    expect(reads.count()).toBe(0)
  })
})
