import { setTimeout as pause } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { releaseClaim } from '../../../src/sync/claim-due.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { seedGone } from '../../support/api.ts'
import { payQuietly, seedPaid } from '../../support/ask.ts'
import { runCli } from '../../support/cli.ts'
import { emptyTables } from '../../support/database.ts'
import { claimOne, readItem } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

describe('reconcile', () => {
  const rig = useRig()
  const run = (...args: string[]) =>
    runCli(['reconcile', ...args], { DATABASE_URL: rig.database.url })
  beforeEach(() => emptyTables(rig.database))

  it('reports what the gateway says otherwise, with before and after, and what it does not know', async () => {
    const same = await payQuietly(rig)
    expect(await run('--since', '1h')).toMatchObject({
      code: 0,
      out: '1 transactions asked, 0 changes, 0 discrepancies, 0 without an answer\n',
    })
    const changed = await payQuietly(rig, { amount: '100' })
    await rig.control('PATCH', `/payments/${changed.id}?ipn=false`, { status: 'FAILED' })
    const unknown = await seedPaid(rig.database)
    const { code, out, err } = await run('--since', '1h', '--json')
    expect({ code, err }).toEqual({ code: 1, err: '3 of 3 asked\n' })
    const report = JSON.parse(out)
    expect(report).toMatchObject({ asked: 3 })
    const of = ({ transactionId }: { transactionId: string }) => transactionId
    expect(new Set(report.changed.map(of))).toEqual(new Set([changed.transactionId]))
    expect(report.changed).toContainEqual(
      expect.objectContaining({
        paymentId: changed.id,
        field: 'status',
        before: 'SUCCESS',
        after: 'FAILED',
      }),
    )
    expect(report.discrepancies).toEqual([
      expect.objectContaining({
        kind: 'answer_went_backwards',
        transactionId: changed.transactionId,
      }),
    ])
    expect(report.unanswered).toEqual([
      expect.objectContaining({
        transactionId: unknown.transactionId,
        outcome: 'rejected',
        code: '32',
      }),
    ])
    expect(out).not.toContain(same.transactionId)
    const text = await run('--since', '1h')
    expect(text.out).toMatch(
      new RegExp(
        `${unknown.transactionId} +refused by the gateway, code 32 +- +Invalid transaction id`,
      ),
    )
  })

  it('reports a discrepancy that was resolved and is seen again', async () => {
    const { sql } = rig.database
    const { id } = await payQuietly(rig)
    const seeAgain = async () => {
      await rig.control('PATCH', `/payments/${id}?ipn=false`, { status: 'SUCCESS' })
      await run('--since', '1h')
      await rig.control('PATCH', `/payments/${id}?ipn=false`, { status: 'FAILED' })
      return JSON.parse((await run('--since', '1h', '--json')).out)
    }
    await seeAgain()
    await sql`update discrepancies set resolved_at = now()`
    const { discrepancies } = await seeAgain()
    expect(discrepancies).toEqual([
      expect.objectContaining({ kind: 'answer_went_backwards', times: 2, resolvedAt: null }),
    ])
  })

  it('skips an account that left the settings, says so, and ends', async () => {
    const { sql, url } = rig.database
    await seedGone(rig.database)
    const env = {
      DATABASE_URL: url,
      GATEWAY_MERCHANT_CODE: 'UFLIYL',
      GATEWAY_SECRET: 's'.repeat(16),
    }
    const skipped =
      'skipped 1 transactions of GONE01: no longer in the settings, so nobody asks about them; configure the account again to include them\n'
    expect(await runCli(['requeue', 'T-GONE'], env)).toMatchObject({
      code: 1,
      err: skipped,
      out: '1 transactions: nothing was changed\n',
    })
    const [row] = await sql`select due_at from transactions where merchant_code = 'GONE01'`
    expect(row).toEqual({ due_at: null })
    const of = ['--since', '1h', '--merchant', 'GONE01']
    expect(await runCli(['reconcile', ...of], env)).toMatchObject({
      code: 1,
      err: skipped,
      out: '0 transactions asked, 0 changes, 0 discrepancies, 0 without an answer\n',
    })
  })

  it('only counts with --dry-run, and only of one account', async () => {
    for (let n = 0; n < 3; n++) await seedPaid(rig.database)
    const dry = await run('--since', '2020-01-01T00:00:00Z', '--dry-run', '--json')
    expect(JSON.parse(dry.out)).toEqual({ transactions: 3, requeued: 0 })
    expect(await run('--since', '0')).toMatchObject({ code: 0 })
  })

  it.each([
    ['no time', [], "required option '--since <value>' not specified"],
    ['a time', ['--since', 'yesterday'], 'It must be a time like 2026-11-21T09:00:00Z, or 6h'],
  ])('exits with 2 and the right spelling for %s', async (_, args, words) => {
    expect(await run(...args)).toMatchObject({ code: 2, err: expect.stringContaining(words) })
  })
})

describe('reconcile without a worker', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })

  it('stops with a clear line, and has changed nothing', async () => {
    await seedPaid(rig.database)
    await rig.database.sql`delete from processes where role <> 'web'`
    const { code, out, err } = await runCli(['reconcile', '--since', '1h'], {
      DATABASE_URL: rig.database.url,
    })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(
      /^error: no process of the service lives that asks the gateway .*; nothing was changed\n$/,
    )
    const [row] = await rig.database
      .sql`select count(*) as n from transactions where due_at is not null`
    expect(row).toEqual({ n: 0 })
  })

  it('does not take a transaction for asked whose claim was handed back without a call', async () => {
    const { ctx } = rig.service
    await emptyTables(rig.database)
    const { transactionId } = await payQuietly(rig)
    await rig.database.sql`
      insert into processes (id, role, version) values (gen_random_uuid(), 'worker', '0')`
    const asked = runCli(['reconcile', '--since', '1h'], { DATABASE_URL: rig.database.url })
    const isDue = async () => (await readItem(rig, transactionId)).dueInMs !== null
    await waitUntil(isDue, { what: 'the transaction is due' })
    await releaseClaim(ctx, await claimOne(ctx))
    expect(await Promise.race([asked, pause(2_000, 'waits')])).toBe('waits')
    expect(await syncDue(ctx)).toBe(1)
    expect(await asked).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^1 transactions asked/),
    })
  })

  it('does not take a call that a clock dated which has gone back since for the one that it asks for', async () => {
    const { ctx } = rig.service
    await emptyTables(rig.database)
    await payQuietly(rig)
    const { sql } = rig.database
    await sql`update transactions set due_at = now()`
    expect(await syncDue(ctx)).toBe(1)
    const { count } = await sql`
      update gateway_calls set sent_at = sent_at + interval '1 hour' where command = 'QUERY_PT'`
    expect(count).toBe(1)
    await sql`insert into processes (id, role, version) values (gen_random_uuid(), 'worker', '0')`
    const asked = runCli(['reconcile', '--since', '1h'], { DATABASE_URL: rig.database.url })
    const isAsked = async () => (await sql`select from transactions where want > claimed`).count > 0
    await waitUntil(isAsked, { what: 'the transaction is asked for' })
    expect(await Promise.race([asked, pause(2_000, 'waits')])).toBe('waits')
    expect(await syncDue(ctx)).toBe(1)
    expect(await asked).toMatchObject({ code: 0 })
  })
})
