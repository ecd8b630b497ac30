import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { EVENT_TYPES } from '../../../src/events/event.ts'
import { type NewEvent, recordEvents } from '../../../src/events/record-events.ts'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { createDeleteExpired } from '../../../src/maintenance/delete-expired.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import type { Sql } from '../../../src/platform/postgres/types.ts'
import {
  expectInvalid,
  expectProblem,
  OTHER,
  TWO_ACCOUNTS,
  withKey,
  writeMerchantsFile,
} from '../../support/api.ts'
import { EVENT_DATA } from '../../support/event-data.ts'
import { countBlocked, whileUncommitted } from '../../support/locks.ts'
import { addKey, MERCHANT, startRig } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const TYPES: readonly string[] = EVENT_TYPES

/** Two accounts; only the test publishes here. */
const rig = useRig({ settings: { ROLE: 'web', ...TWO_ACCOUNTS } })
beforeAll(async () => {
  const { merchantCode } = MERCHANT
  await addKey(rig.database, keyOf('payments'), ['payments:read'], merchantCode)
  await addKey(rig.database, keyOf('refunds'), ['payments:read', 'refunds:read'], merchantCode)
  await addKey(rig.database, keyOf('other'), ['payments:read'], OTHER.merchantCode)
})

function keyOf(name: string): string {
  return `a-key-for-${name}-0123456789-0123456789`
}

type Given = Partial<Omit<NewEvent, 'data'>>

/** Records and publishes events; returns the cursor before them. */
async function addEvents(...given: Given[]): Promise<string> {
  const { sql } = rig.database
  const before = await end()
  const events = given.map((one) => ({
    merchantCode: MERCHANT.merchantCode,
    transactionId: 'T-1',
    type: 'payment.updated' as const,
    data: EVENT_DATA[one.type ?? 'payment.updated'],
    ...one,
  }))
  await runInTransaction(sql, (tx) => recordEvents(tx, events))
  await publishEvents(sql)
  return before
}

/** Removes the events of other tests, as if none had ever been published. */
async function emptyFeed(): Promise<void> {
  await rig.database.sql.unsafe(
    'delete from event_outbox; delete from events; delete from event_removals',
  )
}

/** The cursor at the end of the feed. */
const end = async () => (await read('after=latest')).nextCursor

type Seen = { data: { type: string; transactionId: string; id: string }[]; nextCursor: string }

async function read(query: string, key?: string): Promise<Seen> {
  const response = await rig.api(
    `/v1/events?${query}`,
    key === undefined ? {} : withKey(keyOf(key)),
  )
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return JSON.parse(await response.text())
}

const names = ({ data }: Seen) => data.map(({ transactionId }) => transactionId)

it('an empty feed returns a cursor that leads to the first event', async () => {
  await emptyFeed()
  const { data, nextCursor } = await read('')
  expect([data, nextCursor]).toEqual([[], '0'])
  await addEvents({ transactionId: 'T-FIRST' })
  expect(names(await read(`after=${nextCursor}`))).toEqual(['T-FIRST'])
})

describe('a page', () => {
  it('holds at most `limit` events, oldest first, and its cursor leads to the next', async () => {
    const before = await addEvents(
      ...['A', 'B', 'C', 'D', 'E'].map((transactionId) => ({ transactionId })),
    )
    const seen: string[] = []
    let cursor = before
    for (const expected of [['A', 'B'], ['C', 'D'], ['E'], []]) {
      const page = await read(`after=${cursor}&limit=2`)
      expect(names(page)).toEqual(expected)
      expect(page.nextCursor).toBe(page.data.at(-1)?.id ?? cursor)
      seen.push(...names(page))
      cursor = page.nextCursor
    }
    expect(seen).toEqual(['A', 'B', 'C', 'D', 'E'])
  })

  it('holds the requested types; its cursor skips the others', async () => {
    const before = await addEvents(
      ...TYPES.map((type) => ({ type: pick(type), transactionId: type })),
    )
    const wanted = 'transaction.final,refund.created'
    const page = await read(`after=${before}&types=${wanted}`)
    expect(names(page)).toEqual(['transaction.final', 'refund.created'])
    expect(page.nextCursor).toBe(await end())
    expect(names(await read(`after=${before}`))).toEqual(TYPES)
  })

  it('holds nothing of another account, even when it is named', async () => {
    const { merchantCode } = OTHER
    const before = await addEvents(
      { transactionId: 'OURS' },
      { transactionId: 'THEIRS', merchantCode },
    )
    expect(names(await read(`after=${before}`, 'payments'))).toEqual(['OURS'])
    expect(names(await read(`after=${before}`, 'other'))).toEqual(['THEIRS'])
    const named = `after=${before}&merchantCode=${merchantCode}`
    expect(names(await read(named, 'payments'))).toEqual([])
    expect(names(await read(named))).toEqual(['THEIRS'])
    expect(names(await read(`after=${before}`))).toEqual(['OURS', 'THEIRS'])
    expect((await read(`after=${before}`, 'other')).nextCursor).toBe(await end())
  })

  it('advances its cursor past thousands of events that do not match', async () => {
    const before = await end()
    await rig.database.sql`
      insert into events (merchant_code, transaction_id, type, data, at)
      select case when n % 2 = 0 then ${OTHER.merchantCode} else ${MERCHANT.merchantCode} end, 'T',
        'payment.updated', ${JSON.stringify(EVENT_DATA['payment.updated'])}::text::jsonb, now()
      from generate_series(1, 25000) as n`
    await addEvents({ transactionId: 'RARE', type: 'sync.abandoned' })
    for (const key of [undefined, 'payments']) {
      const pages: Seen[] = []
      let cursor = before
      while (pages.at(-1)?.data.length !== 1) {
        const page = await read(`after=${cursor}&types=sync.abandoned`, key)
        expect(Number(page.nextCursor)).toBeGreaterThan(Number(cursor))
        cursor = page.nextCursor
        pages.push(page)
      }
      expect(pages.flatMap(names)).toEqual(['RARE'])
      expect(pages).toHaveLength(key === undefined ? 3 : 2)
    }
  })
})

function pick(type: string): NewEvent['type'] {
  const found = ([...TYPES] as NewEvent['type'][]).find((one) => one === type)
  if (!found) throw new Error(`no type ${type}`)
  return found
}

describe('a key', () => {
  it('gets the events its scopes allow, and is refused types beyond them', async () => {
    const before = await addEvents(
      ...TYPES.map((type) => ({ type: pick(type), transactionId: type })),
    )
    const payments = [
      ...['payment.created', 'payment.updated', 'transaction.paid', 'transaction.updated'],
      ...['transaction.final', 'sync.abandoned'],
      'discrepancy.found',
      'discrepancy.updated',
    ]
    const refunds = [
      ...['refund.created', 'refund.updated'],
      ...['external_refund.found', 'external_refund.updated'],
    ]
    const seen = async (key: string) => names(await read(`after=${before}`, key)).sort()
    expect(await seen('payments')).toEqual([...payments].sort())
    expect(await seen('refunds')).toEqual([...payments, ...refunds].sort())
    for (const [key, type] of [
      ['payments', 'refund.updated'],
      ['payments', 'payment.created,refund.created'],
    ] as const) {
      const response = await rig.api(`/v1/events?types=${type}`, withKey(keyOf(key)))
      await expectProblem(response, 403, 'scope_missing')
    }
  })
})

describe('a key of every account', () => {
  const NEW = { ...OTHER, merchantCode: 'NEWEST' }

  it('misses no event of an account that another process was started with, whichever process it asks', async () => {
    const more = writeMerchantsFile([MERCHANT, OTHER, NEW])
    const { database } = rig
    const settings = { ROLE: 'web', MERCHANTS_FILE: more.path }
    const young = await startRig({ database, settings })
    onTestFinished(async () => {
      await young.stop()
      more.remove()
    })
    const { merchantCode } = NEW
    const before = await addEvents({ transactionId: 'T-NEW', merchantCode })
    for (const query of ['', `&merchantCode=${merchantCode}`]) {
      expect(names(await read(`after=${before}${query}`))).toEqual(['T-NEW'])
      const answer = await young.api(`/v1/events?after=${before}${query}`)
      expect(names(JSON.parse(await answer.text()))).toEqual(['T-NEW'])
    }
  })

  it('gets the events of no account, unless it names one; a key of named accounts never does', async () => {
    const before = await addEvents({ transactionId: 'NONE', merchantCode: '*' })
    expect(names(await read(`after=${before}`))).toEqual(['NONE'])
    expect(names(await read(`after=${before}`, 'payments'))).toEqual([])
    for (const named of [MERCHANT.merchantCode, '*', '%00', 'UNKNOWN']) {
      expect(names(await read(`after=${before}&merchantCode=${named}`))).toEqual([])
    }
  })
})

describe.each(['/v1/events', '/v1/events/stream'])('%s refuses', (path) => {
  it.each([
    ['after', 'after=newest'],
    ['after', 'after=LATEST'],
    ['after', 'after=-1'],
    ['after', 'after=1.5'],
    ['after', 'after='],
    ['after', 'after=1234567890123456789'],
    ['types', 'types=payment.deleted'],
    ['types', 'types='],
    ['types', 'types=payment.created,,refund.created'],
    ['cursor', 'cursor=1'],
  ])('%s in %s', async (field, query) => {
    const problem = await expectProblem(await rig.api(`${path}?${query}`), 422, 'invalid_request')
    expect(problem.errors?.[0]?.path.split('.')[0]).toBe(field)
    if (field === 'after') expect(problem.detail).toContain('latest')
  })

  it('a cursor beyond its end: an empty page would hide what it skips', async () => {
    const beyond = Number(await end()) + 1
    await expectInvalid(await rig.api(`${path}?after=${beyond}`), 'after')
    expect(await read(`after=${beyond - 1}`)).toMatchObject({ data: [] })
  })
})

it.each(['limit=0', 'limit=201', 'limit=x'])('%s is refused', async (query) => {
  await expectInvalid(await rig.api(`/v1/events?${query}`), 'limit')
})

it('wait is at most 60 s', async () => {
  await expectInvalid(await rig.api('/v1/events?wait=61'), 'wait')
})

describe('a long poll', () => {
  /** Resolves when so many readers wait, and what they read before that is answered. */
  const waiting = (n: number) => {
    const { feedWaiters, db } = rig.service.ctx
    const there = () => feedWaiters.count() === n && db.reads.count() === 0
    return waitUntil(there, { what: `${n} waiting readers` })
  }

  it('returns at once when there are events, and an empty page at the time-out', async () => {
    const before = await addEvents({ transactionId: 'THERE' })
    expect(names(await read(`after=${before}&wait=60`))).toEqual(['THERE'])
    const after = await end()
    const began = performance.now()
    expect(await read(`after=${after}&wait=1`)).toEqual({ data: [], nextCursor: after })
    expect(performance.now() - began).toBeGreaterThan(950)
  })

  it('returns on the events it waits for, and not on other types or accounts', async () => {
    const after = await end()
    const answer = read(`after=${after}&wait=60&types=sync.abandoned`, 'payments')
    await waiting(1)
    const { merchantCode } = OTHER
    const sharedReads = vi.spyOn(rig.service.ctx.feedWaiters, 'shareRead')
    await addEvents({ type: 'payment.updated' }, { type: 'sync.abandoned', merchantCode })
    const passed = await end()
    await waitUntil(() => sharedReads.mock.calls.some(([key]) => key === passed), {
      what: 'it has passed over them',
    })
    sharedReads.mockRestore()
    await waiting(1)
    await addEvents({ type: 'sync.abandoned', transactionId: 'OURS' })
    const page = await answer
    expect(names(page)).toEqual(['OURS'])
    expect(page.nextCursor).toBe(page.data[0]?.id)
  })

  it('shares its reads with every reader at the same cursor', async () => {
    const after = await end()
    const answers = Array.from({ length: 20 }, () => read(`after=${after}&wait=60`))
    await waiting(20)
    const reads = vi.spyOn(rig.service.ctx.feedWaiters, 'shareRead')
    await addEvents({ transactionId: 'ALL' })
    for (const answer of answers) expect(names(await answer)).toEqual(['ALL'])
    const shared = reads.mock.results.map(({ value }) => value)
    reads.mockRestore()
    expect([shared.length, new Set(shared).size]).toEqual([20, 1])
  })
})

describe('an event older than RETENTION_DAYS', () => {
  it('is deleted from the beginning of the feed, and a cursor before it expires', async () => {
    const { sql } = rig.database
    const removeAll = async () => {
      const remove = createDeleteExpired(rig.service.ctx)
      while ((await remove()) > 0);
    }
    await emptyFeed()
    await addEvents({ transactionId: 'OLDEST' })
    await addEvents({ transactionId: 'OLD' })
    const old = await end()
    await addEvents({ transactionId: 'YOUNG' })
    await addEvents({ transactionId: 'OLD, BEHIND A YOUNG ONE' })
    const last = await end()
    await removeAll()
    expect((await read('limit=1')).data[0]?.transactionId).toBe('OLDEST')
    await sql`update events set at = now() - interval '399 days' where id <= ${Number(old)}`
    await removeAll()
    expect((await read('limit=1')).data[0]?.transactionId).toBe('OLDEST')
    await sql`
      update events set at = now() - interval '401 days' where id <= ${Number(old)} or id = ${Number(last)}`
    await removeAll()
    expect(names(await read(''))).toEqual(['YOUNG', 'OLD, BEHIND A YOUNG ONE'])
    expect(names(await read(`after=${old}`))).toEqual(['YOUNG', 'OLD, BEHIND A YOUNG ONE'])
    for (const path of ['/v1/events', '/v1/events/stream']) {
      const response = await rig.api(`${path}?after=${Number(old) - 1}`)
      await expectProblem(response, 410, 'cursor_expired')
    }
    await sql`update events set at = now() - interval '401 days'`
    await removeAll()
    expect(await read('')).toEqual({ data: [], nextCursor: last })
    expect(await read(`after=${last}`)).toEqual({ data: [], nextCursor: last })
    await addEvents({ transactionId: 'NEW' })
    expect(names(await read(`after=${last}`))).toEqual(['NEW'])
  })
})

it('slow reads of the feed leave most connections to others', async () => {
  const lock = (held: Sql) => held`lock table events in access exclusive mode`
  const readers = await whileUncommitted(rig.database, lock, async () => {
    const asked = Array.from({ length: 30 }, () => rig.api('/v1/events'))
    const isHeld = async () => (await countBlocked(rig.database)) >= 1
    await waitUntil(isHeld, { what: 'readers that use their share of the connections' })
    expect((await rig.api('/v1/transactions/T-none')).status).toBe(404)
    expect(await countBlocked(rig.database)).toBe(1)
    return asked
  })
  const statuses = (await Promise.all(readers)).map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200]))
})
