import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Refund } from '../../src/refunds/view.ts'
import {
  expectInvalid,
  expectProblem,
  NO_IDS,
  OTHER,
  readAll,
  readPage,
  withKey,
  writeMerchantsFile,
} from '../support/api.ts'
import { ask, expectRefused, expectTaken, moveTo, seedPaid } from '../support/ask.ts'
import { borrowRig } from '../support/borrow-rig.ts'
import { emptyTables } from '../support/database.ts'
import { addKey, MERCHANT, type Rig } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const THEIRS = 'key-bound-to-the-other-account-0123456789'
const READER = 'key-that-reads-refunds-only-0123456789'
const WRITER = 'key-that-writes-refunds-only-0123456789'
const OPERATOR = 'key-of-operations-only-01234567890123456'
const PAYMENTS = 'key-that-reads-payments-only-0123456789'
const accounts = [MERCHANT, OTHER]
const file = writeMerchantsFile(accounts)

let rig: Rig
let url: string
beforeAll(async () => {
  rig = await borrowRig({ settings: { ROLE: 'web', MERCHANTS_FILE: file.path } })
  url = rig.service.url
  const { database } = rig
  const all = ['payments:read', 'refunds:write', 'refunds:read', 'ops']
  await addKey(database, THEIRS, all, OTHER.merchantCode)
  await addKey(database, READER, ['refunds:read'])
  await addKey(database, WRITER, ['refunds:write'])
  await addKey(database, OPERATOR, ['ops'])
  await addKey(database, PAYMENTS, ['payments:read'])
})
beforeEach(() => emptyTables(rig.database))
afterAll(async () => {
  await rig.stop()
  file.remove()
})

const get = (path: string, key?: string) => fetch(url + path, key ? withKey(key) : withKey())
const resolve = (refundId: string, key: string) =>
  fetch(`${url}/v1/refunds/${refundId}/resolution`, {
    method: 'POST',
    ...withKey(key, { 'content-type': 'application/json' }),
    body: JSON.stringify({ outcome: 'failed', reason: 'x' }),
  })

describe('a key', () => {
  it('requests refunds and previews only with refunds:write', async () => {
    const { id } = await seedPaid(rig.database)
    for (const key of [READER, OPERATOR, PAYMENTS]) {
      await expectRefused(await ask({ url, key }, id), 403, 'scope_missing')
      const preview = await ask({ url, key, query: '?dryRun=true' }, id)
      await expectRefused(preview, 403, 'scope_missing')
    }
    await expectTaken(await ask({ url, key: WRITER }, id))
  })

  it('reads refunds only with refunds:read', async () => {
    const { id } = await seedPaid(rig.database)
    const refund = await expectTaken(await ask({ url }, id))
    for (const path of [`/v1/refunds/${refund.id}`, '/v1/refunds']) {
      for (const key of [WRITER, OPERATOR, PAYMENTS]) {
        await expectProblem(await get(path, key), 403, 'scope_missing')
      }
      expect((await get(path, READER)).status).toBe(200)
    }
  })

  it('decides only with ops', async () => {
    const { id } = await seedPaid(rig.database)
    const refund = await expectTaken(await ask({ url }, id))
    await moveTo(rig.database, refund.id, 'needs_review')
    for (const key of [WRITER, READER, PAYMENTS]) {
      await expectProblem(await resolve(refund.id, key), 403, 'scope_missing')
    }
    expect((await resolve(refund.id, OPERATOR)).status).toBe(200)
  })

  it('finds no refund of another account', async () => {
    const { id } = await seedPaid(rig.database)
    const refund = await expectTaken(await ask({ url }, id))
    await moveTo(rig.database, refund.id, 'needs_review')
    await expectRefused(await ask({ url, key: THEIRS }, id), 404, 'payment_not_found')
    const query = `?merchantCode=${MERCHANT.merchantCode}`
    await expectRefused(await ask({ url, key: THEIRS, query }, id), 404, 'payment_not_found')
    const preview = await ask({ url, key: THEIRS, query: '?dryRun=true' }, id)
    await expectRefused(preview, 404, 'payment_not_found')
    for (const path of ['', '?include=proof', '?wait=0']) {
      const response = await get(`/v1/refunds/${refund.id}${path}`, THEIRS)
      await expectProblem(response, 404, 'refund_not_found')
    }
    await expectProblem(await resolve(refund.id, THEIRS), 404, 'refund_not_found')
    for (const filter of ['', `?paymentId=${id}`, '?status=needs_review', query]) {
      const { data } = await readPage(await get(`/v1/refunds${filter}`, THEIRS))
      expect(data).toEqual([])
    }
  })
})

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
      const { sql } = rig.database
      const payload = JSON.stringify([MERCHANT.merchantCode, transactionId])
      const announce = () => sql`select pg_notify('transaction_changed', ${payload})`
      const waiting = get(`/v1/refunds/${refund.id}?wait=20`)
      const held = () => rig.service.ctx.transactionWaiters.count() === 1
      await waitUntil(held, { what: 'a waiting reader' })
      for (const status of ['accepted', end] as const) {
        await moveTo(rig.database, refund.id, status)
        await announce()
      }
      expect(Refund.parse(await (await waiting).json()).status).toBe(end)
    },
  )
})
