import { createClient, type Page } from '@ipn-processor/client'
import { beforeAll, describe, expect, it } from 'vitest'
import { seedDiscrepancy, seedPayment, seedTransaction } from '../../support/api.ts'
import { connectFaulty } from '../../support/faulty-fetch.ts'
import { KEY, MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({
  settings: {
    ROLE: 'web',
    GATEWAY_CLIENT_ID: MERCHANT.merchantCode,
    GATEWAY_CLIENT_SECRET: `sandbox-${MERCHANT.merchantCode}`,
  },
})
beforeAll(async () => {
  for (const n of [1, 2, 3, 4, 5, 6, 7]) {
    const transactionId = `T${n}`
    const firstSeenAt = `2026-11-2${n}T09:00:00Z`
    await seedTransaction(rig.database, { transactionId, orderId: 'DH1', firstSeenAt })
    await seedPayment(rig.database, { paymentId: `P${n}`, transactionId, firstSeenAt })
  }
})

const connect = () => connectFaulty(rig.service.url)

async function collect<T>(all: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of all) items.push(item)
  return items
}

describe('a list', () => {
  it('is iterated to its end, page by page', async () => {
    const { client, seen } = connect()
    const listing = client.transactions.list({ orderId: 'DH1', limit: 3 })
    expect(seen).toEqual([])
    const ids = (await collect(listing)).map(({ transactionId }) => transactionId)
    expect(ids).toEqual(['T7', 'T6', 'T5', 'T4', 'T3', 'T2', 'T1'])
    expect(seen).toHaveLength(3)
    expect(await collect(listing)).toHaveLength(7)
  })

  it('can be left early without another request', async () => {
    const { client, seen } = connect()
    for await (const { id } of client.payments.list({ limit: 3 })) if (id === 'P6') break
    expect(seen).toHaveLength(1)
  })

  it('can be read as pages, or one page at a time', async () => {
    const { client } = connect()
    const sizes = (page: Page<unknown>) => page.data.length
    expect((await collect(client.payments.list({ limit: 3 }).pages())).map(sizes)).toEqual([
      3, 3, 1,
    ])
    const { data, nextCursor } = await client.payments.list({ limit: 3 }).page()
    expect(data.map(({ id }) => id)).toEqual(['P7', 'P6', 'P5'])
    const rest = await client.payments.list({ cursor: nextCursor ?? '' }).page()
    expect(rest.data.map(({ id }) => id)).toEqual(['P4', 'P3', 'P2', 'P1'])
    expect(rest.nextCursor).toBeNull()
  })

  it('can be read as CSV, page by page', async () => {
    const { client, seen } = connect()
    const { text, nextCursor } = await client.payments.list({ limit: 3 }).csv()
    expect(text.split('\r\n').map((line) => line.split(',')[0])).toEqual([
      'id',
      'P7',
      'P6',
      'P5',
      '',
    ])
    const second = await client.payments.list({ limit: 4, cursor: nextCursor ?? '' }).csv()
    expect(second.text).toContain('\r\nP4,')
    expect(second.nextCursor).toBeNull()
    expect(seen).toHaveLength(2)
    const refused = client.payments.list({ amount: 'much' }).csv()
    await expect(refused).rejects.toMatchObject({ status: 422, errors: [{ path: 'amount' }] })
  })

  it('of a search has what was found', async () => {
    const { client } = connect()
    const found = await collect(client.search('P7'))
    expect(found.map(({ type, id, matched }) => [type, id, matched])).toEqual([
      ['payment', 'P7', 'paymentId'],
    ])
    expect(await collect(client.search('DH1', { limit: 2 }))).toHaveLength(2)
  })

  it('can be filtered by times, as strings or dates', async () => {
    const { client } = connect()
    const from = new Date('2026-11-22T09:00:00Z')
    const some = await collect(client.transactions.list({ from, to: '2026-11-24T09:00:00Z' }))
    expect(some.map(({ transactionId }) => transactionId)).toEqual(['T3', 'T2'])
  })

  it('of discrepancies or of a timeline works the same way', async () => {
    const { client } = connect()
    for (const transactionId of ['T1', 'T2', 'T3']) {
      await seedDiscrepancy(rig.database, 'ipn_missing', { transactionId })
    }
    const found = await collect(client.discrepancies.list({ kind: 'ipn_missing', limit: 1 }))
    expect(found.map(({ transactionId }) => transactionId)).toEqual(['T3', 'T2', 'T1'])
    const entries = await collect(client.transactions.timeline('T1', { limit: 1 }))
    expect(entries).toMatchObject([{ type: 'discrepancy', kind: 'ipn_missing' }])
  })
})

describe('virtual cards', () => {
  it('are listed over all pages, their limits exact', async () => {
    const { client, seen } = connect()
    const limits = { cardLimit: '90071992547409.9910', minTransAmount: '0.10' }
    const card = {
      virtualCardRequestId: 'VC-EXACT',
      cardPolicy: limits,
      extraInfo: { note: '1.50' },
    }
    await rig.control('POST', '/cards', card)
    const all = await collect(client.cards.list({ limit: 6 }))
    expect(all).toHaveLength(15)
    expect(seen.map(({ url }) => url.searchParams.get('pageIndex'))).toEqual(['1', '2', '3'])
    const exact = all.find(({ virtualCardRequestId }) => virtualCardRequestId === 'VC-EXACT')
    expect(exact?.cardPolicy).toMatchObject({ ...limits, policyRevision: expect.any(Number) })
    expect(await client.cards.get('VC-EXACT', { language: 'vi' })).toMatchObject({
      cardPolicy: limits,
      cardData: { cardCVV: '***' },
      extraInfo: { note: '1.50' },
    })
    expect(seen.at(-1)?.headers.get('accept-language')).toBe('vi')
  })

  /** A client of a service that answers with these pages, and the pages it asked for. */
  function connectTo(answer: (pageIndex: number) => unknown) {
    const asked: string[] = []
    const send: typeof fetch = async (input) => {
      const { pathname, searchParams } = new URL(String(input))
      asked.push(searchParams.get('pageIndex') ?? pathname)
      const data = answer(Number(searchParams.get('pageIndex')))
      return new Response(typeof data === 'string' ? data : JSON.stringify({ code: 1, data }))
    }
    return { client: createClient({ baseUrl: 'http://service', apiKey: KEY, fetch: send }), asked }
  }
  const makeDocs = (...ids: string[]) =>
    ids.map((virtualCardRequestId) => ({ virtualCardRequestId }))

  it.each([
    ['undefined', undefined],
    ['null', null],
    ['a text', 'two'],
  ])('are listed to the first empty page when totalPages is %s', async (_, totalPages) => {
    const pages = [makeDocs('A', 'B'), makeDocs('C'), []]
    const { client, asked } = connectTo((index) => ({ docs: pages[index - 1], totalPages }))
    const ids = (await collect(client.cards.list({ limit: 2 }))).map((c) => c.virtualCardRequestId)
    expect(ids).toEqual(['A', 'B', 'C'])
    expect(asked).toEqual(['1', '2', '3'])
  })

  it('are listed once by a gateway that repeats its last page for ever', async () => {
    const { client, asked } = connectTo((index) => ({ docs: makeDocs(index === 1 ? 'A' : 'B') }))
    const ids = (await collect(client.cards.list())).map((card) => card.virtualCardRequestId)
    expect(ids).toEqual(['A', 'B'])
    expect(asked).toEqual(['1', '2', '3'])
  })

  it.each([{ totalPages: 2 }, {}])(
    'are listed from page 0 on where it is the first: %j',
    async (more) => {
      const pages = [makeDocs('A'), makeDocs('B'), []]
      const { client, asked } = connectTo((index) => ({ docs: pages[index], ...more }))
      const list = client.cards.list({ firstPage: 0 })
      expect((await collect(list)).map((card) => card.virtualCardRequestId)).toEqual(['A', 'B'])
      expect(asked.slice(0, 2)).toEqual(['0', '1'])
      expect(asked).toHaveLength('totalPages' in more ? 2 : 3)
    },
  )

  it('keep identifiers that the gateway writes as numbers, digit for digit', async () => {
    const { client } = connectTo(
      () => '{"code":1,"data":{"virtualCardRequestId":24083008014600006123,"cardPolicy":null}}',
    )
    expect(await client.cards.get('1')).toEqual({
      virtualCardRequestId: '24083008014600006123',
      cardPolicy: null,
    })
  })
})
