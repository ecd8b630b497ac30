import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { recheckFinal } from '../../../src/maintenance/rechecks.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { beginSync } from '../../support/begin-pass.ts'
import { startTestService } from '../../support/service.ts'
import {
  claimOne,
  commitClaim,
  keepLog,
  makeDueNow,
  makeTransaction,
  notifyOf,
  readItem,
  registerDue,
  syncAgain,
} from '../../support/sync.ts'
import { clearRig, useRig } from '../../support/use-started.ts'

const settings = { ROLE: 'web', SYNC_BACKOFF_MS: '60000', SYNC_MAX_ATTEMPTS: '3' }
const rig = useRig({ settings: { ...settings, SYNC_REPOLL_MS: '5000' } })
afterEach(() => clearRig(rig))

const read = (id: string) => readItem(rig, id)
/** A transaction at the gateway that is due. */
async function makeDue(id: string, payments?: Parameters<typeof makeTransaction>[2]) {
  await makeTransaction(rig, id, payments)
  await registerDue(rig, id)
}
const misbehave = (fault: object) =>
  rig.control('POST', '/faults', { command: 'QUERY_PT', ...fault })

/** Makes the next `times` writes to the payments fail with an SQLSTATE. */
async function failCommits(code: string, times: number): Promise<void> {
  await rig.database.sql.unsafe(`
    create sequence failures;
    create function fail() returns trigger language plpgsql as $$ begin
      if nextval('failures') <= ${times} then raise exception 'planted' using errcode = '${code}'; end if;
      return new;
    end $$;
    create trigger fails before insert or update on payments for each row execute function fail()`)
  onTestFinished(async () => {
    await rig.database.sql.unsafe('drop function fail() cascade; drop sequence failures')
  })
}

describe('a failed query', () => {
  it.each([
    ['unknown', { kind: 'http500' }, 'HTTP status 500'],
    ['unknown', { kind: 'garbage' }, 'the answer is not a JSON object'],
    ['unknown', { kind: 'reset' }, 'ECONNRESET'],
    ['rejected', { kind: 'code', code: 1 }, 'code 1: Failed'],
  ])(
    '%s (%j) is counted, backs off, records the reason and stores nothing',
    async (outcome, fault, why) => {
      await makeDue('T-1')
      await misbehave(fault)
      expect(await syncDue(rig.service.ctx)).toBe(1)
      const { dueInMs, ...item } = await read('T-1')
      expect(item).toMatchObject({
        ...{ attempts: 1, polls: 0, lastError: why, leased: false, version: 1 },
        ...{ state: 'pending', asOf: null },
      })
      expect(dueInMs).toBeLessThanOrEqual(60_000)
      expect(await rig.database.sql`select from payments`).toHaveLength(0)
      const calls = await rig.database.sql`select outcome, answer from gateway_calls`
      expect(calls).toEqual([{ outcome, answer: null }])
    },
  )

  it('unavailable (connection refused) is counted like the others', async () => {
    const closed = await startTestService(rig.database, 'http://127.0.0.1:9', { settings })
    try {
      await registerDue(rig, 'T-1')
      expect(await syncDue(closed.ctx)).toBe(1)
    } finally {
      await closed.stop()
    }
    expect(await read('T-1')).toMatchObject({ attempts: 1, lastError: 'ECONNREFUSED' })
    const calls = await rig.database.sql`select outcome from gateway_calls`
    expect(calls).toEqual([{ outcome: 'unavailable' }])
  })

  it.each([
    ['a deadlock', '40P01'],
    ['a cancelled statement', '57014'],
    ['a lock that is not available', '55P03'],
  ])('%s while committing is not one: the commit is repeated', async (_, code) => {
    await makeDue('T-1')
    await failCommits(code, 2)
    await syncDue(rig.service.ctx)
    expect(await read('T-1')).toMatchObject({ attempts: 0, lastError: null, state: 'paid' })
  })

  it.each(['40P01', '57014'])(
    'a commit that fails with %s again and again is not one: it is due when the lease ends',
    async (code) => {
      await makeDue('T-1')
      await failCommits(code, 100)
      const { log, errors } = keepLog()
      await syncDue({ ...rig.service.ctx, log })
      expect(await read('T-1')).toMatchObject({ attempts: 0, lastError: null, leased: true })
      expect(errors()).toMatchObject([
        { msg: expect.stringContaining('due again when its lease ends') },
      ])
      await rig.database.sql`drop trigger fails on payments`
      await syncAgain(rig, 'T-1')
      expect(await read('T-1')).toMatchObject({ attempts: 0, state: 'paid' })
    },
  )

  it('an answer the database rejects is one too, and nothing of it is stored', async () => {
    await makeDue('T-1', [{ id: '1' }, { id: '2', status: 'FORBIDDEN' }])
    await rig.database
      .sql`alter table payments add constraint no_such check (status <> 'FORBIDDEN')`
    const { log, errors } = keepLog()
    await syncDue({ ...rig.service.ctx, log })
    await rig.database.sql`alter table payments drop constraint no_such`
    expect(await read('T-1')).toMatchObject({
      attempts: 1,
      lastError: 'the database rejected the answer (23514)',
      leased: false,
      state: 'pending',
    })
    expect(await rig.database.sql`select from payments`).toHaveLength(0)
    expect(errors()).toMatchObject([
      { msg: 'the answer of the gateway could not be stored; the query is retried' },
    ])
    await syncAgain(rig, 'T-1')
    expect(await read('T-1')).toMatchObject({ attempts: 0, lastError: null, state: 'paid' })
  })
})

describe('after SYNC_MAX_ATTEMPTS failures a transaction is abandoned', () => {
  async function abandon(id: string) {
    await makeDue(id)
    await misbehave({ kind: 'http500', times: 3 })
    const { log, saying } = keepLog()
    const ctx = { ...rig.service.ctx, log }
    await syncAgain(rig, id, ctx)
    await syncAgain(rig, id, ctx)
    expect(await read(id)).toMatchObject({ attempts: 2, abandoned: false })
    expect(saying('abandoned')).toEqual([])
    await syncAgain(rig, id, ctx)
    expect(await read(id)).toMatchObject({
      attempts: 3,
      abandoned: true,
      dueInMs: null,
      leased: false,
      lastError: 'HTTP status 500',
    })
    return saying('abandoned')
  }

  it('with a line in the log that calls nobody, whose hint can be followed, and shown in its sync status', async () => {
    const id = 'T 1/?ö'
    expect(await abandon(id)).toMatchObject([
      {
        ...{ level: 30, transactionId: id, merchantCode: 'UFLIYL', lastError: 'HTTP status 500' },
        msg: 'transaction abandoned; POST /v1/transactions/T%201%2F%3F%C3%B6/sync queries it again',
      },
    ])
    expect((await rig.transaction(encodeURIComponent(id))).sync).toMatchObject({
      status: 'abandoned',
      nextAttemptAt: null,
      attempts: 3,
      lastError: 'HTTP status 500',
    })
  })

  it('and resumed by POST …/sync', async () => {
    await abandon('T-2')
    const { status } = await rig.api('/v1/transactions/T-2/sync', { method: 'POST' })
    expect(status).toBe(202)
    expect(await read('T-2')).toMatchObject({ abandoned: false, attempts: 0 })
    await syncAgain(rig, 'T-2')
    expect(await read('T-2')).toMatchObject({ state: 'paid', abandoned: false, dueInMs: null })
  })

  it('and resumed by a notification', async () => {
    await abandon('T-3')
    await notifyOf(rig, 'T-3')
    await syncAgain(rig, 'T-3')
    expect(await read('T-3')).toMatchObject({ state: 'paid', abandoned: false, dueInMs: null })
  })

  it('but not, and without a line in the log, when a request arrives during the last of them', async () => {
    await makeDue('T-4')
    await rig.database.sql`update transactions set attempts = 2`
    await misbehave({ kind: 'http500', times: 1 })
    const { log, saying } = keepLog()
    const ctx = { ...rig.service.ctx, log }
    const running = await beginSync({ ...rig.service, ctx }, 'QUERY_PT')
    await notifyOf(rig, 'T-4')
    await running.finish()
    const item = await read('T-4')
    expect(item).toMatchObject({ abandoned: false, attempts: 0, leased: false })
    expect(item.dueInMs).not.toBeNull()
    expect(saying('abandoned')).toEqual([])
  })
})

describe('what is final is never abandoned: it ends quietly at its final state', () => {
  const readAbandoned = (id: string) => rig.database.sql`
    select from event_outbox where type = 'sync.abandoned' and transaction_id = ${id}`
  const countAbandoned = async () => {
    const text = await (await fetch(`${rig.service.url}/metrics`)).text()
    return /sync_queries_total\{result="abandoned"\} (\d+)/.exec(text)?.[1]
  }
  async function expectQuiet(
    id: string,
    end: () => Promise<unknown>,
    log: ReturnType<typeof keepLog>,
  ) {
    const before = await countAbandoned()
    await end()
    expect(await read(id)).toMatchObject({ state: 'paid', abandoned: false, dueInMs: null })
    expect(await rig.transaction(id)).toMatchObject({ final: true, sync: { status: 'idle' } })
    expect(await readAbandoned(id)).toEqual([])
    expect(log.errors()).toEqual([])
    expect(await countAbandoned()).toBe(before)
  }

  it('although the query that checks it once more fails SYNC_MAX_ATTEMPTS times', async () => {
    await makeDue('T-FINAL')
    await syncAgain(rig, 'T-FINAL')
    await rig.database.sql`update transactions set reconcile_at = now()`
    await recheckFinal(rig.service.ctx)
    await misbehave({ kind: 'http500', times: 3 })
    const log = keepLog()
    const ctx = { ...rig.service.ctx, log: log.log }
    const fail = async () => {
      for (let n = 0; n < 3; n += 1) await syncAgain(rig, 'T-FINAL', ctx)
    }
    await expectQuiet('T-FINAL', fail, log)
    const [row] = await rig.database.sql`select reconcile_at > now() as again from transactions`
    expect(row).toEqual({ again: true })
  })

  it('although the gateway does not list its payment for SYNC_REPOLL_FOR_MS', async () => {
    await makeDue('T-LOST', [{ id: 'lost' }])
    await syncAgain(rig, 'T-LOST')
    await rig.control('PATCH', '/payments/lost', { listed: false })
    const makeOld = () => rig.database.sql`
      update transactions set asked_for_at = now() - interval '259200 s'`
    await makeOld()
    const log = keepLog()
    await expectQuiet(
      'T-LOST',
      () => syncAgain(rig, 'T-LOST', { ...rig.service.ctx, log: log.log }),
      log,
    )
    await rig.database.sql`update transactions set reconcile_at = now()`
    await recheckFinal(rig.service.ctx)
    await makeOld()
    await syncAgain(rig, 'T-LOST')
    expect(await rig.database.sql`select due_at, reconcile_at from transactions`).toEqual([
      { due_at: null, reconcile_at: null },
    ])
  })
})

describe('an open answer', () => {
  it.each([9, 99])('code %i is polled, not counted as a failure', async (code) => {
    await makeDue('T-1')
    await misbehave({ kind: 'code', code })
    await syncDue(rig.service.ctx)
    const { dueInMs, ...item } = await read('T-1')
    const lastError = expect.stringMatching(`^code ${code}: `)
    expect(item).toMatchObject({ attempts: 0, polls: 1, lastError, state: 'pending' })
    expect(dueInMs).toBeGreaterThan(4000)
    expect(dueInMs).toBeLessThanOrEqual(5000)
  })

  it.each([
    ['nothing listed', 'T-NONE', []],
    ['a payment in progress', 'T-OPEN', [{ status: 'PROCESSING' }]],
  ])('%s: polled, then abandoned after SYNC_REPOLL_FOR_MS', async (_, id, list) => {
    await makeDue(id, list)
    const { log, saying } = keepLog()
    const ctx = { ...rig.service.ctx, log }
    await syncAgain(rig, id, ctx)
    expect((await rig.transaction(id)).sync).toMatchObject({ status: 'queued', attempts: 0 })
    await rig.database.sql`update transactions set asked_for_at = now() - interval '259199 s'`
    await syncAgain(rig, id, ctx)
    expect(await read(id)).toMatchObject({ abandoned: false })
    await rig.database.sql`update transactions set asked_for_at = now() - interval '259200 s'`
    await syncAgain(rig, id, ctx)
    expect(await read(id)).toMatchObject({
      abandoned: true,
      dueInMs: null,
      lastError: 'still open: pending, not final',
    })
    expect(saying('abandoned')).toHaveLength(1)
    await makeTransaction(rig, id)
    await notifyOf(rig, id)
    await syncAgain(rig, id, ctx)
    expect(await read(id)).toMatchObject({ abandoned: false, state: 'paid' })
  })
})

describe('as_of', () => {
  it('an answer older than the stored one changes nothing, and is queried again at once', async () => {
    await makeDue('T-AGE', [{ id: '71', status: 'PROCESSING' }])
    await syncDue(rig.service.ctx)
    await rig.control('PATCH', '/payments/71', { status: 'SUCCESS' })
    await makeDueNow(rig, 'T-AGE')
    const claim = await claimOne(rig.service.ctx)
    await rig.database.sql`update transactions set as_of = now() + interval '1 h'`
    const before = await read('T-AGE')
    await commitClaim(rig.service.ctx, claim)
    const after = await read('T-AGE')
    expect(after).toMatchObject({
      state: 'pending',
      asOf: before.asOf,
      version: before.version,
      leased: false,
      attempts: 0,
      polls: before.polls,
    })
    expect(after.dueInMs).toBeLessThanOrEqual(after.gapMs)
    expect(await rig.database.sql`select status from payments`).toEqual([{ status: 'PROCESSING' }])
    expect(await rig.database.sql`select from gateway_calls`).toHaveLength(2)

    await rig.database.sql`update transactions set as_of = now() - interval '1 s'`
    await syncAgain(rig, 'T-AGE')
    expect(await read('T-AGE')).toMatchObject({ state: 'paid', dueInMs: null })
  })

  it('ahead of the clock, after a failover to a slower one: the next answer is stored all the same', async () => {
    await makeDue('T-SKEW', [{ id: '72', status: 'PROCESSING' }])
    await syncDue(rig.service.ctx)
    await rig.database.sql`update transactions set as_of = now() + interval '1 h'`
    const { asOf: ahead } = await read('T-SKEW')
    await rig.control('PATCH', '/payments/72', { status: 'SUCCESS' })
    await syncAgain(rig, 'T-SKEW')
    const { asOf, ...after } = await read('T-SKEW')
    expect(after).toMatchObject({ state: 'paid', dueInMs: null, attempts: 0 })
    expect(String(asOf) > String(ahead)).toBe(true)
  })

  it('is when the query was sent, not when its answer came', async () => {
    await makeDue('T-SENT')
    await misbehave({ kind: 'delay', delayMs: 250 })
    await syncDue(rig.service.ctx)
    const [row] = await rig.database.sql`
      select t.as_of = c.sent_at and p.as_of = c.sent_at as same, t.as_of >= queried_at as later,
        t.as_of < p.first_seen_at - interval '200 ms' as before
      from transactions as t, payments as p, gateway_calls as c`
    expect(row).toEqual({ same: true, later: true, before: true })
  })
})
