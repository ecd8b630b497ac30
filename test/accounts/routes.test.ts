import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../src/app.ts'
import {
  callAs,
  registerEndpoint,
  SHARED,
  type Tenant,
  useTwoAccounts,
} from '../support/accounts.ts'
import { expectProblem, readPage } from '../support/api.ts'
import { KEY } from '../support/service.ts'

const accounts = useTwoAccounts()

type Ids = Pick<
  Tenant,
  | 'transactionId'
  | 'paymentId'
  | 'refundId'
  | 'cardId'
  | 'endpointId'
  | 'discrepancyId'
  | 'externalRefundId'
>

/** A route for one object: the status for its owner, and the problem code for others. */
type One = {
  id: keyof Ids
  owner: number
  stranger: string
  /** The code if the request names the owner's account, where it differs. */
  naming?: string
  body?: object
  /** Each is tried, because a query can reach the rows in another way. */
  queries?: string[]
}

const OF_REFUND = { id: 'refundId', stranger: 'refund_not_found' } as const
const OF_DISCREPANCY = { id: 'discrepancyId', stranger: 'discrepancy_not_found' } as const
const OF_ENDPOINT = { id: 'endpointId', stranger: 'webhook_endpoint_not_found' } as const

/**
 * Every merchant route, by method and path as registered: a new one needs a row here. Reads come first, because
 * the effects of the others would show in them.
 */
const ONES: Record<string, One> = {
  'GET /v1/transactions/:transactionId': {
    id: 'transactionId',
    owner: 200,
    stranger: 'transaction_not_found',
    queries: ['', '?wait=0', '?wait=30'],
  },
  'GET /v1/transactions/:transactionId/timeline': {
    id: 'transactionId',
    owner: 200,
    stranger: 'transaction_not_found',
    queries: ['', '?limit=1'],
  },
  'GET /v1/payments/:paymentId': { id: 'paymentId', owner: 200, stranger: 'payment_not_found' },
  'GET /v1/payments/:paymentId/external-refunds': {
    id: 'paymentId',
    owner: 200,
    stranger: 'payment_not_found',
  },
  'GET /v1/refunds/:refundId': {
    ...OF_REFUND,
    owner: 200,
    queries: ['', '?wait=0', '?wait=30', '?include=proof'],
  },
  'POST /v1/refunds/:refundId/resolution': {
    ...OF_REFUND,
    owner: 409,
    body: { outcome: 'failed', reason: 'a test' },
  },
  'POST /v1/refunds/:refundId/cancellation': {
    ...OF_REFUND,
    owner: 409,
    body: { reason: 'a test' },
  },
  'POST /v1/refunds/:refundId/approval': { ...OF_REFUND, owner: 409 },
  'POST /v1/refunds/:refundId/decline': { ...OF_REFUND, owner: 409 },
  'POST /v1/external-refunds/:externalRefundId/resolution': {
    id: 'externalRefundId',
    owner: 409,
    stranger: 'external_refund_not_found',
    body: { outcome: 'never_happened', reason: 'a test' },
  },
  'DELETE /v1/holds/:target/:id': { ...OF_REFUND, owner: 409, body: { reason: 'a test' } },
  'PUT /v1/holds/:target/:id': { ...OF_REFUND, owner: 200, body: { reason: 'a test' } },
  'POST /v1/discrepancies/:id/resolution': {
    ...OF_DISCREPANCY,
    owner: 409,
    body: { reason: 'a test' },
  },
  'POST /v1/discrepancies/:id/note': { ...OF_DISCREPANCY, owner: 200, body: { text: 'a test' } },
  'POST /v1/discrepancies/:id/assignee': {
    ...OF_DISCREPANCY,
    owner: 409,
    body: { name: 'somebody' },
  },
  'POST /v1/transactions/:transactionId/surplus-refund': {
    id: 'transactionId',
    owner: 409,
    stranger: 'transaction_not_found',
    body: {
      receiver: { accountName: 'A', accountNumber: '1', swiftCode: 'ASCBVNVX' },
    },
  },
  'POST /v1/payments/:paymentId/refunds': {
    id: 'paymentId',
    owner: 202,
    stranger: 'payment_not_found',
    body: { amount: '1' },
  },
  'POST /v1/transactions/:transactionId/sync': {
    id: 'transactionId',
    owner: 202,
    stranger: 'merchant_not_found',
  },
  'GET /v2/vc/virtual-cards/:virtualCardRequestId': {
    id: 'cardId',
    owner: 200,
    stranger: 'card_not_found',
    naming: 'merchant_not_found',
  },
  'GET /v1/webhook-endpoints/:endpointId/deliveries': { ...OF_ENDPOINT, owner: 200 },
  'PATCH /v1/webhook-endpoints/:endpointId': {
    ...OF_ENDPOINT,
    owner: 200,
    body: { types: ['payment.created'] },
  },
  'POST /v1/webhook-endpoints/:endpointId/rotate-secret': {
    ...OF_ENDPOINT,
    owner: 200,
    body: { previousValidForS: 0 },
  },
  'POST /v1/webhook-endpoints/:endpointId/deliveries/:eventId/replay': {
    ...OF_ENDPOINT,
    owner: 404,
  },
  'POST /v1/webhook-endpoints/:endpointId/deliveries/replay': { ...OF_ENDPOINT, owner: 202 },
  'POST /v1/webhook-endpoints/:endpointId/test': { ...OF_ENDPOINT, owner: 200 },
  'POST /v1/webhook-endpoints/:endpointId/enable': { ...OF_ENDPOINT, owner: 200 },
  'POST /v1/webhook-endpoints/:endpointId/replay': {
    ...OF_ENDPOINT,
    owner: 202,
    body: { after: '0' },
  },
}

/** Lists, with the member that identifies an entry, and a filter that matches only the other account. */
const LISTS: Record<string, { id: keyof Ids; member: string; filter?: (other: Ids) => string }> = {
  'GET /v1/transactions': { id: 'transactionId', member: 'transactionId' },
  'GET /v1/payments': { id: 'paymentId', member: 'id' },
  'GET /v1/discrepancies': { id: 'transactionId', member: 'transactionId' },
  'GET /v1/refunds': {
    id: 'refundId',
    member: 'id',
    filter: ({ paymentId }) => `paymentId=${paymentId}`,
  },
  'GET /v1/webhook-endpoints': { id: 'endpointId', member: 'id' },
}

/** Endless, without pages: covered by `test/feed/read.test.ts`. */
const FEED = ['GET /v1/events', 'GET /v1/events/stream']
/** Not by pages: covered by `test/search/search.test.ts`. */
const SEARCH = 'GET /v1/search'
const ENDPOINTS = 'POST /v1/webhook-endpoints'
const ENDPOINT = 'DELETE /v1/webhook-endpoints/:endpointId'

const CARDS = 'GET /v2/vc/virtual-cards'

/** Sends the request of a row, with the same idempotency key for every sender. */
function send(
  asker: { key: string },
  route: string,
  ids: Partial<Ids>,
  row: Partial<One> = {},
  query = '',
) {
  const [method = '', pattern = ''] = route.split(' ')
  const path = pattern
    .replace(':target', 'refund')
    .replace(':eventId', '999999999')
    .replace(/:(\w+)/, () => (row.id && ids[row.id]) ?? '')
  return callAs(accounts.rig, asker, path + query, {
    method,
    headers: { 'idempotency-key': `one-text-for-both-${ids.paymentId}` },
    ...(row.body ? { body: JSON.stringify(row.body) } : {}),
  })
}

/** Returns the body without the response's own id, which always differs. */
const readText = async (response: Response) =>
  (await response.text()).replace(/"svcResponseId":"[^"]*"/, '')

const name = (query: string, merchantCode: string) =>
  `${query}${query === '' ? '?' : '&'}merchantCode=${merchantCode}`

it('every route has a row here', () => {
  const served = createApp(accounts.rig.service.ctx)
    .routes.filter(({ method, path }) => /^\/v\d/.test(path) && method !== 'ALL')
    .map(({ method, path }) => `${method} ${path}`)
  expect(served).not.toEqual([])
  expect([...new Set(served)].sort()).toEqual(
    [...Object.keys({ ...ONES, ...LISTS }), CARDS, SEARCH, ENDPOINTS, ENDPOINT, ...FEED].sort(),
  )
})

describe.each(Object.entries(ONES))('%s', (route, row) => {
  const queries = row.queries ?? ['']
  const isSync = route.endsWith('/sync')
  const isRead = route.startsWith('GET')

  it.each(queries)('%s: a key for one account finds nothing of the other', async (query) => {
    const { mine, theirs } = accounts
    for (const [asker, owner] of [
      [mine, theirs],
      [theirs, mine],
    ] as const) {
      const named = name(query, owner.merchantCode)
      await expectProblem(
        await send(asker, route, owner, row, named),
        404,
        row.naming ?? row.stranger,
      )
      if (isSync) continue
      await expectProblem(await send(asker, route, owner, row, query), 404, row.stranger)
    }
  })

  it('the owner is served, whether it names itself or not', async () => {
    const { mine, theirs } = accounts
    for (const owner of [mine, theirs]) {
      expect((await send(owner, route, owner, row)).status).toBe(row.owner)
      const named = await send(owner, route, owner, row, name('', owner.merchantCode))
      expect(named.status).toBe(row.owner)
    }
  })

  it('a key for all accounts must name one if both may have the id, and gets that one', async () => {
    if (['refundId', 'endpointId', 'discrepancyId', 'externalRefundId'].includes(row.id)) return
    const { mine, theirs } = accounts
    const all = { key: KEY }
    for (const { merchantCode, ...tenant } of [mine, theirs]) {
      // Cards are read from the gateway, which requires an account.
      const ids = row.id === 'cardId' ? tenant : SHARED
      await expectProblem(await send(all, route, ids, row), 409, 'ambiguous_merchant')
      const named = await send(all, route, ids, row, name('', merchantCode))
      const own = await send({ key: tenant.key }, route, ids, row)
      expect([named.status, own.status]).toEqual([row.owner, row.owner])
      const [shown, seen] = [await readText(named), await readText(own)]
      if (isRead) expect(shown).toBe(seen)
      if (row.id === 'transactionId' && row.owner < 300 && !route.endsWith('timeline')) {
        expect(JSON.parse(shown)).toMatchObject({ merchantCode, paidAmount: tenant.sharedAmount })
      }
    }
  })
})

describe.each(Object.entries(LISTS))('%s', (route, { id, member, filter }) => {
  const read = async (asker: { key: string }, query = '') =>
    (await readPage(await send(asker, route, {}, {}, query))).data.map((one) => String(one[member]))

  it("holds its own entries and none of the other's", async () => {
    const { mine, theirs } = accounts
    for (const [owner, other] of [
      [mine, theirs],
      [theirs, mine],
    ] as const) {
      const listed = await read(owner)
      expect(listed).toContain(owner[id])
      expect(listed).not.toContain(other[id])
      expect(new Set(listed).size).toBe(listed.length)
      expect(await read(owner, `?merchantCode=${other.merchantCode}`)).toEqual([])
      if (filter) expect(await read(owner, `?${filter(other)}`)).toEqual([])
    }
  })

  it("a cursor of the other's list leads to nothing of it", async () => {
    const { mine, theirs } = accounts
    for (const [asker, other] of [
      [mine, theirs],
      [theirs, mine],
    ] as const) {
      const own = await read(asker)
      const { nextCursor } = await readPage(await send(other, route, {}, {}, '?limit=1'))
      const after = await read(asker, `?cursor=${nextCursor}`)
      expect(after.filter((one) => !own.includes(one))).toEqual([])
    }
  })

  it('a key for all accounts sees both, or the one it names', async () => {
    const { mine, theirs } = accounts
    const all = { key: KEY }
    expect(await read(all)).toEqual(expect.arrayContaining([mine[id], theirs[id]]))
    for (const owner of [mine, theirs]) {
      const named = await read(all, `?merchantCode=${owner.merchantCode}`)
      expect(named).toEqual(await read(owner))
    }
  })
})

const CardPage = z.object({
  data: z.object({ docs: z.array(z.object({ merchantCode: z.string() })), totalDocs: z.number() }),
})

/** Lists the accounts whose cards a list holds, each once. */
async function listCardOwners(response: Response): Promise<string[]> {
  expect(response.status).toBe(200)
  const { docs } = CardPage.parse(await response.json()).data
  return [...new Set(docs.map(({ merchantCode }) => merchantCode))].sort()
}

describe(CARDS, () => {
  it("holds an account's own cards, and none of the other's", async () => {
    const { mine, theirs } = accounts
    for (const [owner, other] of [
      [mine, theirs],
      [theirs, mine],
    ] as const) {
      const own = await send(owner, CARDS, {}, {}, '?pageSize=100')
      expect(await listCardOwners(own)).toEqual([owner.merchantCode])
      const batch = `?requestId=BATCH-${other.merchantCode}-1`
      expect(await listCardOwners(await send(owner, CARDS, {}, {}, batch))).toEqual([])
      const named = await send(owner, CARDS, {}, {}, name('', other.merchantCode))
      await expectProblem(named, 404, 'merchant_not_found')
    }
  })

  it('is served to a key for all accounts for the one it names', async () => {
    const all = { key: KEY }
    await expectProblem(await send(all, CARDS, {}), 409, 'ambiguous_merchant')
    for (const { merchantCode } of [accounts.mine, accounts.theirs]) {
      const named = await send(all, CARDS, {}, {}, name('', merchantCode))
      expect(await listCardOwners(named)).toEqual([merchantCode])
    }
  })
})

describe('a webhook endpoint', () => {
  const Registered = z.object({ id: z.uuid() })
  const remove = (asker: { key: string }, endpointId: string, query = '') =>
    callAs(accounts.rig, asker, `/v1/webhook-endpoints/${endpointId}${query}`, { method: 'DELETE' })

  it("can only be registered and deleted for the key's own account", async () => {
    const { rig, mine, theirs } = accounts
    const named = `?merchantCode=${theirs.merchantCode}`
    await expectProblem(await registerEndpoint(rig, mine, named), 404, 'merchant_not_found')
    for (const [asker, query] of [
      [theirs, ''],
      [{ key: KEY }, named],
    ] as const) {
      const { id } = Registered.parse(await (await registerEndpoint(rig, asker, query)).json())
      for (const naming of ['', named]) {
        const refused = await remove(mine, id, naming)
        await expectProblem(refused, 404, 'webhook_endpoint_not_found')
      }
      expect((await remove(theirs, id)).status).toBe(204)
      await expectProblem(await remove(theirs, id), 404, 'webhook_endpoint_not_found')
    }
  })

  it('for all accounts requires a key for all', async () => {
    const { rig, mine } = accounts
    const { id } = Registered.parse(await (await registerEndpoint(rig, { key: KEY })).json())
    await expectProblem(await remove(mine, id), 404, 'webhook_endpoint_not_found')
    await expectProblem(
      await remove(mine, id, '?merchantCode=*'),
      404,
      'webhook_endpoint_not_found',
    )
    expect((await remove({ key: KEY }, id, '?merchantCode=*')).status).toBe(204)
  })
})
