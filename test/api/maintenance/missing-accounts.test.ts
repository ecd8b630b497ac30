import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { isUnendedSql } from '../../../src/db/schema.ts'
import { Discrepancy } from '../../../src/discrepancies/routes.ts'
import { checkMissingAccounts } from '../../../src/maintenance/missing-accounts.ts'
import { reconcileUnqueried } from '../../../src/maintenance/rechecks.ts'
import { Refund } from '../../../src/refunds/view.ts'
import { readPage, seedTransaction } from '../../support/api.ts'
import { seedPaid } from '../../support/ask.ts'
import { borrowRig } from '../../support/borrow-rig.ts'
import { type BorrowedDatabase, borrowDatabase } from '../../support/database.ts'
import { MERCHANT, type Rig } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'

const LEFT = 'LEFT1'
const IDLE = 'LEFT2'
const DONE = 'LEFT3'

const Lines = z.array(z.looseObject({ msg: z.string() }))
const logged = keepLog()
let database: BorrowedDatabase
let rig: Rig
beforeAll(async () => {
  database = await borrowDatabase()
  await database.sql`
    insert into merchant_accounts (merchant_code) values (${LEFT}), (${IDLE}), (${DONE})`
  for (const id of ['T-LEFT2', 'T-LEFT2-B']) {
    const dueAt = id === 'T-LEFT2' ? '2026-01-01' : '2026-02-01'
    await seedTransaction(database, { transactionId: id, merchantCode: IDLE, dueAt })
  }
  await seedTransaction(database, { transactionId: 'T-DONE', merchantCode: DONE, state: 'paid' })
  await seedTransaction(database, { transactionId: 'T-OURS', dueAt: '2026-01-01' })
  rig = await borrowRig({ database, settings: { ROLE: 'web' }, log: logged.log })
})
afterAll(async () => {
  await rig.stop()
  await database.release()
})

/** Ends all refunds without the service, and with them what `checkMissingAccounts` has found. */
async function endRefunds(): Promise<void> {
  await database.sql`
    update refunds set status = 'failed', failure_source = 'service', due_at = null
    where ${database.sql.unsafe(isUnendedSql('refunds'))}`
  await checkMissingAccounts(rig.service.ctx)
}
afterEach(async () => {
  await endRefunds()
  // A decision about a refund makes its transaction due.
  await database.sql`update transactions set due_at = null where merchant_code = ${LEFT}`
})

let refunds = 0
/** Stores a refund of an account that is no longer configured. */
async function seedRefund(
  more: Record<string, string | number | null> = {},
  needsApproval = false,
): Promise<string> {
  refunds += 1
  const id = crypto.randomUUID()
  const payment = await seedPaid(database, { merchantCode: LEFT, paymentId: `P-LEFT-${refunds}` })
  const row = {
    merchant_code: LEFT,
    refund_id: id,
    transaction_id: payment.transactionId,
    payment_id: payment.id,
    amount: '30',
    idempotency_key: id,
    fingerprint: Buffer.alloc(0),
    fingerprint_key_id: 'test',
    requested_by: 'test',
    requested_principal: 'test',
    status: 'pending',
    due_at: '2026-01-01',
    needs_approval: needsApproval,
    ...more,
  }
  await database.sql`insert into refunds ${database.sql(row)}`
  return id
}

const SENT = { attempts: 1, first_sent_at: '2026-11-01', last_sent_at: '2026-11-01' }

/** What earlier tests have left behind. */
const earlier = new Set<string>()
beforeEach(async () => {
  for (const { id } of await list()) earlier.add(id)
})

/** Lists the discrepancies that the test has found. */
async function list() {
  const { data } = await readPage(await rig.api('/v1/discrepancies?kind=account_missing'))
  const all = data.map((one) => Discrepancy.strict().parse(one))
  return all.filter(({ id }) => !earlier.has(id))
}

async function readStatus(id: string) {
  return Refund.parse(await (await rig.api(`/v1/refunds/${id}`)).json()).status
}

async function post(path: string, body: object) {
  const response = await rig.api(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json() }
}

async function readGauges(): Promise<string[]> {
  const text = await (await rig.api('/metrics')).text()
  return text.split('\n').filter((line) => line.startsWith('missing_account_work{'))
}

describe('an account that is no longer configured, with open work', () => {
  it('is warned of at start, counted in the metrics, and no other is', async () => {
    const lines = Lines.parse(JSON.parse(logged.text()))
    const warned = lines.filter(({ msg }) => msg.includes('no longer configured'))
    expect(warned).toMatchObject([
      { merchantCode: IDLE, work: 'refunds', count: 0 },
      { merchantCode: IDLE, work: 'transactions', count: 2 },
    ])
    await seedRefund()
    expect(await readGauges()).toEqual([
      `missing_account_work{merchant="${LEFT}",work="refunds"} 1`,
      `missing_account_work{merchant="${LEFT}",work="transactions"} 0`,
      `missing_account_work{merchant="${IDLE}",work="refunds"} 0`,
      `missing_account_work{merchant="${IDLE}",work="transactions"} 2`,
    ])
  })

  it('is a discrepancy for each transaction with open refunds, once', async () => {
    await database.sql`delete from event_outbox`
    await seedRefund()
    expect(await checkMissingAccounts(rig.service.ctx)).toBe(1)
    expect(await checkMissingAccounts(rig.service.ctx)).toBe(0)
    expect(await list()).toMatchObject([
      {
        merchantCode: LEFT,
        ours: { says: 'has refunds that have not ended' },
        theirs: { source: 'settings', says: 'the merchant account is not configured' },
        times: 1,
      },
    ])
    const events = await database.sql`
      select data from event_outbox where type = 'discrepancy.found'`
    expect(events).toHaveLength(1)
  })

  it('is over when it is configured again, and recorded again when it leaves again', async () => {
    const { ctx } = rig.service
    const isOpen = async () =>
      (await list()).find(({ merchantCode }) => merchantCode === LEFT)?.resolvedAt === null
    await seedRefund()
    await checkMissingAccounts(ctx)
    expect(await isOpen()).toBe(true)
    const accounts = [MERCHANT, { merchantCode: LEFT, secret: 'secret' }] as const
    await checkMissingAccounts({ ...ctx, config: { ...ctx.config, accounts } })
    expect(await isOpen()).toBe(false)
    await checkMissingAccounts(ctx)
    expect(await isOpen()).toBe(true)
  })

  it('resolved by a person stays resolved', async () => {
    await seedRefund()
    await checkMissingAccounts(rig.service.ctx)
    const open = (await list()).find(({ resolvedAt }) => resolvedAt === null)
    const { status } = await post(`/v1/discrepancies/${open?.id}/resolution`, { reason: 'sold' })
    expect(status).toBe(200)
    expect(await checkMissingAccounts(rig.service.ctx)).toBe(0)
    const resolved = (await list()).find(({ id }) => id === open?.id)
    expect(resolved).toMatchObject({ resolution: { reason: 'sold' } })
  })

  it('is over when its refunds have ended', async () => {
    await seedRefund()
    await checkMissingAccounts(rig.service.ctx)
    const listOpen = async () => (await list()).filter(({ resolvedAt }) => resolvedAt === null)
    expect(await listOpen()).toHaveLength(1)
    await endRefunds()
    expect(await listOpen()).toEqual([])
    expect(await readGauges()).toHaveLength(2)
  })
})

describe('a refund of such an account', () => {
  it('can be cancelled', async () => {
    const id = await seedRefund()
    const answer = await post(`/v1/refunds/${id}/cancellation`, { reason: 'they left' })
    expect(answer).toMatchObject({ status: 200, body: { status: 'failed' } })
  })

  it('can be decided', async () => {
    const id = await seedRefund({ ...SENT, status: 'needs_review', due_at: null })
    const decision = { outcome: 'succeeded', reason: 'on their statement' }
    const answer = await post(`/v1/refunds/${id}/resolution`, decision)
    expect(answer).toMatchObject({ status: 200, body: { status: 'succeeded' } })
  })

  it('whose attempt was interrupted is unknown, and goes to a person after REFUND_RESOLVE_FOR_MS', async () => {
    const id = await seedRefund({ ...SENT, status: 'sending' })
    await database.sql`update refunds set last_sent_at = now() where refund_id = ${id}`
    expect(await reconcileUnqueried(rig.service.ctx)).toBe(1)
    expect(await readStatus(id)).toBe('unknown')
    await database.sql`
      update refunds set last_sent_at = now() - interval '4 days', due_at = now()
      where refund_id = ${id}`
    await reconcileUnqueried(rig.service.ctx)
    expect(await readStatus(id)).toBe('needs_review')
  })

  it('that was never sent fails after REFUND_SEND_WITHIN_MS', async () => {
    const id = await seedRefund({ requested_at: '2026-01-01' })
    await reconcileUnqueried(rig.service.ctx)
    expect(await readStatus(id)).toBe('failed')
  })

  it('that cannot be saved leaves the others their deadlines, and is reported after them', async () => {
    const ids = [await seedRefund(), await seedRefund(), await seedRefund()]
    const [broken = ''] = ids
    for (const id of ids) {
      await database.sql`update refunds set requested_at = '2026-01-01' where refund_id = ${id}`
    }
    await database.sql.unsafe(`
      create function refuse_one() returns trigger language plpgsql as $$
        begin raise exception 'the disk is broken here'; end $$;
      create trigger refuse_one before update on refunds for each row
        when (old.refund_id = '${broken}') execute function refuse_one()`)
    try {
      await expect(reconcileUnqueried(rig.service.ctx)).rejects.toThrow('the disk is broken here')
    } finally {
      await database.sql`drop function refuse_one cascade`
    }
    expect(await Promise.all(ids.map(readStatus))).toEqual(['pending', 'failed', 'failed'])
  })

  it('takes no place in a round from one that nobody approved in time', async () => {
    const waiting = { ...SENT, status: 'unknown', last_sent_at: new Date().toISOString() }
    for (let n = 0; n < 3; n += 1) await seedRefund(waiting)
    const status = 'awaiting_approval'
    const id = await seedRefund({ status, due_at: null, requested_at: '2026-01-01' }, true)
    await reconcileUnqueried(rig.service.ctx)
    expect(await readStatus(id)).toBe('failed')
  })
})
