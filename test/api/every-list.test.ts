import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { callAs, useTwoAccounts } from '../support/accounts.ts'
import { expectInvalid, expectProblem, readPage } from '../support/api.ts'
import { KEY } from '../support/service.ts'
import { LISTS } from './routes.ts'

type Asker = { key: string }
const ALL = { key: KEY }

const accounts = useTwoAccounts()

/** Each account as the one that asks, with the other. */
const bothWays = () => [
  { asker: accounts.mine, other: accounts.theirs },
  { asker: accounts.theirs, other: accounts.mine },
]

const list = (asker: Asker, route: string, query = '') =>
  callAs(accounts.rig, asker, route.replace('GET ', '') + query)

describe.each(Object.entries(LISTS))('%s', (route, { id, member, filter }) => {
  const read = async (asker: Asker, query = '') =>
    (await readPage(await list(asker, route, query))).data.map((one) => String(one[member]))

  it("holds its own entries and none of the other's", async () => {
    for (const { asker, other } of bothWays()) {
      const listed = await read(asker)
      expect(listed).toContain(asker[id])
      expect(listed).not.toContain(other[id])
      expect(new Set(listed).size).toBe(listed.length)
      expect(await read(asker, `?merchantCode=${other.merchantCode}`)).toEqual([])
      if (filter) expect(await read(asker, `?${filter(other)}`)).toEqual([])
    }
  })

  it("a cursor of the other's list leads to nothing of it", async () => {
    for (const { asker, other } of bothWays()) {
      const own = await read(asker)
      const { nextCursor } = await readPage(await list(other, route, '?limit=1'))
      const after = await read(asker, `?cursor=${nextCursor}`)
      expect(after.filter((one) => !own.includes(one))).toEqual([])
    }
  })

  it('a cursor from before a restore is refused: the list is read anew', async () => {
    const { sql } = accounts.rig.database
    const { nextCursor } = await readPage(await list(ALL, route, '?limit=1'))
    const proceed = () => list(ALL, route, `?cursor=${nextCursor}`)
    expect((await proceed()).status).toBe(200)
    await sql`update installation set epoch = epoch + 1`
    await expectProblem(await proceed(), 410, 'cursor_expired')
    await sql`update installation set epoch = epoch - 1`
    expect((await proceed()).status).toBe(200)
  })

  it('a key for all accounts sees both, or the one it names', async () => {
    const { mine, theirs } = accounts
    expect(await read(ALL)).toEqual(expect.arrayContaining([mine[id], theirs[id]]))
    for (const owner of [mine, theirs]) {
      const named = await read(ALL, `?merchantCode=${owner.merchantCode}`)
      expect(named).toEqual(await read(owner))
    }
    expect(await read(ALL, '?merchantCode=NOBODY')).toEqual([])
  })
})

it.each([...Object.keys(LISTS), 'GET /v1/search', 'GET /v1/events'])(
  '%s shows nothing of the other account, with filters and cursors of its own',
  async (route) => {
    const { mine, theirs } = accounts
    const { merchantCode, transactionId, paymentId, refundId, endpointId, sharedAmount } = theirs
    const filters = [
      ...[`merchantCode=${merchantCode}`, 'merchantCode=*', `transactionId=${transactionId}`],
      ...[`paymentId=${paymentId}`, `orderId=${transactionId}`, `merchantTxnId=${transactionId}`],
      ...[`amount=${sharedAmount}`, `q=${transactionId}`, `q=${refundId}`, `q=${sharedAmount}`],
      'limit=200',
    ]
    const first = await list(theirs, route, '?limit=1')
    const { nextCursor } = first.status === 200 ? JSON.parse(await first.text()) : {}
    const cursors = nextCursor ? [`cursor=${nextCursor}`, `after=${nextCursor}`, 'after=0'] : []
    const path = route.replace('GET ', '')
    for (const filter of [...filters, ...cursors]) {
      for (const accept of ['application/json', 'text/csv']) {
        const init = { headers: { accept } }
        const response = await callAs(accounts.rig, mine, `${path}?${filter}`, init)
        const body = await response.text()
        if (response.status !== 200) continue
        for (const theirOwn of [merchantCode, paymentId, refundId, endpointId]) {
          expect([filter, body]).toEqual([filter, expect.not.stringContaining(theirOwn)])
        }
      }
    }
  },
)

it.each([
  ...Object.keys(LISTS).map((route) => route.replace('GET ', '')),
  ...['/v1/transactions/T-MINE/timeline', '/v1/payments/P-MINE/external-refunds'],
])('%s refuses a limit and a cursor that are none', async (path) => {
  for (const query of ['limit=0', 'limit=201', 'limit=x', 'cursor=x']) {
    const [field = ''] = query.split('=')
    await expectInvalid(await list(accounts.mine, path, `?${query}`), field)
  }
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

describe('GET /v2/vc/virtual-cards', () => {
  const listCards = (asker: Asker, query: string) => list(asker, '/v2/vc/virtual-cards', query)

  it("holds an account's own cards, and none of the other's", async () => {
    for (const { asker, other } of bothWays()) {
      const own = await listCards(asker, '?pageSize=100')
      expect(await listCardOwners(own)).toEqual([asker.merchantCode])
      const batch = `?requestId=BATCH-${other.merchantCode}-1`
      expect(await listCardOwners(await listCards(asker, batch))).toEqual([])
      const named = await listCards(asker, `?merchantCode=${other.merchantCode}`)
      await expectProblem(named, 404, 'merchant_not_found')
    }
  })

  it('is served to a key for all accounts for the one it names', async () => {
    await expectProblem(await listCards(ALL, ''), 409, 'ambiguous_merchant')
    for (const { merchantCode } of [accounts.mine, accounts.theirs]) {
      const named = await listCards(ALL, `?merchantCode=${merchantCode}`)
      expect(await listCardOwners(named)).toEqual([merchantCode])
    }
  })
})
