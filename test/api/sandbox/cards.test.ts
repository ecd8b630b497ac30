import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { useSandbox } from '../../support/sandbox.ts'

const Page = z.object({
  data: z.object({
    docs: z.array(
      z.object({ virtualCardRequestId: z.string(), status: z.string(), createdAt: z.string() }),
    ),
    totalDocs: z.number(),
    totalPages: z.number(),
  }),
})

const readPage = async (answer: Response) => Page.parse(await answer.json()).data
const readIds = async (answer: Response) =>
  (await readPage(answer)).docs.map((card) => card.virtualCardRequestId)

const AMOUNTS = {
  cardLimit: expect.any(Number),
  minTransAmount: expect.any(Number),
  maxTransAmount: expect.any(Number),
}
const TIME = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T.*Z$/)

describe('a virtual card', () => {
  it('has every member of its table, number and CVV masked', async () => {
    const { readCards } = await useSandbox()
    const answer = await readCards('/VC-UFLIYL-0001')
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual({
      code: 1,
      state: 2,
      message: 'Successful',
      svcResponseId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      data: {
        requestId: 'BATCH-UFLIYL-1',
        virtualCardRequestId: 'VC-UFLIYL-0001',
        merchantCode: 'UFLIYL',
        cardData: {
          cardHolderName: expect.any(String),
          cardNumber: expect.stringMatching(/^\d{6}\*{6}\d{4}$/),
          cardExpiryDate: expect.stringMatching(/^\d{4}-\d{2}$/),
          cardBrand: 'visa',
          cardCVV: '***',
        },
        cardPolicy: {
          policyRequestId: expect.any(String),
          policyRevision: expect.any(Number),
          cardCurrency: 'VND',
          ...AMOUNTS,
          autoCloseCard: expect.any(Boolean),
          activeOnCreate: expect.any(Boolean),
          supportedMccGroup: expect.arrayContaining([expect.any(String)]),
        },
        status: 'ACTIVED',
        extraInfo: expect.any(Object),
        createdAt: TIME,
        updatedAt: TIME,
      },
    })
  })

  it('that is unknown is a 404 with a message in the requested language', async () => {
    const { readCards } = await useSandbox({ fieldPrefix: 'vnx' })
    const answer = await readCards('/NONE', { language: 'vi-VN,vi;q=0.9,en;q=0.5' })
    expect(answer.status).toBe(404)
    expect(await answer.json()).toEqual({
      code: 404,
      state: 0,
      data: null,
      message: 'Không tìm thấy thẻ ảo',
      vnxResponseId: expect.any(String),
    })
    const english = await (await readCards('/NONE', { language: 'en' })).json()
    expect(english).toMatchObject({ message: 'No such virtual card' })
  })
})

describe('the list', () => {
  it('has every member of its table, but no number, expiry or CVV', async () => {
    const { readCards } = await useSandbox()
    const answer = await readCards('?pageSize=1', { language: 'vi' })
    expect(await answer.json()).toEqual({
      code: 1,
      state: 2,
      message: 'Thành công',
      svcResponseId: expect.any(String),
      data: {
        docs: [
          {
            requestId: expect.any(String),
            virtualCardRequestId: 'VC-UFLIYL-0014',
            merchantId: expect.any(String),
            merchantCode: 'UFLIYL',
            merchantEmail: expect.stringContaining('@'),
            cardData: { cardHolderName: expect.any(String), cardBrand: expect.any(String) },
            cardPolicy: {
              policyRequestId: expect.any(String),
              policyRevision: expect.any(Number),
              cardCurrency: expect.any(String),
              ...AMOUNTS,
              autoCloseCard: expect.any(Boolean),
            },
            status: expect.any(String),
            extraInfo: expect.any(Object),
            createdAt: TIME,
            updatedAt: TIME,
          },
        ],
        totalDocs: 14,
        totalPages: 14,
      },
    })
  })

  it('starts at page 1 with ten, newest first, and holds every status', async () => {
    const { readCards } = await useSandbox()
    const first = await readPage(await readCards(''))
    const second = await readPage(await readCards('?pageIndex=2'))
    expect(first).toMatchObject({ totalDocs: 14, totalPages: 2 })
    expect([first.docs.length, second.docs.length]).toEqual([10, 4])
    const all = [...first.docs, ...second.docs]
    const times = all.map((card) => card.createdAt)
    expect(times).toEqual([...times].sort().reverse())
    expect(new Set(all.map((card) => card.status))).toEqual(
      new Set(['ACTIVED', 'INACTIVED', 'INACTIVE', 'ACTIVE', 'EXPIRED', 'LOCKED', 'FAILED']),
    )
    expect(await readPage(await readCards('?pageIndex=3'))).toMatchObject({ docs: [] })
  })

  it('has the cards that match each filter, and all of them at once', async () => {
    const { readCards } = await useSandbox()
    for (const [query, ids] of [
      ['status=LOCKED', ['0013', '0006']],
      ['requestId=BATCH-UFLIYL-3', ['0014', '0013', '0012', '0011']],
      ['cardBrand=jcb&status=EXPIRED', ['0012']],
      ['dateFr=2026-01-09&dateTo=2026-01-09', ['0013', '0012']],
      ['dateFr=2026-01-10&status=&unknown=1', ['0014']],
      ['dateTo=2025-12-31', []],
    ] as const) {
      const expected = ids.map((id) => `VC-UFLIYL-${id}`)
      expect(await readIds(await readCards(`?${query}`))).toEqual(expected)
    }
  })

  it('filters by whole days in UTC', async () => {
    const { control, readCards } = await useSandbox()
    const make = (id: string, createdAt: string) =>
      control('POST', '/cards', { virtualCardRequestId: id, createdAt })
    await make('FIRST', '2025-06-01T07:00:00+07:00')
    await make('LAST', '2025-06-01T23:59:59.999Z')
    await make('AFTER', '2025-06-02T00:00:00Z')
    const day = '?dateFr=2025-06-01&dateTo=2025-06-01'
    expect(await readIds(await readCards(day))).toEqual(['LAST', 'FIRST'])
  })

  it('says of a wrong parameter what it must be', async () => {
    const { readCards } = await useSandbox()
    for (const [query, message] of [
      ['pageIndex=0', 'pageIndex must be a whole number'],
      ['pageSize=101', 'pageSize must be a whole number from 1 to 100'],
      ['dateFr=2026-02-30', 'dateFr must be a day'],
      ['dateFr=2026-02-02&dateTo=2026-02-01', 'dateFr must not be after dateTo'],
      ['status=ACTIVED&status=LOCKED', 'status is given more than once'],
    ]) {
      const answer = await readCards(`?${query}`)
      expect(answer.status).toBe(422)
      expect(await answer.json()).toMatchObject({
        code: 422,
        data: null,
        message: expect.stringContaining(message ?? ''),
      })
    }
  })
})
