import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { readActor } from '../../../src/cli/database.ts'
import {
  compareServer,
  MAY_SEND_SQL,
  maySend,
  type Sighting,
} from '../../../src/db/installation.ts'
import { PUBLISHING_LOCK } from '../../../src/db/names.ts'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { reconcileUnqueried } from '../../../src/maintenance/rechecks.ts'
import { confirmNothingLost, createServerWatch } from '../../../src/maintenance/restore.ts'
import { openSession } from '../../../src/platform/postgres/pool.ts'
import { createDeliveryRound } from '../../../src/webhooks/deliver.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { addPrincipal, type TestKey } from '../../support/approvals.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { runCli } from '../../support/cli.ts'
import { findEnd, readAllEvents } from '../../support/feed.ts'
import { serve } from '../../support/gateway.ts'
import { waitUntilBlocked } from '../../support/locks.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { postIpn, signIpn } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'
import { useRefundLab } from '../../support/use-started.ts'
import { publish, register, work } from '../../support/webhooks.ts'

/** One service whose passes the test runs itself. The server is the same all the time: the stored one is what changes. */
const lab = useRefundLab({ settings: { WEBHOOK_ALLOW_PRIVATE: 'true' } })

const sql = () => lab.database.sql

/** As if the database that the service knew had been another one, or the same one at another moment. */
async function pretend(stored: {
  identifier?: string
  timeline?: number
  standby?: boolean
  ageS?: number
}) {
  const { identifier = null, timeline = null, standby = false, ageS = 0 } = stored
  await sql()`
    update installation set system_identifier = coalesce(${identifier}, system_identifier),
      timeline = coalesce(${timeline}, timeline), has_standby = ${standby},
      seen_at = clock_timestamp() - ${ageS}::float8 * interval '1 s'`
}

afterEach(async () => {
  await pretend({})
  await compareServer(sql())
  await sql()`
    update installation set stopped_at = null, stopped_because = null, trusted_at = null,
      trusted_seen_at = null, restored_at = least(restored_at, clock_timestamp())`
})

const restored = (...args: string[]) =>
  runCli(['restored', ...args], { DATABASE_URL: lab.database.url })

async function stop(): Promise<void> {
  await pretend({ identifier: '1' })
  expect(await compareServer(sql())).toMatchObject({
    because: expect.stringContaining('another server'),
  })
}

async function readTag(id: string): Promise<string> {
  return (await lab.api(`/v1/transactions/${id}`)).headers.get('etag') ?? ''
}

async function readReady() {
  const response = await fetch(`${lab.service.url}/readyz`)
  return { status: response.status, body: await response.json() }
}

describe('a server that is not the one of before', () => {
  it.each([
    ['with another identifier', { identifier: '1' }, true],
    [
      'with another identifier, although it had a standby',
      { identifier: '1', standby: true },
      true,
    ],
    ['on another timeline', { timeline: 0 }, true],
    [
      'on another timeline, taken over by a synchronous standby',
      { timeline: 0, standby: true },
      false,
    ],
    [
      'on another timeline, with a standby once, as an old backup says',
      { timeline: 0, standby: true, ageS: 300 },
      true,
    ],
    ['and is the same', {}, false],
  ])('%s: stops sending or not', async (_, stored, stops) => {
    await pretend(stored)
    expect((await compareServer(sql())) !== undefined).toBe(stops)
    // What was found is stored, so that it is found once.
    expect((await compareServer(sql())) !== undefined).toBe(stops)
    expect((await restored('--nothing-lost')).code).toBe(0)
    expect(await compareServer(sql())).toBeUndefined()
  })
})

it.each([
  ['has what it has seen committed', 0, false],
  ['was left behind a moment before', 10, true],
])(
  'a process that goes on believes a standby that %s, however long the promotion took',
  async (_, behindS, stops) => {
    const sighting: Sighting = { timeline: undefined, seenAt: undefined }
    await compareServer(sql(), sighting)
    const [{ at = '' } = {}] = await sql()<{ at: string }[]>`
      update installation set timeline = 0, has_standby = true, seen_at = seen_at - ${behindS}::float8 * interval '1 s'
      returning seen_at::text as at`
    expect(at).not.toBe('')
    expect((await compareServer(sql(), sighting)) !== undefined).toBe(stops)
  },
)

describe('while commits may have been lost', () => {
  it.each([
    ['before anything has noticed it', async () => pretend({ timeline: 0 })],
    ['once it is noticed', stop],
  ])('no refund is sent and no event published, %s', async (_, lose) => {
    const payment = await lab.open()
    while ((await publishEvents(sql())) > 0);
    await lose()
    const id = await lab.ask(payment, '10')
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
    expect((await lab.row(id)).status).toBe('pending')
    expect(await publishEvents(sql())).toBe(0)
    expect((await restored('--nothing-lost')).code).toBe(0)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
    expect(await publishEvents(sql())).toBeGreaterThan(0)
  })

  it('no webhook is sent, and all that the feed has is sent afterwards', async () => {
    const receiver = await serve((response) => response.writeHead(204).end())
    await register(lab, receiver.url)
    await stop()
    await publish(lab, ['T-WEBHOOK'])
    const { count } = await createDeliveryRound(lab.service.ctx)()
    expect([count, receiver.seen]).toEqual([0, []])
    await restored()
    await work(lab.service.ctx)
    expect(receiver.seen).toHaveLength(1)
  })

  it('notifications are stored and queries go on', async () => {
    await stop()
    const payment = await lab.open()
    expect(
      (await postIpn(lab.service.url, signIpn({ svc_TransactionID: 'T-STORED' }))).status,
    ).toBe(200)
    expect((await lab.api(`/v1/payments/${payment.id}`)).status).toBe(200)
    expect((await lab.api('/v1/transactions/T-STORED')).status).toBe(200)
    await restored('--nothing-lost')
  })

  it('a line of the log and /readyz name the command, and the log once a minute at most', async () => {
    expect((await readReady()).body).toEqual({ status: 'ready' })
    await stop()
    const kept = keepLog()
    const watch = createServerWatch({ db: lab.service.ctx.db, log: kept.log })
    await watch()
    await watch()
    expect(kept.errors()).toEqual([
      expect.objectContaining({ msg: expect.stringMatching(/^nothing is sent since .+ restored/) }),
    ])
    const isShown = { status: 'ready', stopped: kept.errors()[0]?.msg }
    await expect.poll(readReady).toEqual({ status: 200, body: isShown })
    await restored('--nothing-lost')
    await watch()
    expect(kept.saying('are sent again')).toHaveLength(1)
  })

  it('no ETag of before is a 304 on another timeline, before anything has noticed it', async () => {
    const { transactionId } = await lab.open()
    const path = `/v1/transactions/${transactionId}`
    const before = await readTag(transactionId)
    await pretend({ timeline: 0 })
    const headers = { 'if-none-match': before }
    expect((await lab.api(path, { headers })).status).toBe(200)
    await restored('--nothing-lost')
    expect((await lab.api(path, { headers })).status).toBe(304)
  })

  it('no ETag of before is a 304, and none of meanwhile is one afterwards', async () => {
    const { transactionId } = await lab.open()
    const path = `/v1/transactions/${transactionId}`
    const is304 = async (tag: string) =>
      (await lab.api(path, { headers: { 'if-none-match': tag } })).status === 304
    const before = await readTag(transactionId)
    expect(await is304(before)).toBe(true)
    await stop()
    const meanwhile = await readTag(transactionId)
    expect([await is304(before), await is304(meanwhile)]).toEqual([false, true])
    expect(await restored()).toMatchObject({ code: 0, err: '' })
    expect([await is304(before), await is304(meanwhile)]).toEqual([false, false])
  })

  it('a cursor that the feed does not know is refused for now, and is 410 when the restore is confirmed', async () => {
    await publishEvents(sql())
    const lost = String(Number(await findEnd(lab)) + 3)
    await stop()
    await expectProblem(await lab.api(`/v1/events?after=${lost}`), 503, 'unavailable')
    await restored()
    await expectProblem(await lab.api(`/v1/events?after=${lost}`), 410, 'cursor_expired')
  })
})

describe('restored', () => {
  it('holds what was not sent for a person, asks the gateway about what is open, and raises the epoch', async () => {
    const [held, sent] = [await lab.open(), await lab.open()]
    const waiting = await lab.ask(held, '10')
    await lab.fault('acceptThenReset')
    const unknown = await lab.send(sent, '20')
    expect((await lab.row(unknown)).status).toBe('unknown')
    await publishEvents(sql())
    const cursor = await findEnd(lab)
    await stop()
    const both = [held.transactionId, sent.transactionId]
    await sql()`
      update transactions set due_at = now() + interval '1 hour' where transaction_id = any(${both})`
    const { code, out, entries } = await restored('--json')
    expect(code).toBe(0)
    const { epoch, ...done } = JSON.parse(out)
    expect(done).toEqual({ held: expect.any(Number), asked: expect.any(Number) })
    expect(done.held).toBeGreaterThan(0)
    expect(entries.at(-1)).toContain(`epoch ${epoch}`)
    const { hold } = JSON.parse(await (await lab.api(`/v1/refunds/${waiting}`)).text())
    const reason = expect.stringContaining('the database was restored')
    expect(hold).toMatchObject({ reason })
    expect(JSON.parse(await (await lab.api(`/v1/refunds/${unknown}`)).text()).hold).toBeNull()
    // At once, or after the distance that queries of one transaction keep.
    const due = await sql()`
      select from transactions
      where transaction_id = any(${both}) and due_at <= now() + interval '1 minute'`
    expect(due).toHaveLength(2)
    await lab.pass(held)
    expect(await lab.sent(waiting)).toBe(0)

    await expectProblem(await lab.api(`/v1/events?after=${cursor}`), 410, 'cursor_expired')
    while ((await publishEvents(sql())) > 0);
    const ids = (await readAllEvents(lab)).map(({ id }) => Number(id))
    expect(ids.length).toBeGreaterThan(0)
    expect(Math.min(...ids)).toBeGreaterThan(Number(cursor))
    expect(Math.min(...ids)).toBeGreaterThan(epoch * 1e6)
  })

  it('repeats no event id, cursor or ETag of a restore that the restored backup does not know', async () => {
    const { transactionId } = await lab.open()
    const setBack = async () => {
      await sql()`update installation set epoch = 0`
      await sql()`delete from event_removals`
      await sql()`delete from events`
      await sql()`select setval(pg_get_serial_sequence('events', 'id'), 1, false)`
    }
    const confirm = async () => {
      expect((await restored()).code).toBe(0)
      await lab.open()
      while ((await publishEvents(sql())) > 0);
      return { cursor: await findEnd(lab), tag: await readTag(transactionId) }
    }
    await setBack()
    const once = await confirm()
    await setBack()
    // Nobody confirms two restores within a second.
    await pause(1_001)
    const again = await confirm()
    const [first] = await readAllEvents(lab)
    expect(Number(first?.id)).toBeGreaterThan(Number(once.cursor))
    expect(again.tag).not.toBe(once.tag)
    await expectProblem(await lab.api(`/v1/events?after=${once.cursor}`), 410, 'cursor_expired')
  })

  it('continues behind every event, however far ahead the clock of the one before was', async () => {
    await restored()
    await sql()`
      select setval(s.name, nextval(s.name) + 2000000000000)
      from (select pg_get_serial_sequence('events', 'id') as name) as s`
    await lab.open()
    while ((await publishEvents(sql())) > 0);
    const cursor = await findEnd(lab)
    await restored()
    await expectProblem(await lab.api(`/v1/events?after=${cursor}`), 410, 'cursor_expired')
    expect(Number(await findEnd(lab))).toBeGreaterThan(Number(cursor))
  })

  it('leaves a refund to a person whose payment shows growth that may be its own, forgotten with its row', async () => {
    const payment = await lab.open()
    await lab.show(payment, '30')
    const id = await lab.ask(payment, '30')
    await restored()
    await sql()`update refunds set hold = null where refund_id = ${id}`
    await lab.pass(payment)
    expect(await lab.row(id)).toMatchObject({ status: 'needs_review', review: 'contradicted' })
    expect(await lab.sent(id)).toBe(0)
  })

  it('says when nothing was stopped, and refuses what it does not know', async () => {
    expect(await restored('--nothing-lost', '--json')).toMatchObject({
      code: 0,
      out: '{\n  "stopped": null\n}\n',
    })
    expect((await restored('--all')).code).toBe(2)
  })
})

/** The service's connection, to a server that is taken over after its first answer. */
function failOver() {
  let statements = 0
  const connection = new Proxy(sql(), {
    get(target, name) {
      if (name !== 'unsafe') return Reflect.get(target, name)
      return async (text: string, values: number[] = []) => {
        const rows = await target.unsafe(text, values)
        statements += 1
        if (statements > 1) return rows
        return rows.map((known) => ({
          ...known,
          timeline: 0,
          server: { ...known.server, timeline: 0 },
        }))
      }
    },
  })
  return { sql: connection, count: () => statements }
}

describe('a standby that was trusted', () => {
  /** Returns what a process has seen before the standby takes over, which was that far behind. */
  async function takeOver(behindS: number) {
    const sighting: Sighting = { timeline: undefined, seenAt: undefined }
    await compareServer(sql(), sighting)
    await pretend({ timeline: 0, standby: true, ageS: behindS })
    return () => ({ ...sighting, timeline: 0 })
  }

  it.each([
    ['has', 0, false],
    ['lacks', 10, true],
  ])(
    'by a process that had seen less, and %s what another saw: stops sending or not',
    async (_, behindS, stops) => {
      const seen = await takeOver(behindS)
      expect(await compareServer(sql())).toBeUndefined()
      const stop = await compareServer(sql(), seen())
      expect(stop !== undefined).toBe(stops)
      // A third one that saw as much says it once more, which is no other loss.
      expect(await compareServer(sql(), seen())).toEqual(stop)
    },
  )

  it('is not trusted by a process that missed a takeover, if the one before lacked what it saw', async () => {
    const seen = await takeOver(10)
    expect(await compareServer(sql())).toBeUndefined()
    await pretend({ timeline: 0, standby: true })
    expect(await compareServer(sql(), { ...seen(), timeline: -1 })).toBeDefined()
  })

  it('gets nothing to send until the others have had the time to compare it, whatever the clock does then', async () => {
    const seen = await takeOver(0)
    expect(await compareServer(sql())).toBeUndefined()
    expect(await maySend(sql())).toBe(false)
    expect(await compareServer(sql(), seen())).toBeUndefined()
    expect(await maySend(sql())).toBe(false)
    // As if the commit of that sighting, too, had waited for a standby.
    await sql()`
      update installation set trusted_at = trusted_at - interval '1 hour', seen_at = seen_at - interval '1 hour'`
    expect(await maySend(sql())).toBe(false)
    expect(await compareServer(sql(), seen())).toBeUndefined()
    expect(await maySend(sql())).toBe(true)
    await sql()`update installation set trusted_at = clock_timestamp() + interval '1 hour'`
    expect(await maySend(sql())).toBe(true)
    // On Citus the clock that has dated it may be a second ahead.
    const times = ['1 s', '-12 s', '-16 s']
    const may = []
    for (const time of times) {
      await sql()`update installation set trusted_at = clock_timestamp() + ${time}::interval`
      may.push(await maySend(sql()))
    }
    expect(may).toEqual([false, false, true])
  })

  it('gets nothing to send while the commit of that trust waits for a standby, however long', async () => {
    const seen = await takeOver(0)
    expect(await compareServer(sql())).toBeUndefined()
    await sql()`update installation set trusted_at = trusted_at - interval '1 hour'`
    expect(await maySend(sql())).toBe(false)
    expect(await compareServer(sql(), seen())).toBeUndefined()
    expect(await maySend(sql())).toBe(false)
  })

  it('is not trusted by a process that missed a takeover, if nobody has seen the one before lately', async () => {
    const seen = await takeOver(0)
    expect(await compareServer(sql())).toBeUndefined()
    await pretend({ timeline: 0, standby: true, ageS: 300 })
    expect(await compareServer(sql(), { ...seen(), timeline: -1 })).toBeDefined()
  })

  it('is told in the log once', async () => {
    await sql()`update installation set trusted_seen_at = seen_at`
    const kept = keepLog()
    const db = { ...lab.service.ctx.db, sql: failOver().sql }
    const watch = createServerWatch({ db, log: kept.log })
    for (let round = 1; round <= 3; round += 1) await watch()
    expect(kept.saying('a standby has taken over')).toHaveLength(1)
  })

  it('is compared with what was visible, even if no standby had it', async () => {
    const sighting: Sighting = { timeline: undefined, seenAt: undefined }
    await compareServer(sql(), sighting)
    const seen = { ...sighting }
    const [row] = await sql()`
      update installation set seen_at = seen_at + interval '10 s'
      returning (extract(epoch from seen_at) * 1000000)::bigint as at`
    let compared: Promise<unknown> = Promise.resolve()
    await sql().begin(async (tx) => {
      await tx`select from installation for update`
      compared = compareServer(sql(), seen).catch(() => 'cancelled')
      await waitUntilBlocked(lab.database)
      await tx`
        select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and pg_blocking_pids(pid) <> '{}'`
      expect(await compared).toBe('cancelled')
    })
    expect(seen.seenAt).toBe(row?.at)
  })

  it('is not taken for the server of before if it takes over while that is looked at', async () => {
    const seen: Sighting = { timeline: undefined, seenAt: undefined }
    const [row] = await sql()`
      select (extract(epoch from seen_at) * 1000000)::bigint as at from installation`
    const failingOver = failOver()
    await compareServer(failingOver.sql, seen)
    expect(failingOver.count()).toBe(2)
    expect(seen).toEqual({ timeline: 0, seenAt: row?.at, isTrusted: false })
  })
})

describe('a second loss', () => {
  const loseAgain = async () => {
    await pretend({ timeline: 0 })
    return await compareServer(sql())
  }

  it('while nothing is sent is said beside the first, and the confirmation names both', async () => {
    await stop()
    const first = await compareServer(sql())
    const second = await loseAgain()
    expect(second?.because).toMatch(
      /^it is another server than before .+, and then it continues from an earlier/,
    )
    expect(second?.since).not.toBe(first?.since)
    expect(await compareServer(sql())).toEqual(second)
    expect((await restored('--nothing-lost')).out).toContain(second?.because)
  })

  it('is told from the first to the microsecond, also by a session that reads times as dates', async () => {
    await stop()
    const session = openSession(lab.database.url, 'test')
    try {
      const { log } = lab.service.ctx
      await expect(confirmNothingLost(session.sql, log, readActor())).resolves.toBeDefined()
    } finally {
      await session.close()
    }
    expect(await compareServer(sql())).toBeUndefined()
  })

  it('during a confirmation is not confirmed with the first', async () => {
    await stop()
    let ended: ReturnType<typeof restored> | undefined
    await sql().begin(async (tx) => {
      await tx.unsafe(`select pg_advisory_xact_lock(${PUBLISHING_LOCK})`)
      ended = restored()
      await waitUntilBlocked(lab.database)
      await loseAgain()
    })
    const { code, err } = (await ended) ?? {}
    expect(code).toBe(1)
    expect(err).toContain('commits may have been lost again meanwhile')
    expect(await compareServer(sql())).toBeDefined()
    expect((await restored()).code).toBe(0)
    expect(await compareServer(sql())).toBeUndefined()
  })
})

it.each([
  ['of this server', null],
  ['of another one', '1'],
])(
  'the command line leaves for the next start what shows that the clock went back: when a process saw the database %s',
  async (_, identifier) => {
    await sql()`
      update installation set seen_at = seen_at + interval '1 hour',
        system_identifier = coalesce(${identifier}, system_identifier)`
    expect((await restored('--nothing-lost')).code).toBe(0)
    const [row] = await sql()`
      select seen_at > clock_timestamp() + interval '50 min' as "isAhead" from installation`
    expect(row).toEqual({ isAhead: true })
  },
)

it('what decides is asked of the server that runs the statement', async () => {
  await sql().begin(async (tx) => {
    const may = async () => (await tx.unsafe(`select ${MAY_SEND_SQL} as may`))[0]?.may
    expect(await may()).toBe(true)
    await tx`delete from installation`
    expect(await may()).toBe(false)
    await tx`rollback`
  })
})

describe('a restore that is confirmed', () => {
  const asks = async (payment: LabPayment, { key }: TestKey) =>
    (await expectTaken(await ask({ url: lab.service.url, key }, payment.id, { amount: '30' }))).id
  const changeHold = (method: 'PUT' | 'DELETE', refundId: string, { key }: TestKey) =>
    fetch(`${lab.service.url}/v1/holds/refund/${refundId}`, {
      method,
      ...withKey(key, { 'content-type': 'application/json' }),
      body: JSON.stringify({ reason: 'ticket 4711' }),
    })

  it('holds anew what is held, so that whoever asked for it does not release it', async () => {
    const asker = await addPrincipal(lab.database)
    await addPrincipal(lab.database)
    const refundId = await asks(await lab.open(), asker)
    expect((await changeHold('PUT', refundId, asker)).status).toBe(200)
    expect((await restored()).code).toBe(0)
    const { hold } = await lab.row(refundId)
    expect(hold?.reason).toMatch(/^the database was restored: .*; it was held before: ticket 4711$/)
    expect((await changeHold('DELETE', refundId, asker)).status).toBe(403)
  })

  it('holds also what is asked for until the epoch is raised', async () => {
    const payment = await lab.open()
    let ended: Promise<unknown> = Promise.resolve()
    let refundId = ''
    await sql().begin(async (tx) => {
      await tx.unsafe(`select pg_advisory_xact_lock(${PUBLISHING_LOCK})`)
      ended = restored()
      await waitUntilBlocked(lab.database)
      refundId = await lab.ask(payment, '30')
    })
    await ended
    expect((await lab.row(refundId)).hold).not.toBeNull()
  })

  it('fails nothing whose time is over, neither before nor after it is confirmed', async () => {
    const { payment, refundId } = await lab.openAsked()
    await sql()`
      update refunds set requested_at = now() - interval '8 days' where refund_id = ${refundId}`
    await sql()`update installation set restored_at = null`
    await stop()
    await reconcileUnqueried(lab.service.ctx)
    expect(await lab.status(refundId)).toBe('needs_review')
    expect((await restored()).code).toBe(0)
    // What was sent after the backup is not settled yet.
    await lab.passShowing(payment, '0')
    expect(await lab.left(payment)).toBe('70')
  })

  it('leaves to a person also what was asked for at a server whose clock was ahead', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    const shift = (by: string) => sql()`
      update refunds set requested_at = requested_at + ${by}::interval where refund_id = ${refundId}`
    await shift('1 hour')
    expect((await restored()).code).toBe(0)
    await lab.passShowing(payment, '30')
    expect(await lab.status(refundId)).toBe('needs_review')
    await shift('-1 hour')
  })

  it('leaves a refund with an unknown outcome to a person where growth may be its own', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    expect(await lab.status(refundId)).toBe('unknown')
    expect((await restored()).code).toBe(0)
    // Another refund of 30, whose row was lost, has moved it.
    await lab.passShowing(payment, '30')
    expect(await lab.status(refundId)).toBe('needs_review')
  })
})
