import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { forgetUnconfirmed } from '../../../src/maintenance/housekeeping.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { readPage } from '../../support/api.ts'
import { emptyTables } from '../../support/database.ts'
import { readRecorded } from '../../support/feed.ts'
import { keepLog, makeTransaction, notifyOf, readItem, syncAgain } from '../../support/sync.ts'
import { useRefundLab } from '../../support/use-started.ts'

const log = keepLog()
const FOR_MS = 86_400_000
const lab = useRefundLab({
  settings: { SYNC_MAX_ATTEMPTS: '2', SYNC_REPOLL_FOR_MS: String(FOR_MS) },
  log: log.log,
})
afterEach(() => emptyTables(lab.database))
let id = ''
beforeEach(() => {
  id = `T-TYPO-${crypto.randomUUID()}`
})

async function ask(): Promise<void> {
  const { status } = await lab.api(`/v1/transactions/${id}/sync`, { method: 'POST' })
  expect(status).toBe(202)
}

async function listIds() {
  return (await readPage(await lab.api('/v1/transactions'))).data.map((one) => one.transactionId)
}

const readStatus = async () => (await lab.transaction(id)).sync.status
const readKnown = async () => (await lab.api(`/v1/transactions/${id}`)).status === 200

/** Moves the last request back by the time after which it is forgotten. */
const age = () => lab.database.sql`
  update transactions set asked_for_at = asked_for_at - ${FOR_MS + 1} * interval '1 millisecond'
  where transaction_id = ${id}`

describe('an id that only a request to sync names', () => {
  it('is unconfirmed, in no list, and neither abandoned nor an event, however often it fails', async () => {
    const errors = log.errors().length
    await ask()
    expect(await readStatus()).toBe('unconfirmed')
    await syncDue(lab.service.ctx)
    for (let failures = 2; failures < 5; failures += 1) await syncAgain(lab, id)
    await age()
    await syncAgain(lab, id)
    expect(await lab.transaction(id)).toMatchObject({
      state: 'pending',
      sync: { status: 'unconfirmed', attempts: 5, lastError: expect.stringContaining('code 32') },
    })
    expect(await readItem(lab, id)).toMatchObject({ abandoned: false })
    for (const query of ['', '?state=pending']) {
      expect((await readPage(await lab.api(`/v1/transactions${query}`))).data).toEqual([])
    }
    expect(await readRecorded(lab, id)).toEqual([])
    expect(log.errors()).toHaveLength(errors)
  })

  it('is forgotten after SYNC_REPOLL_FOR_MS, with its queries, and not before', async () => {
    await ask()
    await syncDue(lab.service.ctx)
    expect(await forgetUnconfirmed(lab.service.ctx)).toBe(0)
    await age()
    expect(await forgetUnconfirmed(lab.service.ctx)).toBe(1)
    expect(await readKnown()).toBe(false)
    const calls = await lab.database.sql`select from gateway_calls where transaction_id = ${id}`
    expect(calls).toHaveLength(0)
  })

  it('is not forgotten when it is asked for again, was never queried, or is being queried', async () => {
    await ask()
    await age()
    expect(await forgetUnconfirmed(lab.service.ctx)).toBe(0)
    await lab.database.sql`
      update transactions set queried_at = now(), lease_id = gen_random_uuid() where transaction_id = ${id}`
    expect(await forgetUnconfirmed(lab.service.ctx)).toBe(0)
    await lab.database.sql`update transactions set lease_id = null where transaction_id = ${id}`
    await ask()
    expect(await forgetUnconfirmed(lab.service.ctx)).toBe(0)
    await age()
    expect(await forgetUnconfirmed(lab.service.ctx)).toBe(1)
  })
})

describe('what the gateway knows', () => {
  it('is an ordinary transaction once it lists a payment', async () => {
    await makeTransaction(lab, id, [{ status: 'PROCESSING' }])
    await ask()
    expect(await listIds()).toEqual([])
    await syncDue(lab.service.ctx)
    expect(await readStatus()).toBe('queued')
    expect(await listIds()).toEqual([id])
    await age()
    expect(await forgetUnconfirmed(lab.service.ctx)).toBe(0)
    await syncAgain(lab, id)
    expect(await readStatus()).toBe('abandoned')
  })

  it('is an ordinary transaction once the gateway answers about it, before there is a payment', async () => {
    await makeTransaction(lab, id, [])
    await ask()
    await syncDue(lab.service.ctx)
    expect(await readStatus()).toBe('queued')
    expect(await listIds()).toEqual([id])
  })

  it.each([
    ['waits for the payment', 9, 'queued'],
    ['refuses', 1, 'unconfirmed'],
  ])('is told by the code: it %s (%i)', async (_, code, status) => {
    await lab.control('POST', '/faults', { command: 'QUERY_PT', kind: 'code', code, times: 1 })
    await ask()
    await syncDue(lab.service.ctx)
    expect(await readStatus()).toBe(status)
  })

  it('is an ordinary transaction once it is notified', async () => {
    await ask()
    await syncDue(lab.service.ctx)
    await notifyOf(lab, id)
    expect(await listIds()).toEqual([id])
    await age()
    expect(await forgetUnconfirmed(lab.service.ctx)).toBe(0)
    await syncAgain(lab, id)
    await syncAgain(lab, id)
    expect(await readStatus()).toBe('abandoned')
  })

  it('stays so when it is asked for', async () => {
    await notifyOf(lab, id)
    await ask()
    expect(await readStatus()).toBe('queued')
    expect(await listIds()).toEqual([id])
  })
})
