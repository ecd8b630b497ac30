import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { NO_WORKER, writeSeen, writeStopped } from '../../src/db/processes.ts'
import { healthRoutes } from '../../src/health/routes.ts'
import { followClock } from '../../src/maintenance/housekeeping.ts'
import { createPresence, releaseUnseen } from '../../src/maintenance/processes.ts'
import type { Sql } from '../../src/platform/postgres/types.ts'
import { leaseMs } from '../../src/sync/claim-due.ts'
import { claimEndpoints } from '../../src/webhooks/claim.ts'
import { emptyTables } from '../support/database.ts'
import { expectUnblocked, whileUncommitted } from '../support/locks.ts'
import type { LabPayment } from '../support/refund-lab.ts'
import { changeLifecycle } from '../support/service.ts'
import {
  claimOne,
  commitClaim,
  keepLog,
  makeTransaction,
  readItem,
  registerDue,
} from '../support/sync.ts'
import { useRefundLab } from '../support/use-started.ts'
import { publish, register } from '../support/webhooks.ts'

const lab = useRefundLab()
afterEach(async () => {
  await emptyTables(lab.database)
  await lab.database.sql`delete from processes`
  await lab.database.sql`delete from webhook_endpoints`
})

type Given = { seenAgoS?: number; writingForS?: number; role?: string }

/** A process as the database knows it; by default one that was seen just now, and could write for long. */
async function makeProcess({ seenAgoS = 0, writingForS = 60, role = 'worker' }: Given = {}) {
  const processId = randomUUID()
  await lab.database.sql`
    insert into processes (id, role, version, started_at, seen_at, writing_since)
    values (${processId}, ${role}, '0', now() - interval '60 s',
      now() - ${seenAgoS} * interval '1 s', now() - ${writingForS} * interval '1 s')`
  return changeLifecycle(lab.service.ctx, { processId, isWithoutWorker: false })
}

const read = (id: string) => readItem(lab, id)

/** Claims a transaction that is due, as a process that has not been seen for 13 s. */
async function claimUnseen(id: string, given: Given = { seenAgoS: 13 }) {
  const dead = await makeProcess(given)
  await makeTransaction(lab, id)
  await registerDue(lab, id)
  return { dead, claim: await claimOne(dead) }
}

describe('what a process holds that is not seen any more', () => {
  it('is due at once, and the answer of the process, which was only paused, is not written', async () => {
    const { dead, claim } = await claimUnseen('T-1')
    expect(await releaseUnseen(await makeProcess())).toBe(1)
    expect(await read('T-1')).toMatchObject({ leased: false, attempts: 0 })
    expect((await read('T-1')).dueInMs).toBeLessThanOrEqual(0)
    expect(await commitClaim(dead, claim)).toMatchObject({ end: { next: 'lost' } })
    expect(await lab.database.sql`select from gateway_calls`).toHaveLength(0)
    expect(await read('T-1')).toMatchObject({ state: 'pending', asOf: null })
  })

  it.each([
    ['was seen within 12 s', { seenAgoS: 9 }],
    ['has been gone for so long that its leases have ended', { seenAgoS: 3_600 }],
  ])('stays as it is if the process %s', async (_, given) => {
    await claimUnseen('T-1', given)
    expect(await releaseUnseen(await makeProcess())).toBe(0)
    expect(await read('T-1')).toMatchObject({ leased: true })
  })

  it('stays as it is if the process is not known', async () => {
    const { dead } = await claimUnseen('T-1')
    await writeStopped(dead)
    expect(await releaseUnseen(await makeProcess())).toBe(0)
    expect(await read('T-1')).toMatchObject({ leased: true })
  })

  it.each([
    ['has only been able to write for 11 s', { writingForS: 11 }],
    ['has not been able to write for 7 s', { seenAgoS: 7 }],
  ])(
    'stays as it is for another process that %s: the database may take no writes',
    async (_, given) => {
      await claimUnseen('T-1')
      expect(await releaseUnseen(await makeProcess(given))).toBe(0)
      expect(await read('T-1')).toMatchObject({ leased: true })
    },
  )

  it.each([
    ['awaiting_approval', true],
    ['pending', true],
    ['sending', true],
    ['unknown', true],
    ['accepted', false],
    ['needs_review', false],
    ['succeeded', false],
  ])('with a refund that is %s keeps its lease: %s', async (status, isKept) => {
    const { transactionId } = await claimRefund()
    await setStatus(status)
    expect(await releaseUnseen(await makeProcess())).toBe(isKept ? 0 : 1)
    expect(await read(transactionId)).toMatchObject({ leased: isKept })
  })

  it('with a refund that may be sent keeps its lease after the clock went back, until it ends in its usual time', async () => {
    const { sql } = lab.database
    const { transactionId } = await claimRefund()
    await sql`
      update transactions set due_at = due_at + interval '1 hour', queried_at = queried_at + interval '1 hour'`
    await sql`update processes set seen_at = seen_at + interval '1 hour'`
    const own = await makeProcess()
    await followClock(own)
    await sql`
      update processes set seen_at = seen_at - interval '13 s' where id <> ${own.lifecycle.processId}`
    expect(await releaseUnseen(own)).toBe(0)
    const { leased, dueInMs } = await read(transactionId)
    expect(leased).toBe(true)
    expect(dueInMs).toBeLessThanOrEqual(leaseMs(own.config.GATEWAY_TIMEOUT_MS))
  })

  it('is skipped without waiting while a commit of it is not done, and kept if that recorded an attempt', async () => {
    const { transactionId } = await claimRefund()
    await setStatus('succeeded')
    const own = await makeProcess()
    await whileUncommitted(
      lab.database,
      async (held) => {
        await held`select from transactions where transaction_id = ${transactionId} for update`
        await setStatus('sending', held)
      },
      async (commit) => {
        expect(await expectUnblocked(lab.database, releaseUnseen(own))).toBe(0)
        await commit()
      },
    )
    expect(await releaseUnseen(own)).toBe(0)
    expect(await read(transactionId)).toMatchObject({ leased: true })
  })

  it.each([
    ['webhook endpoints', 'lease_id'],
    ['webhook endpoints that were changed meanwhile', 'null'],
  ])('includes %s', async (_, leaseId) => {
    const { sql } = lab.database
    const dead = await makeProcess({ seenAgoS: 13 })
    const { id } = await register(lab, 'https://receiver.example/hook')
    await publish(lab, ['T-1'])
    expect(await claimEndpoints(dead, false, 1)).toHaveLength(1)
    await sql`update webhook_endpoints set lease_id = ${sql.unsafe(leaseId)}`
    const other = await makeProcess()
    expect(await claimEndpoints(other, false, 1)).toHaveLength(0)
    await releaseUnseen(other)
    expect(await claimEndpoints(other, false, 1)).toMatchObject([{ id }])
  })
})

async function setStatus(status: string, sql: Sql = lab.database.sql): Promise<void> {
  await sql`
    update refunds set status = ${status}, needs_approval = ${status === 'awaiting_approval'},
      due_at = case when ${status} in ('awaiting_approval', 'needs_review', 'succeeded') then null else now() end,
      attempts = case when ${status} in ('awaiting_approval', 'pending') then 0 else 1 end`
}

/** A refund, and a claim of its transaction by a process that is not seen any more. */
async function claimRefund(): Promise<LabPayment> {
  const payment = await lab.open()
  await lab.ask(payment, '30')
  await lab.database.sql`update transactions set due_at = now()`
  await claimOne(await makeProcess({ seenAgoS: 13 }))
  return payment
}

describe('a process', () => {
  const readOwn = async (id: string) => {
    const [row] = await lab.database.sql`
      select role, version, seen_at > now() - interval '1 s' as "isSeen",
        writing_since > now() - interval '1 s' as "isFresh" from processes where id = ${id}`
    return row
  }

  it('writes that it lives, and since when it could: without a gap as long as two writes', async () => {
    const steady = await makeProcess({ seenAgoS: 5 })
    await writeSeen(steady)
    expect(await readOwn(steady.lifecycle.processId)).toMatchObject({
      isSeen: true,
      isFresh: false,
    })
    const gone = await makeProcess({ seenAgoS: 7 })
    await writeSeen(gone)
    expect(await readOwn(gone.lifecycle.processId)).toMatchObject({ isSeen: true, isFresh: true })
  })

  it('is known from its start until it stops', async () => {
    const { ctx } = lab.service
    await writeSeen(ctx)
    expect(await readOwn(ctx.lifecycle.processId)).toMatchObject({ role: 'web', isSeen: true })
    await writeStopped(ctx)
    expect(await readOwn(ctx.lifecycle.processId)).toBeUndefined()
  })
})

const SEEN_AGAIN = 'a worker is seen again'

/** A process that only serves HTTP, and looks for workers when it is told to. */
async function watchWorkers(given: Given = {}) {
  const { log, saying } = keepLog()
  const web = { ...(await makeProcess({ role: 'web', ...given })), log }
  const pass = createPresence(web)
  const routes = healthRoutes(web, false)
  return {
    /** @returns all that it has logged */
    async look() {
      await pass()
      return saying('').map(({ msg }) => msg)
    },
    ask: async (query: string) => await (await routes.request(`/readyz${query}`)).json(),
  }
}

describe('a process that only serves HTTP', () => {
  it('says once that it has seen no worker for 30 s, and that it sees one again', async () => {
    const web = await watchWorkers()
    const worker = await makeProcess({ seenAgoS: 31 })
    expect(await web.look()).toEqual([NO_WORKER])
    expect(await web.look()).toEqual([NO_WORKER])
    await writeSeen(worker)
    expect(await web.look()).toEqual([NO_WORKER, SEEN_AGAIN])
  })

  it('does not say so in its first 30 s', async () => {
    expect(await (await watchWorkers({ writingForS: 29 })).look()).toEqual([])
    expect(await (await watchWorkers()).look()).toEqual([NO_WORKER])
    await makeProcess({ role: 'all', seenAgoS: 29 })
    expect(await (await watchWorkers()).look()).toEqual([])
  })

  it('neither says so nor takes it back when no process could write for 30 s', async () => {
    const gone = await makeProcess({ seenAgoS: 60 })
    const after = await watchWorkers({ seenAgoS: 60 })
    expect(await after.look()).toEqual([])
    const before = await watchWorkers()
    expect(await before.look()).toEqual([NO_WORKER])
    await lab.database.sql`update processes set seen_at = now() - interval '60 s'`
    expect(await before.look()).toEqual([NO_WORKER])
    await writeSeen(gone)
    expect(await before.look()).toEqual([NO_WORKER, SEEN_AGAIN])
  })

  it('does not say so when the only worker stops, but 30 s after it saw it', async () => {
    const web = await watchWorkers()
    const worker = await makeProcess({ seenAgoS: 28 })
    expect(await web.look()).toEqual([])
    await writeStopped(worker)
    expect(await web.look()).toEqual([])
    await vi.waitFor(async () => expect(await web.look()).toEqual([NO_WORKER]), 10_000)
  })

  it('says so in /readyz?verbose as long as it lasts, and stays ready', async () => {
    const web = await watchWorkers()
    const worker = await makeProcess({ seenAgoS: 31 })
    await web.look()
    expect(await web.ask('?verbose')).toEqual({ status: 'ready', notes: [NO_WORKER] })
    expect(await web.ask('')).toEqual({ status: 'ready' })
    await writeSeen(worker)
    await web.look()
    expect(await web.ask('?verbose')).toEqual({ status: 'ready' })
  })
})
