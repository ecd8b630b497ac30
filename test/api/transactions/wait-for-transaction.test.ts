import { request } from 'node:http'
import { describe, expect, it, vi } from 'vitest'
import { formatWakeKey } from '../../../src/db/transaction-key.ts'
import { createWaiters } from '../../../src/platform/concurrency/waiters.ts'
import type { Service } from '../../../src/service.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { expectProblem, seedTransaction, withKey } from '../../support/api.ts'
import { ask, expectTaken, post } from '../../support/ask.ts'
import { addKey, MERCHANT, postIpn, signIpn, startTestService } from '../../support/service.ts'
import { makeTransaction, notifyOf, syncAgain } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** No sync runs in this service: only the test changes transactions. */
const rig = useRig({ settings: { ROLE: 'web' } })

const keyOf = (transactionId: string) =>
  formatWakeKey({ merchantCode: MERCHANT.merchantCode, transactionId })

/** A change as the commit of a query makes it. */
async function change(transactionId: string, state: string, final: boolean): Promise<void> {
  await rig.database.sql.begin(async (tx) => {
    await tx`
      update transactions set state = ${state}, final = ${final}, version = version + 1
      where transaction_id = ${transactionId}`
    await tx`select pg_notify('transaction_changed', ${keyOf(transactionId)})`
  })
}

/** Resolves when so many readers wait, and what they read before that is answered. */
async function waiting(readers: number, service: Service = rig.service): Promise<void> {
  const there = () => service.ctx.transactionWaiters.count() === readers
  await waitUntil(there, { what: `${readers} waiting readers` })
  await service.ctx.transactionLookups.drain()
}

async function timed(read: Promise<Response>) {
  const started = performance.now()
  const response = await read
  const text = await response.text()
  const ms = performance.now() - started
  const { status, headers } = response
  return { ms, status, text, etag: headers.get('etag'), connection: headers.get('connection') }
}

const read = (id: string, wait: number, tag?: string) =>
  timed(
    rig.api(`/v1/transactions/${id}?wait=${wait}`, {
      headers: tag === undefined ? {} : { 'if-none-match': tag },
    }),
  )

async function tagOf(transactionId: string): Promise<string> {
  return (await rig.api(`/v1/transactions/${transactionId}`)).headers.get('etag') ?? ''
}

describe('without an ETag', () => {
  it('a final transaction is answered at once', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-FINAL', state: 'paid' })
    const { ms, status } = await read('T-FINAL', 60)
    expect(status).toBe(200)
    expect(ms).toBeLessThan(5_000)
  })

  it('one that is not final is answered when it becomes final, not on an earlier change', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-OPEN' })
    const answer = read('T-OPEN', 60)
    await waiting(1)
    await read('T-OPEN', 0)
    const reads = vi.spyOn(rig.service.ctx.transactionLookups, 'add')
    await change('T-OPEN', 'paid', false)
    await waitUntil(() => reads.mock.calls.length > 0, { what: 'the read after the change' })
    await waiting(1)
    await change('T-OPEN', 'paid', true)
    expect(JSON.parse((await answer).text)).toMatchObject({ state: 'paid', final: true })
    reads.mockRestore()
  })
})

describe('with an ETag', () => {
  it('one that already differs is answered at once, final or not', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-DIFFERS' })
    const { ms, status } = await read('T-DIFFERS', 60, 'W/"99"')
    expect(status).toBe(200)
    expect(ms).toBeLessThan(5_000)
  })

  it('a change is answered with the new ETag, final or not', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-CHANGES', state: 'paid' })
    const tag = await tagOf('T-CHANGES')
    const answer = read('T-CHANGES', 60, tag)
    await waiting(1)
    await change('T-CHANGES', 'paid', false)
    const { status, etag } = await answer
    expect(status).toBe(200)
    expect(etag).not.toBe(tag)
    expect(etag).toBe(await tagOf('T-CHANGES'))
  })

  it('no change gives 304 at the time-out, and without one the state as it is then', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-SAME', state: 'paid' })
    await seedTransaction(rig.database, { transactionId: 'T-STAYS' })
    const tag = await tagOf('T-SAME')
    const [same, open] = await Promise.all([read('T-SAME', 1, tag), read('T-STAYS', 1)])
    expect([same.status, same.text, same.etag]).toEqual([304, '', tag])
    expect(open.status).toBe(200)
    expect(JSON.parse(open.text)).toMatchObject({ state: 'pending', final: false })
    for (const { ms } of [same, open]) expect(ms).toBeGreaterThan(950)
    expect((await read('T-SAME', 0, tag)).status).toBe(304)
    expect((await read('T-STAYS', 0)).status).toBe(200)
  })

  it('what a later notification states is answered with the commit of its query', async () => {
    const notification = { svc_TransactionID: 'T "TÖLD" \\' }
    await postIpn(rig.service.url, signIpn(notification))
    const id = encodeURIComponent(notification.svc_TransactionID)
    const answer = read(id, 60, await tagOf(id))
    await waiting(1)
    await postIpn(rig.service.url, signIpn({ ...notification, svc_OrderID: 'DH7' }))
    await syncDue(rig.service.ctx)
    expect(JSON.parse((await answer).text)).toMatchObject({ orderId: 'DH7' })
  })
})

describe('an id that nobody knows yet', () => {
  const notifyOf = (svc_TransactionID: string) =>
    postIpn(rig.service.url, signIpn({ svc_TransactionID }))

  it('is answered when its notification comes, which costs its readers one read and no polls', async () => {
    const reads = vi.spyOn(rig.service.ctx.transactionLookups, 'add')
    const answers = ['T-SOON', 'T-SOON'].map((id) => read(id, 50, '"none"'))
    await waiting(2)
    expect(reads.mock.calls.length).toBe(2)
    await notifyOf('T-ANOTHER')
    await notifyOf('T-SOON')
    for (const { status, text, ms } of await Promise.all(answers)) {
      expect([status, JSON.parse(text).transactionId]).toEqual([200, 'T-SOON'])
      expect(ms).toBeLessThan(40_000)
    }
    // Each of the two reads once more; what both read then, they share.
    expect(reads.mock.calls.length).toBeLessThanOrEqual(6)
    reads.mockRestore()
  })

  it('is waited for until it is final where no ETag says otherwise', async () => {
    const answer = read('T-LATER', 60)
    await waiting(1)
    const reads = vi.spyOn(rig.service.ctx.transactionLookups, 'add')
    await notifyOf('T-LATER')
    await waitUntil(() => reads.mock.calls.length > 1, { what: 'the reads after the notification' })
    reads.mockRestore()
    await waiting(1)
    await change('T-LATER', 'paid', true)
    expect(JSON.parse((await answer).text)).toMatchObject({ state: 'paid', final: true })
  })

  it('is answered when a query is requested for it', async () => {
    const answer = read('T-ASKED', 60, '"none"')
    await waiting(1)
    await rig.api('/v1/transactions/T-ASKED/sync', { method: 'POST' })
    expect((await answer).status).toBe(200)
  })

  it('is a 404 at the time-out, and at once without wait', async () => {
    const { ms, status } = await read('T-NOBODY', 1)
    expect(status).toBe(404)
    expect(ms).toBeGreaterThan(950)
    const at = await rig.api('/v1/transactions/T-NOBODY?wait=0')
    await expectProblem(at, 404, 'transaction_not_found')
    expect((await rig.api('/v1/transactions/T-NOBODY')).status).toBe(404)
  })

  it("is still a 404 for a key of another account when the owner's notification has come", async () => {
    const key = 'shop2-only-key-of-32-characters-0'
    await addKey(rig.database, key, ['payments:read'], 'SHOP2')
    const path = `${rig.service.url}/v1/transactions/T-THEIRS?wait=2`
    const [owner, other] = [read('T-THEIRS', 60, '"none"'), fetch(path, withKey(key))]
    await waiting(2)
    await notifyOf('T-THEIRS')
    expect((await owner).status).toBe(200)
    await expectProblem(await other, 404, 'transaction_not_found')
  })
})

describe('many readers of one transaction', () => {
  it('200 are answered by one change, and it costs one read, not 200', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-MANY' })
    const answers = Array.from({ length: 200 }, () => read('T-MANY', 60))
    await waiting(200)
    await rig.service.ctx.db.sql`select 1`
    const reads = vi.spyOn(rig.service.ctx.transactionLookups, 'add')
    await change('T-MANY', 'paid', true)
    const all = await Promise.all(answers)
    expect(all.filter(({ status, text }) => status === 200 && JSON.parse(text).final)).toHaveLength(
      200,
    )
    expect(reads.mock.calls.length).toBeLessThanOrEqual(3)
    reads.mockRestore()
    await waiting(0)
  })

  it('a change of one transaction costs no reads for readers of another', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-ONE' })
    await seedTransaction(rig.database, { transactionId: 'T-OTHER' })
    const quiet = read('T-OTHER', 1)
    const answer = read('T-ONE', 60)
    await waiting(2)
    // Look-ups are answered in order, so both have found what is there before the change.
    await read('T-ONE', 0)
    const reads = vi.spyOn(rig.service.ctx.transactionLookups, 'add')
    await change('T-ONE', 'paid', true)
    await answer
    expect(reads.mock.calls.length).toBe(1)
    reads.mockRestore()
    expect((await quiet).status).toBe(200)
  })

  it('no reader joins a read that began before the change', async () => {
    const waiters = createWaiters<string>()
    let answer = (_: string) => {}
    const old = waiters.shareRead('key', () => new Promise((resolve) => (answer = resolve)))
    expect(waiters.shareRead('key', async () => 'never read')).toBe(old)
    waiters.wake('key')
    expect(await waiters.shareRead('key', async () => 'new')).toBe('new')
    answer('old')
    expect(await old).toBe('old')
  })
})

it('a change between the read and the wait is not missed', async () => {
  await seedTransaction(rig.database, { transactionId: 'T-GAP' })
  const { transactionWaiters: waiters } = rig.service.ctx
  const shareRead = waiters.shareRead
  const forced = vi.spyOn(waiters, 'shareRead').mockImplementationOnce(async (key, find) => {
    const old = await shareRead(key, find)
    const probe = waiters.watch(key)
    await change('T-GAP', 'paid', true)
    expect(await probe.wait(10_000)).toBe(true)
    return old
  })
  const { ms, text } = await read('T-GAP', 20)
  expect(JSON.parse(text)).toMatchObject({ final: true })
  expect(ms).toBeLessThan(10_000)
  forced.mockRestore()
})

it('a reader that disconnects waits no more', async () => {
  await seedTransaction(rig.database, { transactionId: 'T-LEFT' })
  const reader = request(`${rig.service.url}/v1/transactions/T-LEFT?wait=60`, withKey())
  reader.on('error', () => {})
  reader.end()
  await waiting(1)
  reader.destroy()
  await waiting(0)
})

it('a stopping service answers its waiting readers at once with the current state, of an unknown id with 503', async () => {
  const settings = { ROLE: 'web' }
  const stopping = await startTestService(rig.database, rig.sandbox.url, { settings })
  await seedTransaction(rig.database, { transactionId: 'T-STOP' })
  const path = `${stopping.url}/v1/transactions/T-STOP?wait=60`
  const answers = [
    timed(fetch(path, withKey())),
    timed(fetch(path, withKey(undefined, { 'if-none-match': await tagOf('T-STOP') }))),
    timed(fetch(path.replace('T-STOP', 'T-UNKNOWN'), withKey())),
  ]
  await waiting(3, stopping)
  const started = performance.now()
  await stopping.stop()
  expect(
    (await Promise.all(answers)).map(({ status, connection }) => [status, connection]),
  ).toEqual([
    [200, 'close'],
    [304, 'close'],
    [503, 'close'],
  ])
  expect(performance.now() - started).toBeLessThan(5_000)
})

describe('when the listening connection is lost', () => {
  const listeners = async () => {
    const rows = await rig.database.sql<{ pid: number }[]>`
      select pid from pg_stat_activity
      where datname = current_database() and query ilike 'listen %'`
    return rows.map(({ pid }) => pid)
  }

  it('a change during the disconnection is answered after the reconnect', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-MISSED' })
    const answer = read('T-MISSED', 60)
    await waiting(1)
    await rig.database.shutOut()
    try {
      await waitUntil(async () => (await listeners()).length === 0, { what: 'no listener' })
      await change('T-MISSED', 'paid', true)
    } finally {
      await rig.database.letIn()
    }
    // The reader is woken by the listener's connection; on a busy machine its own may not be back yet.
    let found = await answer
    const again = async () => {
      if (found.status === 503) found = await read('T-MISSED', 60)
      return found.status === 200
    }
    await waitUntil(again, { what: 'an answer' })
    expect(JSON.parse(found.text)).toMatchObject({ final: true })
  })
})

it('a transaction that only becomes final wakes who waits: a refund that was never sent had ended', async () => {
  await makeTransaction(rig, 'T-ENDED', [{ id: 'P-ENDED', amount: '100' }])
  await notifyOf(rig, 'T-ENDED')
  await syncAgain(rig, 'T-ENDED')
  const { id } = await expectTaken(await ask(rig.service, 'P-ENDED', { amount: '10' }))
  const path = `/v1/refunds/${id}/cancellation`
  const cancelled = await post(rig.service, path, { reason: 'a mistake' })
  expect(cancelled.status).toBe(200)
  expect(await rig.transaction('T-ENDED')).toMatchObject({ final: false })
  const tag = await tagOf('T-ENDED')
  await syncAgain(rig, 'T-ENDED')
  const { status, text } = await read('T-ENDED', 1, tag)
  expect([status, JSON.parse(text || '{}').final]).toEqual([200, true])
})
