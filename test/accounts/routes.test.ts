import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../src/app.ts'
import { type Ids, LISTS, ONES, type One, sendRow } from '../support/account-routes.ts'
import { callAs, registerEndpoint, SHARED, useTwoAccounts } from '../support/accounts.ts'
import { expectProblem, readPage } from '../support/api.ts'
import { KEY } from '../support/service.ts'

const accounts = useTwoAccounts()

const send = (
  asker: { key: string },
  route: string,
  ids: Partial<Ids>,
  row: Partial<One> = {},
  query = '',
) => sendRow(accounts.rig, asker, route, ids, row, query)

/** Endless, without pages: covered by `test/feed/read.test.ts`. */
const FEED = ['GET /v1/events', 'GET /v1/events/stream']
/** Not by pages: covered by `test/search/search.test.ts`. */
const SEARCH = 'GET /v1/search'
const ENDPOINTS = 'POST /v1/webhook-endpoints'
const ENDPOINT = 'DELETE /v1/webhook-endpoints/:endpointId'

const CARDS = 'GET /v2/vc/virtual-cards'

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
    const serve = async (owner: typeof mine, query: string) =>
      expect((await send(owner, route, owner, row, query)).status).toBe(row.owner)
    const serveUnnamed = () => Promise.all([mine, theirs].map((owner) => serve(owner, '')))
    const serveNamed = () =>
      Promise.all([mine, theirs].map((owner) => serve(owner, name('', owner.merchantCode))))
    // The test of an endpoint changes nothing, and waits for seconds until it has found no server.
    if (route.endsWith('/test')) await Promise.all([serveUnnamed(), serveNamed()])
    else for (const serveBoth of [serveUnnamed, serveNamed]) await serveBoth()
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
