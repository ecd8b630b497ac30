import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Refund } from '../../../src/refunds/view.ts'
import {
  expectInvalid,
  expectProblem,
  NO_IDS,
  readAll,
  readPage,
  seedTransaction,
  withKey,
} from '../../support/api.ts'
import { ask, expectTaken, moveTo, seedPaid } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
let url: string
beforeAll(() => {
  url = rig.service.url
})
beforeEach(() => emptyTables(rig.database))

const get = (path: string) => fetch(url + path, withKey())

describe('the list of refunds', () => {
  it('is filtered by payment and by the status shown', async () => {
    const one = await seedPaid(rig.database)
    const two = await seedPaid(rig.database)
    const states = ['pending', 'sending', 'accepted', 'unknown', 'needs_review', 'failed'] as const
    for (const state of states) {
      const refund = await expectTaken(await ask({ url }, one.id, { amount: '1' }))
      await moveTo(rig.database, refund.id, state)
    }
    await expectTaken(await ask({ url }, two.id, { amount: '2' }))
    const list = async (query: string) =>
      Refund.array().parse((await readPage(await get(`/v1/refunds?${query}`))).data)
    expect(await list(`paymentId=${two.id}`)).toMatchObject([{ amount: '2', paymentId: two.id }])
    const pending = await list(`paymentId=${one.id}&status=pending`)
    expect(pending.map(({ status }) => status)).toEqual(['pending', 'pending'])
    expect(await list('status=pending')).toHaveLength(3)
    for (const status of states.slice(2)) expect(await list(`status=${status}`)).toHaveLength(1)
    expect(await list('status=succeeded')).toEqual([])
    await expectInvalid(await get('/v1/refunds?status=sending'), 'status')
  })

  it('is read to its end, newest first, while new refunds are requested', async () => {
    const { id } = await seedPaid(rig.database)
    for (let n = 1; n <= 7; n += 1) await expectTaken(await ask({ url }, id, { amount: `${n}` }))
    // Equal times must not skip a row.
    await rig.database.sql`update refunds set requested_at = '2026-01-01' where amount < 4`
    const all = await readAll(
      (query) => get(`/v1/refunds${query}`),
      { limit: '2' },
      async () => {
        await expectTaken(await ask({ url }, id, { amount: '8' }))
      },
    )
    const amounts = Refund.array()
      .parse(all)
      .map(({ amount }) => Number(amount))
    expect(amounts.slice(0, 4)).toEqual([7, 6, 5, 4])
    expect(amounts.slice(4).sort()).toEqual([1, 2, 3])
  })

  it('rejects the cursor of another list', async () => {
    for (const _ of [1, 2]) await seedPaid(rig.database)
    const { nextCursor } = await readPage(await get('/v1/payments?limit=1'))
    await expectInvalid(await get(`/v1/refunds?cursor=${nextCursor}`), 'cursor')
  })
})

describe('one refund', () => {
  const announce = (transactionId: string) => {
    const payload = JSON.stringify([MERCHANT.merchantCode, transactionId])
    return rig.database.sql`select pg_notify('transaction_changed', ${payload})`
  }

  it('that does not exist is 404, whatever its id looks like', async () => {
    await expectProblem(await get(`/v1/refunds/${randomUUID()}?wait=5`), 404, 'refund_not_found')
    for (const id of [randomUUID(), ...NO_IDS]) {
      await expectProblem(await get(`/v1/refunds/${id}`), 404, 'refund_not_found')
    }
  })

  it('is returned as it is when the wait times out', async () => {
    const { id } = await seedPaid(rig.database)
    const refund = await expectTaken(await ask({ url }, id))
    const response = await get(`/v1/refunds/${refund.id}?wait=0`)
    expect(Refund.parse(await response.json()).status).toBe('pending')
    await expectInvalid(await get(`/v1/refunds/${refund.id}?wait=61`), 'wait')
  })

  it.each(['succeeded', 'failed', 'needs_review'] as const)(
    'is held with wait until it is %s, not until it is accepted',
    async (end) => {
      const { id, transactionId } = await seedPaid(rig.database)
      const refund = await expectTaken(await ask({ url }, id))
      const waiting = get(`/v1/refunds/${refund.id}?wait=20`)
      const held = () => rig.service.ctx.transactionWaiters.count() === 1
      await waitUntil(held, { what: 'a waiting reader' })
      for (const status of ['accepted', end] as const) {
        await moveTo(rig.database, refund.id, status)
        await announce(transactionId)
      }
      expect(Refund.parse(await (await waiting).json()).status).toBe(end)
    },
  )

  it('is held until its end also where its payment moves to another transaction', async () => {
    const { id, transactionId } = await seedPaid(rig.database)
    const refund = await expectTaken(await ask({ url }, id))
    await seedTransaction(rig.database, { transactionId: 'T-NEXT' })
    const { sql } = rig.database
    const began = performance.now()
    const waiting = get(`/v1/refunds/${refund.id}?wait=10`)
    const held = () => rig.service.ctx.transactionWaiters.count() === 1
    await waitUntil(held, { what: 'a waiting reader' })
    await sql`update payments set transaction_id = 'T-NEXT'`
    await sql`update refunds set transaction_id = 'T-NEXT'`
    await announce(transactionId)
    // By then it has been read again.
    await pause(300)
    await moveTo(rig.database, refund.id, 'succeeded')
    await announce('T-NEXT')
    expect((await waiting).status).toBe(200)
    expect(performance.now() - began).toBeLessThan(5_000)
  })
})
