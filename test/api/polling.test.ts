import { describe, expect, it } from 'vitest'
import { makeTransaction, notifyOf, readItem } from '../support/sync.ts'
import { useRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

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
