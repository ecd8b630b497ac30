import { describe, expect, it } from 'vitest'
import { borrowRig } from '../support/borrow-rig.ts'
import { addKey } from '../support/service.ts'
import { makeTransaction, notifyOf, readItem } from '../support/sync.ts'
import { useRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

const OTHER = { merchantCode: 'SHOP2', secret: 'another-merchants-secret' }

const rig = useRig({ settings: { SYNC_REPOLL_MAX_MS: '40' } })

const polledOnce = (id: string) =>
  waitUntil(async () => (await readItem(rig, id)).polls >= 1, { what: `${id} was polled` })

describe('a payment that is PROCESSING at first', () => {
  it('becomes SUCCESS without a second notification, and ?wait= returns immediately', async () => {
    await makeTransaction(rig, 'T-POLL', [{ id: '501', status: 'PROCESSING', amount: '10000.50' }])
    await notifyOf(rig, 'T-POLL')
    await polledOnce('T-POLL')
    expect(await rig.transaction('T-POLL')).toMatchObject({ state: 'pending', final: false })

    const waiting = rig.transaction('T-POLL', '?wait=20')
    await rig.control('PATCH', '/payments/501', { status: 'SUCCESS' })
    const changed = performance.now()
    expect(await waiting).toMatchObject({
      state: 'paid',
      final: true,
      paidAmount: '10000.50',
      ipnCount: 1,
      payments: [{ id: '501', status: 'SUCCESS' }],
      sync: { status: 'idle' },
    })
    expect(performance.now() - changed).toBeLessThan(10_000)
  })

  it('wakes a reader that has its ETag once something visible changes', async () => {
    await makeTransaction(rig, 'T-ETAG', [{ id: '502', status: 'PROCESSING' }])
    await notifyOf(rig, 'T-ETAG')
    await polledOnce('T-ETAG')
    const etag = (await rig.api('/v1/transactions/T-ETAG')).headers.get('etag') ?? ''
    const waiting = rig.api('/v1/transactions/T-ETAG?wait=20', {
      headers: { 'if-none-match': etag },
    })
    await rig.control('PATCH', '/payments/502', { status: 'FAILED' })
    const answer = await waiting
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ state: 'failed' })
  })

  it('is listed later than it is notified: an empty list is polled again', async () => {
    await makeTransaction(rig, 'T-LATE', [])
    await notifyOf(rig, 'T-LATE')
    await polledOnce('T-LATE')
    await makeTransaction(rig, 'T-LATE', [{ id: '503' }])
    expect(await rig.transaction('T-LATE', '?wait=20')).toMatchObject({
      state: 'paid',
      payments: [{ id: '503' }],
    })
  })
})

it('two successful payments of one transaction are a duplicate payment', async () => {
  await makeTransaction(rig, 'T-TWICE', [{ amount: '100' }, { amount: '100.50' }])
  await notifyOf(rig, 'T-TWICE')
  expect(await rig.transaction('T-TWICE', '?wait=20')).toMatchObject({
    duplicatePayment: true,
    state: 'paid',
    paidAmount: '200.50',
  })
})

it('POST …/sync registers a transaction whose notification never came', async () => {
  await makeTransaction(rig, 'T-SILENT')
  expect((await rig.api('/v1/transactions/T-SILENT')).status).toBe(404)
  const { status } = await rig.api('/v1/transactions/T-SILENT/sync', { method: 'POST' })
  expect(status).toBe(202)
  expect(await rig.transaction('T-SILENT', '?wait=20')).toMatchObject({
    state: 'paid',
    ipnCount: 0,
    sync: { status: 'idle' },
  })
})

it('a transaction unknown to the gateway is a failure that is retried, not an answer', async () => {
  await rig.api('/v1/transactions/T-NOBODY/sync', { method: 'POST' })
  await waitUntil(async () => (await readItem(rig, 'T-NOBODY')).attempts > 1, { what: 'retries' })
  expect(await rig.transaction('T-NOBODY')).toMatchObject({
    state: 'pending',
    final: false,
    sync: { status: 'unconfirmed', lastError: expect.stringContaining('code 32') },
  })
})

describe('the same transaction id at two merchants', () => {
  it('is two transactions: each is queried with its own account and visible to its own key', async () => {
    const both = await borrowRig({
      config: {
        accounts: [{ merchantCode: 'UFLIYL', secret: '311235E7043244EC8306F96720748C56' }, OTHER],
      },
      sandbox: {
        accounts: [{ merchantCode: 'UFLIYL', secret: '311235E7043244EC8306F96720748C56' }, OTHER],
      },
    })
    try {
      const key = 'a-key-of-the-second-merchant-0123456789'
      await addKey(both.database, key, ['payments:read'], OTHER.merchantCode)
      for (const [merchantCode, amount] of [
        ['UFLIYL', '1'],
        [OTHER.merchantCode, '2'],
      ]) {
        await both.control('POST', '/transactions', {
          merchantCode,
          transactionId: 'T-SAME',
          payments: [{ id: '1', amount, paymentMethod: 'CC', status: 'SUCCESS' }],
        })
      }
      const known = async () => {
        const rows = await both.database.sql`select from transactions where final`
        return rows.length === 2
      }
      await waitUntil(known, { what: 'both are final' })
      const theirs = await both.api('/v1/transactions/T-SAME', {
        headers: { authorization: `Bearer ${key}` },
      })
      expect(await theirs.json()).toMatchObject({ merchantCode: 'SHOP2', paidAmount: '2' })
      expect((await both.api('/v1/transactions/T-SAME')).status).toBe(409)
      expect(await both.transaction('T-SAME', '?merchantCode=UFLIYL')).toMatchObject({
        paidAmount: '1',
      })
    } finally {
      await both.stop()
    }
  })
})
