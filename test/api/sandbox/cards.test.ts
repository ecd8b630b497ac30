import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type SandboxRig, useSandbox } from '../../support/sandbox.ts'

const Page = z.object({
  data: z.object({
    docs: z.array(
      z.object({ virtualCardRequestId: z.string(), status: z.string(), createdAt: z.string() }),
    ),
    totalDocs: z.number(),
    totalPages: z.number(),
  }),
})

async function list({ readCards }: SandboxRig, query: string) {
  const { docs, ...totals } = Page.parse(await (await readCards(query)).json()).data
  return { docs, ...totals, ids: docs.map((card) => card.virtualCardRequestId) }
}

it('a card masks number and CVV; an unknown one is a 404 in the requested language', async () => {
  const { readCards } = await useSandbox({ fieldPrefix: 'vnx' })
  expect(await (await readCards('/VC-UFLIYL-0001')).json()).toMatchObject({
    vnxResponseId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    data: { cardData: { cardNumber: expect.stringMatching(/^\d{6}\*{6}\d{4}$/), cardCVV: '***' } },
  })
  const unknown = await readCards('/NONE', { language: 'vi-VN,vi;q=0.9,en;q=0.5' })
  expect([unknown.status, await unknown.json()]).toMatchObject([
    404,
    { code: 404, state: 0, data: null, message: 'Không tìm thấy thẻ ảo' },
  ])
})

describe('the list', () => {
  it('starts at page 1 with ten, newest first', async () => {
    const rig = await useSandbox()
    const [first, second] = [await list(rig, ''), await list(rig, '?pageIndex=2')]
    expect(first).toMatchObject({ totalDocs: 14, totalPages: 2 })
    expect([first.docs.length, second.docs.length]).toEqual([10, 4])
    const times = [...first.docs, ...second.docs].map((card) => card.createdAt)
    expect(times).toEqual([...times].sort().reverse())
    expect(await list(rig, '?pageIndex=3')).toMatchObject({ docs: [] })
  })

  it('has the cards that match each filter, and all of them at once', async () => {
    const rig = await useSandbox()
    for (const [query, ids] of [
      ['status=LOCKED', ['0013', '0006']],
      ['requestId=BATCH-UFLIYL-3', ['0014', '0013', '0012', '0011']],
      ['cardBrand=jcb&status=EXPIRED', ['0012']],
      ['dateFr=2026-01-09&dateTo=2026-01-09', ['0013', '0012']],
      ['dateFr=2026-01-10&status=&unknown=1', ['0014']],
      ['dateTo=2025-12-31', []],
    ] as const) {
      expect((await list(rig, `?${query}`)).ids).toEqual(ids.map((id) => `VC-UFLIYL-${id}`))
    }
  })

  it('filters by whole days in UTC', async () => {
    const rig = await useSandbox()
    for (const [virtualCardRequestId, createdAt] of [
      ['FIRST', '2025-06-01T07:00:00+07:00'],
      ['LAST', '2025-06-01T23:59:59.999Z'],
      ['AFTER', '2025-06-02T00:00:00Z'],
    ]) {
      await rig.control('POST', '/cards', { virtualCardRequestId, createdAt })
    }
    const day = '?dateFr=2025-06-01&dateTo=2025-06-01'
    expect((await list(rig, day)).ids).toEqual(['LAST', 'FIRST'])
  })
})

describe('control of cards', () => {
  it('makes a card, and changes only the given members of an existing one', async () => {
    const { control, readCards } = await useSandbox()
    const id = 'VC-MINE'
    const cardPolicy = { cardLimit: '10000.50', minTransAmount: 1, cardCurrency: 'USD' }
    const made = { virtualCardRequestId: id, status: 'FROZEN', cardPolicy }
    expect((await control('POST', '/cards', made)).status).toBe(201)
    const change = { virtualCardRequestId: id, cardData: { cardBrand: 'amex' } }
    expect((await control('POST', '/cards', change)).status).toBe(200)
    const text = await (await readCards(`/${id}`)).text()
    expect(text).toContain('"cardLimit":10000.50,')
    expect(JSON.parse(text)).toMatchObject({
      data: {
        status: 'FROZEN',
        cardData: { cardBrand: 'amex', cardCVV: '***' },
        cardPolicy: { minTransAmount: 1, cardCurrency: 'USD' },
      },
    })
  })

  it('sends raw members unchecked, keeps the others, and shows them nowhere else', async () => {
    const { control, readCards } = await useSandbox()
    const cardData = { cardNumber: '4111111111111111', cardCVV: '123', pin: '0000' }
    const raw = { cardData, status: 7, surprise: { nested: [1, null] } }
    const made = await control('POST', '/cards', { virtualCardRequestId: 'LEAKY', raw })
    expect(await made.text()).not.toContain(cardData.cardNumber)
    for (const path of ['/LEAKY', '?pageSize=1']) {
      const text = await (await readCards(path)).text()
      expect(text).toMatch(/"cardHolderName":".*"cardNumber":"4111111111111111"/)
      expect(text).toContain('"cardCVV":"123","pin":"0000"')
      expect(text).toContain('"status":7')
      expect(text).toContain('"surprise":{"nested":[1,null]}')
    }
    expect(await (await control('GET', '/calls')).text()).not.toContain(cardData.cardNumber)
  })

  it.each([
    [422, { cardData: { cardNumber: '4111111111111111' } }, 'cardData.cardNumber'],
    [422, { cardPolicy: { cardLimit: '1.23456' } }, 'cardPolicy.cardLimit'],
    [422, { createdAt: 'yesterday' }, 'createdAt'],
    [422, { merchantCode: 'NOBODY' }, 'merchantCode'],
    [422, { colour: 'red' }, 'colour'],
    [409, { merchantCode: 'B', virtualCardRequestId: 'VC-A-0001' }, 'virtualCardRequestId'],
  ])('answers %i to %j and names the member', async (status, body, path) => {
    const accounts = ['A', 'B'].map((merchantCode) => ({ merchantCode, secret: 's' }))
    const { control } = await useSandbox({ accounts })
    const answer = await control('POST', '/cards', body)
    expect([answer.status, await answer.json()]).toMatchObject([status, { path }])
  })
})

describe('faults of cards', () => {
  it('can refuse every token until they are deleted', async () => {
    const { control, readCards, readCalls } = await useSandbox()
    await control('POST', '/faults', { command: 'cards', kind: 'code', code: 401 })
    for (let asked = 0; asked < 2; asked += 1) {
      const answer = await readCards('/VC-UFLIYL-0001')
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    }
    await control('DELETE', '/faults')
    expect((await readCards('')).status).toBe(200)
    expect(await readCalls('cards')).toMatchObject([
      { outcome: 'code', operation: 'detail', status: 401, workCode: null, token: 'accepted' },
      {},
      { outcome: 'answered', operation: 'list', status: 200, code: 1, workCode: 1 },
    ])
  })

  it.each([
    [503, 503, 503],
    [9, 200, 9],
    [1, 200, 0],
  ])('code %i is HTTP %i with an envelope of code %i', async (code, status, shown) => {
    const { control, readCards } = await useSandbox()
    await control('POST', '/faults', { command: 'cards', kind: 'code', code })
    const answer = await readCards('')
    expect([answer.status, await answer.json()]).toMatchObject([
      status,
      { code: shown, data: null, message: 'Failed' },
    ])
  })
})
