import { request as requestRaw } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { expectInvalid, expectProblem } from '../support/api.ts'
import { expectRefused, findInTables } from '../support/ask.ts'
import { PARAMETERS, WRONG_QUERIES } from '../support/card-specification.ts'
import {
  CARDS,
  CLIENT,
  makeItem,
  serveCards,
  startCards,
  writeDetail,
  writeList,
} from '../support/cards.ts'
import { useSandbox } from '../support/sandbox.ts'
import { KEY, MERCHANT } from '../support/service.ts'
import { useTestDatabase } from '../support/use-started.ts'

/** What order systems are shown of the gateway's cards; test/unit/card-answers has every member in every form. */

const database = useTestDatabase()

/** A gateway that answers each read with `answer`, which may change, and the service beside it. */
async function startWith(body: string, settings?: Record<string, string>) {
  const answer = { body, status: 200 }
  const gateway = await serveCards((response) => response.writeHead(answer.status).end(answer.body))
  return { answer, ...gateway, ...(await startCards(database, gateway.url, settings)) }
}

describe('a card', () => {
  it('comes as the gateway gave it, byte for byte, and is stored nowhere', async () => {
    const body = writeDetail({ unknown: [1.0, '#1.10#', true, null] })
    const { get, reads } = await startWith(body)
    const response = await get('/VC-1')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('cache-control')).toBe('private, no-store')
    expect(await response.text()).toBe(body)
    expect(reads).toMatchObject([
      { path: `${CARDS}/VC-1`, headers: { authorization: 'Bearer T1' }, body: '' },
    ])
    expect(await findInTables(database, 'VC-1')).toEqual([])
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
      const { get, answer, logged } = await startWith(body, settings)
      answer.status = status
      const problem = await expectProblem(await get('/VC-1'), 404, 'card_not_found')
      expect(problem.detail).toBe('no card 411111******1111')
      expect(logged()).not.toContain('4111111')
    },
  )

  it('is not asked for by an id that could change the path', async () => {
    const { get, reads } = await startWith(writeDetail())
    for (const id of ['..%2fsecret', '..%5Csecret', 'VC%0a1', '%20', 'x'.repeat(129)]) {
      await expectInvalid(await get(`/${id}`), 'virtualCardRequestId')
    }
    expect(reads).toEqual([])
  })

  it('is not asked for by a path that would lead elsewhere', async () => {
    const { service, reads } = await startWith(writeDetail())
    const { port } = new URL(service.url)
    for (const path of [
      ...['/..', '/.', '/%2e%2e', '/%2E', '/%2e%2e%2f..%2f', '/../../secret', '/..\\secret'],
    ]) {
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const headers = { authorization: `Bearer ${KEY}` }
        requestRaw({ port, path: `${CARDS}${path}`, headers }, async (response) => {
          await text(response)
          resolve(response.statusCode)
        })
          .on('error', reject)
          .end()
      })
      expect([400, 404, 422]).toContain(status)
    }
    // A URL parser may resolve the dots: then the path is the list's, or unknown here.
    expect(reads.filter((read) => !read.path.startsWith(CARDS))).toEqual([])
  })

  it('is asked for at its one place, whatever its id', async () => {
    const { get, reads } = await startWith(writeDetail())
    const ids = ['a?b=c', 'a#b', '%2e%2e%2f', 'thẻ 1', '24083008014600004']
    for (const id of ids) expect((await get(`/${encodeURIComponent(id)}`)).status).toBe(200)
    const escaped = ['a%3Fb%3Dc', 'a%23b', '%252e%252e%252f', 'th%E1%BA%BB%201', ids[4]]
    expect(reads.map(({ path }) => path)).toEqual(escaped.map((id) => `${CARDS}/${id}`))
  })
})

it.each(['.', '..'])('no card is called %s, and the gateway is not asked for it', async (id) => {
  const { service, reads } = await startWith(writeDetail())
  const asked = { merchantCode: MERCHANT.merchantCode, virtualCardRequestId: id }
  expect(await service.ctx.gateway.readCards(asked)).toEqual({ kind: 'missing', message: '' })
  expect(reads).toEqual([])
})

describe('a list', () => {
  const QUERY =
    'pageIndex=2&pageSize=100&dateFr=2026-02-28&dateTo=2026-02-28&requestId=R%261&status=ACTIVED&cardBrand=visa'

  it('comes as the gateway gave it, byte for byte, asked with the filters given', async () => {
    const body = writeList([makeItem(), makeItem({ virtualCardRequestId: 'VC-2' })])
    const { get, reads } = await startWith(body)
    const alone = PARAMETERS.map(({ name, right }) => `?${name}=${right}`)
    const response = await get(`?${QUERY}&merchantCode=UFLIYL`)
    expect([response.status, await response.text()]).toEqual([200, body])
    for (const query of ['', ...alone]) expect(await (await get(query)).text()).toBe(body)
    const asked = [`?${QUERY}`, '', ...alone].map((query) => CARDS + query)
    expect(reads.map(({ path }) => path)).toEqual(asked)
  })

  it('with a wrong parameter is refused by its name, and the gateway is not asked', async () => {
    const { get, reads } = await startWith(writeList([]))
    const more = [
      ...['pageIndex=', 'pageIndex=1&pageIndex=2', 'pageIndex=1234567890', 'pageIndex=01'],
      ...['pageSize=100000', 'dateFr=2026-02-29', 'dateFr=', 'dateTo=21.11.2026', 'requestId='],
      ...['status=', `status=${'x'.repeat(129)}`, 'cardBrand=%00', 'limit=5', 'brand=visa'],
    ].map((query) => ({ name: query.split('=')[0] ?? '', query: `?${query}` }))
    const order = { name: 'dateTo', query: '?dateFr=2026-02-02&dateTo=2026-02-01' }
    for (const { name, query } of [...WRONG_QUERIES, ...more, order]) {
      await expectInvalid(await get(query), name)
    }
    await expectInvalid(await get('/VC-1?status=ACTIVED'), 'status')
    expect(reads).toEqual([])
  })
})

describe('a code other than success', () => {
  const body = '{"code":7,"message":"no card 4111111111111111","data":null}'

  it('is a refusal with the code and the message, masked', async () => {
    const { get, logged } = await startWith(body)
    for (const path of ['/VC-1', '']) {
      const problem = await expectRefused(await get(path), 502, 'card_refused')
      expect(problem).toMatchObject({
        detail: 'The gateway refused the request with code 7: no card 411111******1111',
        gatewayCode: '7',
      })
    }
    expect(logged()).toMatch(/"code":"7"/)
    expect(logged()).not.toContain('4111111')
  })

  it('is a refusal also with an error status, and for a list whatever the code', async () => {
    const settings = { ...CLIENT, GATEWAY_CARDS_NOT_FOUND_CODES: '7' }
    const list = await startWith(body, settings)
    await expectRefused(await list.get(''), 502, 'card_refused')
    const { get, answer } = await startWith(body)
    answer.status = 403
    await expectRefused(await get('/VC-1'), 502, 'card_refused')
    // With an error status the code of a success means nothing.
    answer.body = '{"code":1,"message":"no"}'
    await expectProblem(await get('/VC-1'), 502, 'gateway_refused')
  })

  it('is not 1 where the settings name another', async () => {
    const settings = { ...CLIENT, GATEWAY_CARDS_SUCCESS_CODE: '0' }
    const zero = writeDetail().replace('"code":1', '"code":0')
    const { get, answer } = await startWith(zero, settings)
    expect(await (await get('/VC-1')).text()).toBe(zero)
    answer.body = writeDetail()
    const problem = await expectRefused(await get('/VC-1'), 502, 'card_refused')
    expect(problem).toMatchObject({ gatewayCode: '1' })
  })
})

it('the pages of a list may start at 0 and be larger, as the settings say', async () => {
  const body = writeList([makeItem()])
  const settings = { ...CLIENT, GATEWAY_CARDS_FIRST_PAGE: '0', GATEWAY_CARDS_MAX_PAGE_SIZE: '500' }
  const { get, reads } = await startWith(body, settings)
  expect((await get('?pageIndex=0&pageSize=500')).status).toBe(200)
  expect(reads.map(({ path }) => path)).toEqual([`${CARDS}?pageIndex=0&pageSize=500`])
  const problem = await expectInvalid(await get('?pageSize=501'), 'pageSize')
  expect(problem.detail).toContain('from 1 to 500')
})

it('the language is passed on if it is vi or en', async () => {
  const { get, reads } = await startWith(writeDetail())
  const languages = [
    ['vi', 'vi'],
    ['EN', 'en'],
    ['vi-VN,en;q=0.8', 'vi'],
    ['fr, en;q=0.5, vi;q=0.9', 'vi'],
    ['vi;q=0', undefined],
    ['de', undefined],
    ['*', undefined],
  ] as const
  for (const [asked] of languages) {
    expect((await get('/VC-1', KEY, { 'accept-language': asked })).status).toBe(200)
  }
  const passed = reads.map(({ headers }) => headers['accept-language'])
  expect(passed).toEqual(languages.map(([, wanted]) => wanted))
})

describe('an answer that is none', () => {
  it('is a problem that says why, and the gateway is not asked again', async () => {
    const { get, answer, reads } = await startWith('')
    for (const [status, body, wanted, code] of [
      [500, '{"code":1,"data":{}}', 502, 'gateway_failed'],
      [302, '', 502, 'gateway_failed'],
      [200, 'rubbish', 502, 'gateway_failed'],
      [200, '{"code":"1","data":{}}', 502, 'gateway_failed'],
      [403, '{"message":"not for you"}', 502, 'gateway_refused'],
      [429, '{"message":"slowly"}', 503, 'unavailable'],
      [400, '{"message":"no such status"}', 422, 'invalid_request'],
      [422, '', 422, 'invalid_request'],
    ] as const) {
      Object.assign(answer, { status, body })
      for (const path of ['/VC-1', '']) {
        const asked = reads.length
        const problem = await expectProblem(await get(path), wanted, code)
        expect(reads.length).toBe(asked + 1)
        if (body.includes('message')) expect(problem.detail).toContain(JSON.parse(body).message)
      }
    }
    for (const docs of ['{}', '[null]', '["VC-1"]', '[{"merchantCode":[5]}]']) {
      Object.assign(answer, { status: 200, body: `{"code":1,"data":{"docs":${docs}}}` })
      await expectProblem(await get(''), 502, 'gateway_failed')
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

it('reads are counted with their outcome', async () => {
  const { get, service } = await startWith(writeDetail())
  await get('/VC-1')
  const metrics = await (await fetch(`${service.url}/metrics`)).text()
  expect(metrics).toContain('gateway_call_seconds_count{command="cards",outcome="answered"} 1')
  expect(metrics).toContain('gateway_call_seconds_count{command="token",outcome="answered"} 1')
})

it('a careless gateway: neither number nor CVV leaves, is logged or stored', async () => {
  const sandbox = await useSandbox()
  const { control } = sandbox
  const client = { ...CLIENT, GATEWAY_CLIENT_ID: 'UFLIYL', GATEWAY_CLIENT_SECRET: 'sandbox-UFLIYL' }
  const { get, logged } = await startCards(database, sandbox.url, client)
  const number = '5555555555554444'
  await control('POST', '/cards', {
    virtualCardRequestId: 'VC-OPEN',
    raw: {
      cardData: { cardNumber: number, cardCVV: 'open987' },
      extraInfo: {
        pan: '5555 5555 5555 4444',
        asNumber: 5555555555554444,
        [number]: { cvc: 987, note: 'card 5555-5555-5555-4444, CVV: 987' },
      },
      status: `REQ-${number}`,
      secondCvv2: ['open987'],
    },
  })
  const open = /555555\W?[^*\W]|\d{3}\W?4444|open987|"cvc":987|CVV: 987/
  for (const path of ['/VC-OPEN', '']) {
    const response = await get(path)
    expect(response.status).toBe(200)
    const { data } = JSON.parse(await response.text())
    const shown = JSON.stringify(data)
    expect(shown).not.toMatch(open)
    expect(await (await sandbox.readCards(path)).text()).toMatch(open)
    expect(data.docs?.[0] ?? data).toMatchObject({
      virtualCardRequestId: 'VC-OPEN',
      cardData: { cardNumber: '555555******4444', cardCVV: '***' },
      extraInfo: {
        pan: '5555 55** **** 4444',
        asNumber: '555555******4444',
        '555555******4444': { cvc: '***', note: 'card 5555-55**-****-4444, CVV: ***' },
      },
      status: 'REQ-555555******4444',
      secondCvv2: '***',
    })
  }
  await control('POST', '/faults', { command: 'cards', kind: 'garbage' })
  for (const path of [`/${number}`, `?requestId=${number}`]) {
    const problem = await expectProblem(await get(path), 502, 'gateway_failed')
    expect(JSON.stringify(problem)).not.toContain(number.slice(0, 7))
  }
  expect(logged()).not.toBe('')
  expect(logged()).not.toMatch(new RegExp(`${number.slice(0, 7)}|open987`))
  for (const text of [number, 'open987', 'VC-OPEN']) {
    expect(await findInTables(database, text)).toEqual([])
  }
})
