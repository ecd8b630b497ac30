import { request as requestRaw } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { expectInvalid, expectProblem } from '../support/api.ts'
import { expectRefused, findInTables } from '../support/ask.ts'
import {
  CARDS,
  CLIENT,
  makeItem,
  serveCards,
  startCards,
  writeDetail,
  writeList,
} from '../support/cards.ts'
import { addKey, KEY, MERCHANT } from '../support/service.ts'
import { useTestDatabase } from '../support/use-started.ts'

const database = useTestDatabase()

/** A gateway that always answers this, and the service beside it. */
async function startWith(body: string, status = 200, settings?: Record<string, string>) {
  const gateway = await serveCards((response) => response.writeHead(status).end(body))
  return { ...gateway, ...(await startCards(database, gateway.url, settings)) }
}

describe('a card', () => {
  it('comes as the gateway gave it, byte for byte, and is stored nowhere', async () => {
    const { get, reads } = await startWith(writeDetail({ unknown: [1.0, '#1.10#', true, null] }))
    const response = await get('/VC-1')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('cache-control')).toBe('private, no-store')
    expect(await response.text()).toBe(writeDetail({ unknown: [1.0, '#1.10#', true, null] }))
    expect(reads).toMatchObject([
      { path: `${CARDS}/VC-1`, headers: { authorization: 'Bearer T1' }, body: '' },
    ])
    expect(await findInTables(database, 'VC-1')).toEqual([])
  })

  it('with an open number and CVV leaves masked, is in no log and in no table', async () => {
    const open = { cardHolderName: 'A', cardNumber: '4111111111111111', cardCVV: '987' }
    const extraInfo = {
      pan: 4111111111111111,
      deep: [{ CVC: 987, text: 'is 4111 1111 1111 1111' }],
    }
    const { get, logged } = await startWith(writeDetail({ cardData: open, extraInfo }))
    const body = await (await get('/VC-1')).text()
    expect(body).not.toMatch(/4111 ?1111 ?1|987/)
    expect(JSON.parse(body).data).toMatchObject({
      cardData: { cardNumber: '411111******1111', cardCVV: '***' },
      extraInfo: {
        pan: '411111******1111',
        deep: [{ CVC: '***', text: 'is 4111 11** **** 1111' }],
      },
    })
    expect(logged()).not.toMatch(/411111|987/)
    expect(await findInTables(database, '411111')).toEqual([])
  })

  it.each([
    ['HTTP 404', 404, 0],
    ['a code that the settings list', 200, 7],
    ['such a code with an error status', 400, 404],
  ])(
    'that the gateway does not have, by %s, is 404 with its message, masked',
    async (_, status, code) => {
      const body = `{"code":${code},"state":1,"data":null,"message":"no card 4111111111111111"}`
      const settings = { ...CLIENT, GATEWAY_CARDS_NOT_FOUND_CODES: '7,404' }
      const { get, logged } = await startWith(body, status, settings)
      const problem = await expectProblem(await get('/VC-1'), 404, 'card_not_found')
      expect(problem.detail).toBe('no card 411111******1111')
      expect(logged()).not.toContain('4111111')
    },
  )

  it.each(['uflyl', 'SHOP 1', '#12345678901234567890#', null])(
    'of the only account is shown, however the gateway spells its code: %j',
    async (merchantCode) => {
      const body = writeDetail({ merchantCode })
      const { get } = await startWith(body)
      expect(await (await get('/VC-1')).text()).toBe(body)
    },
  )

  it('keeps the identifiers, amounts and dates that the specification names, also where they look like card numbers', async () => {
    const looksLikeCard = '24083008014600004'
    const body = writeDetail({
      requestId: looksLikeCard,
      virtualCardRequestId: looksLikeCard,
      merchantCode: '4111111111111111',
      cardPolicy: {
        policyRequestId: '4111111111111111',
        policyRevision: '#4111111111111111#',
        cardLimit: '#1234567890128#',
        minTransAmount: '#4111111111111111.00#',
        maxTransAmount: '#4.111111111111111e15#',
        supportedMccGroup: ['4111111111111111'],
      },
      createdAt: '4111111111111111',
      updatedAt: '4111 1111 1111 1111',
    }).replace('"RESP-1"', '4111111111111111')
    const { get, reads } = await startWith(body)
    expect(await (await get(`/${looksLikeCard}`)).text()).toBe(body)
    expect(reads.map(({ path }) => path)).toEqual([`${CARDS}/${looksLikeCard}`])
  })

  it.each([
    ['with the same names elsewhere', { extraInfo: { requestId: '4111111111111111' } }],
    [
      'in the status and the name',
      { status: '4111111111111111', merchantEmail: '4111111111111111' },
    ],
    [
      'in a policy that is none',
      { cardPolicy: { pan: '4111111111111111', other: '4111111111111111' } },
    ],
  ])('is masked %s', async (_, more) => {
    const { get } = await startWith(writeDetail(more))
    const text = await (await get('/VC-1')).text()
    expect(text).not.toContain('4111111')
    expect(text).toContain('411111******1111')
  })

  it('is shown without a state, and with a response id that is a number', async () => {
    const body = writeDetail().replace('"state":2', '"state":null').replace('"RESP-1"', '5')
    const { get } = await startWith(body)
    expect(await (await get('/VC-1')).text()).toBe(body)
  })

  it.each([
    ['a slash', '..%2fsecret'],
    ['a backslash', '..%5Csecret'],
    ['control characters', 'VC%0a1'],
    ['nothing but a space', '%20'],
    ['too much', 'x'.repeat(129)],
  ])('is not asked for by an id that holds %s', async (_, id) => {
    const { get, reads } = await startWith(writeDetail())
    await expectInvalid(await get(`/${id}`), 'virtualCardRequestId')
    expect(reads).toEqual([])
  })

  it.each(['/..', '/.', '/%2e%2e', '/%2E', '/%2e%2e%2f..%2f', '/../../secret', '/..\\secret'])(
    'is not asked for by a path that would lead elsewhere: %s',
    async (path) => {
      const { service, reads } = await startWith(writeDetail())
      const { port } = new URL(service.url)
      const sent = await new Promise<{ status: number; body: string }>((resolve, reject) => {
        const headers = { authorization: `Bearer ${KEY}` }
        requestRaw({ port, path: `${CARDS}${path}`, headers }, async (response) =>
          resolve({ status: response.statusCode ?? 0, body: await text(response) }),
        )
          .on('error', reject)
          .end()
      })
      expect([400, 404, 422]).toContain(sent.status)
      // A URL parser may resolve the dots: then the path is the list's, or unknown here.
      expect(reads.filter((read) => !read.path.startsWith(CARDS))).toEqual([])
    },
  )

  it.each([
    ['a?b=c', 'a%3Fb%3Dc'],
    ['a#b', 'a%23b'],
    ['%2e%2e%2f', '%252e%252e%252f'],
    ['thẻ 1', 'th%E1%BA%BB%201'],
  ])('by the id %s is asked for at its one place', async (id, escaped) => {
    const { get, reads } = await startWith(writeDetail())
    expect((await get(`/${encodeURIComponent(id)}`)).status).toBe(200)
    expect(reads.map(({ path }) => path)).toEqual([`${CARDS}/${escaped}`])
  })
})

it.each(['.', '..'])('no card is called %s, and the gateway is not asked for it', async (id) => {
  const { service, reads } = await startWith(writeDetail())
  const asked = { merchantCode: MERCHANT.merchantCode, virtualCardRequestId: id }
  expect(await service.ctx.cards.readCards(asked)).toEqual({ kind: 'missing', message: '' })
  expect(reads).toEqual([])
})

describe('a list', () => {
  const QUERY =
    'pageIndex=2&pageSize=100&dateFr=2026-02-28&dateTo=2026-02-28&requestId=R%261&status=ACTIVED&cardBrand=visa'

  it('comes as the gateway gave it, byte for byte, asked with the filters given', async () => {
    const body = writeList([makeItem(), makeItem({ virtualCardRequestId: 'VC-2' })])
    const { get, reads } = await startWith(body)
    const response = await get(`?${QUERY}&merchantCode=UFLIYL`)
    expect([response.status, await response.text()]).toEqual([200, body])
    expect(await (await get('')).text()).toBe(body)
    expect(reads.map(({ path }) => path)).toEqual([`${CARDS}?${QUERY}`, CARDS])
  })

  it('of the only account has all its cards, however the gateway spells its code', async () => {
    const codes = ['UFLIYL', 'uflyl', '#5#', null, undefined]
    const body = writeList(codes.map((merchantCode) => makeItem({ merchantCode })))
    const { get } = await startWith(body)
    expect(await (await get('')).text()).toBe(body)
  })

  it('keeps what the specification names, also where it looks like a card number', async () => {
    const item = makeItem({
      virtualCardRequestId: '24083008014600004',
      merchantId: '4111111111111111',
      cardPolicy: { cardLimit: '#1234567890128#' },
    })
    const body = writeList([item]).replace('"totalDocs":1', '"totalDocs":1234567890128')
    const { get } = await startWith(body)
    expect(await (await get('')).text()).toBe(body)
  })

  it.each([
    ['pageIndex', 'pageIndex=0'],
    ['pageIndex', 'pageIndex=1.5'],
    ['pageIndex', 'pageIndex=-1'],
    ['pageIndex', 'pageIndex='],
    ['pageIndex', 'pageIndex=1&pageIndex=2'],
    ['pageSize', 'pageSize=101'],
    ['pageSize', 'pageSize=0'],
    ['pageSize', 'pageSize=ten'],
    ['pageIndex', 'pageIndex=1234567890'],
    ['pageIndex', 'pageIndex=01'],
    ['pageSize', 'pageSize=100000'],
    ['dateFr', 'dateFr=2026-02-29'],
    ['dateFr', 'dateFr=2026-2-1'],
    ['dateTo', 'dateTo=21.11.2026'],
    ['dateTo', 'dateFr=2026-02-02&dateTo=2026-02-01'],
    ['requestId', 'requestId='],
    ['status', `status=${'x'.repeat(129)}`],
    ['cardBrand', 'cardBrand=%00'],
    ['limit', 'limit=5'],
  ])('with a wrong %s is refused by name: %s', async (field, query) => {
    const { get, reads } = await startWith(writeList([]))
    await expectInvalid(await get(`?${query}`), field)
    expect(reads).toEqual([])
  })
})

describe('a code other than success', () => {
  const body = '{"code":7,"message":"no card 4111111111111111","data":null}'

  it.each(['/VC-1', ''])('is a refusal with the code and the message, masked: %s', async (path) => {
    const { get, logged } = await startWith(body)
    const problem = await expectRefused(await get(path), 502, 'card_refused')
    expect(problem).toMatchObject({
      detail: 'The gateway refused the request with code 7: no card 411111******1111',
      gatewayCode: '7',
    })
    expect(logged()).toMatch(/"code":"7"/)
    expect(logged()).not.toContain('4111111')
  })

  it('is a refusal also with an error status, and for a list whatever the code', async () => {
    const settings = { ...CLIENT, GATEWAY_CARDS_NOT_FOUND_CODES: '7' }
    const list = await startWith(body, 200, settings)
    await expectRefused(await list.get(''), 502, 'card_refused')
    const forbidden = await startWith(body, 403)
    await expectRefused(await forbidden.get('/VC-1'), 502, 'card_refused')
    // With an error status the code of a success means nothing.
    const contradicting = await startWith('{"code":1,"message":"no"}', 403)
    await expectProblem(await contradicting.get('/VC-1'), 502, 'gateway_refused')
  })

  it('is not 1 where the settings name another', async () => {
    const settings = { ...CLIENT, GATEWAY_CARDS_SUCCESS_CODE: '0' }
    const zero = writeDetail().replace('"code":1', '"code":0')
    const { get } = await startWith(zero, 200, settings)
    expect(await (await get('/VC-1')).text()).toBe(zero)
    const one = await startWith(writeDetail(), 200, settings)
    const problem = await expectRefused(await one.get('/VC-1'), 502, 'card_refused')
    expect(problem).toMatchObject({ gatewayCode: '1' })
  })
})

it('the pages of a list may start at 0 and be larger, as the settings say', async () => {
  const body = writeList([makeItem()])
  const settings = {
    ...CLIENT,
    GATEWAY_CARDS_FIRST_PAGE: '0',
    GATEWAY_CARDS_MAX_PAGE_SIZE: '500',
  }
  const { get, reads } = await startWith(body, 200, settings)
  expect((await get('?pageIndex=0&pageSize=500')).status).toBe(200)
  expect(reads.map(({ path }) => path)).toEqual([`${CARDS}?pageIndex=0&pageSize=500`])
  const problem = await expectInvalid(await get('?pageSize=501'), 'pageSize')
  expect(problem.detail).toContain('from 1 to 500')
})

it.each([
  ['vi', 'vi'],
  ['EN', 'en'],
  ['vi-VN,en;q=0.8', 'vi'],
  ['fr, en;q=0.5, vi;q=0.9', 'vi'],
  ['vi;q=0', undefined],
  ['de', undefined],
  ['*', undefined],
])('the language %s is passed on as %s', async (asked, passed) => {
  const { get, reads } = await startWith(writeDetail())
  expect((await get('/VC-1', KEY, { 'accept-language': asked })).status).toBe(200)
  expect(reads[0]?.headers['accept-language']).toBe(passed)
})

describe('an answer that is none', () => {
  it.each([
    [500, '{"code":1,"data":{}}', 502, 'gateway_failed'],
    [302, '', 502, 'gateway_failed'],
    [200, 'rubbish', 502, 'gateway_failed'],
    [200, '[]', 502, 'gateway_failed'],
    [200, '{"code":"1","data":{}}', 502, 'gateway_failed'],
    [200, '{"code":1e-400,"data":{}}', 502, 'gateway_failed'],
    [200, '{"code":1,"data":[]}', 502, 'gateway_failed'],
    [200, '{"code":1,"data":{"docs":{}}}', 502, 'gateway_failed'],
    [
      200,
      '{"code":1,"data":{"docs":[{"merchantCode":[5]}],"merchantCode":[5]}}',
      502,
      'gateway_failed',
    ],
    [200, '['.repeat(500_000), 502, 'gateway_failed'],
    [200, ' '.repeat(1_100_000), 502, 'gateway_failed'],
    [403, '{"message":"not for you"}', 502, 'gateway_refused'],
    [429, '{"message":"slowly"}', 503, 'unavailable'],
    [400, '{"message":"no such status"}', 422, 'invalid_request'],
    [422, '', 422, 'invalid_request'],
  ] as const)('HTTP %i %.40s is %i %s', async (status, body, wanted, code) => {
    const { get } = await startWith(body, status)
    const paths = body.includes('docs') ? [''] : ['/VC-1', '']
    for (const path of paths) {
      const problem = await expectProblem(await get(path), wanted, code)
      if (body.includes('message')) expect(problem.detail).toContain(JSON.parse(body).message)
    }
  })

  it('because it takes too long is 504', async () => {
    const gateway = await serveCards(() => {})
    const settings = { ...CLIENT, GATEWAY_TIMEOUT_MS: '100' }
    const { get } = await startCards(database, gateway.url, settings)
    await expectProblem(await get('/VC-1'), 504, 'gateway_timeout')
  })

  it('because there is no connection, or it breaks, is 502', async () => {
    const gateway = await serveCards((response) => response.socket?.destroy())
    const { get } = await startCards(database, gateway.url)
    await expectProblem(await get('/VC-1'), 502, 'gateway_failed')
    const unreachable = await startCards(database, 'http://127.0.0.1:1', {
      GATEWAY_ACCESS_TOKEN: 'T1',
    })
    await expectProblem(await unreachable.get('/VC-1'), 502, 'gateway_failed')
  })
})

it('another prefix of the gateway is read, and its members kept', async () => {
  const body = writeDetail().replace('svcResponseId', 'brandResponseId')
  const settings = { ...CLIENT, GATEWAY_FIELD_PREFIX: 'brand' }
  expect(await (await (await startWith(body, 200, settings)).get('/VC-1')).text()).toBe(body)
  const wrong = body.replace('"RESP-1"', '[5]')
  const { get } = await startWith(wrong, 200, settings)
  await expectProblem(await get('/VC-1'), 502, 'gateway_failed')
})

it('reads are counted with their outcome', async () => {
  const { get, service } = await startWith(writeDetail())
  await get('/VC-1')
  const metrics = await (await fetch(`${service.url}/metrics`)).text()
  expect(metrics).toContain('gateway_call_seconds_count{command="cards",outcome="answered"} 1')
  expect(metrics).toContain('gateway_call_seconds_count{command="token",outcome="answered"} 1')
})

it('without a key, a scope or the right method no card is read', async () => {
  const { get, service, reads } = await startWith(writeDetail())
  const key = 'key-with-every-scope-but-cards-0123456789'
  await addKey(database, key, ['payments:read', 'refunds:read', 'refunds:write', 'ops'])
  for (const path of ['', '/VC-1']) {
    await expectProblem(await get(path, 'nobody'), 401, 'unauthenticated')
    await expectProblem(await get(path, key), 403, 'scope_missing')
    const init = { method: 'POST', headers: { authorization: `Bearer ${KEY}` } }
    const posted = await fetch(`${service.url}${CARDS}${path}`, init)
    await expectProblem(posted, 405, 'method_not_allowed')
  }
  await expectInvalid(await get('/VC-1?status=ACTIVED'), 'status')
  expect(reads).toEqual([])
})
