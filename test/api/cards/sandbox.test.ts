import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { expectProblem } from '../../support/api.ts'
import { findInTables } from '../../support/ask.ts'
import { CARDS, startCards } from '../../support/cards.ts'
import { serve } from '../../support/gateway.ts'
import { useSandbox } from '../../support/sandbox.ts'
import { KEY, MERCHANT } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const CLIENT = {
  GATEWAY_CLIENT_ID: MERCHANT.merchantCode,
  GATEWAY_CLIENT_SECRET: `sandbox-${MERCHANT.merchantCode}`,
}
const CARD = '/VC-UFLIYL-0001'

const database = useTestDatabase()

/** The service beside a sandbox of its own. */
async function start() {
  const sandbox = await useSandbox()
  const started = await startCards(database, sandbox.url, CLIENT)
  const readMany = (n: number) =>
    Promise.all(Array.from({ length: n }, (_, nth) => started.get(`?pageSize=${nth + 1}`)))
  const countCalls = async () => ({
    cards: (await sandbox.readCalls('cards')).length,
    token: (await sandbox.readCalls('token')).length,
  })
  return { ...started, ...sandbox, readMany, countCalls }
}

/** The same with a proxy between them that records the sandbox's card answers. */
async function startRecorded() {
  const sandbox = await useSandbox()
  const answers: string[] = []
  const between = await serve(async (response, { path, headers, body }) => {
    const { authorization = '', 'accept-language': language } = headers
    const answer = await fetch(sandbox.url + path, {
      ...(body === '' ? {} : { method: 'POST', body }),
      headers: {
        'content-type': 'application/json',
        authorization,
        ...(language ? { 'accept-language': language } : {}),
      },
    })
    const text = await answer.text()
    if (path.startsWith(CARDS)) answers.push(text)
    response.writeHead(answer.status).end(text)
  })
  return { ...sandbox, ...(await startCards(database, between.url, CLIENT)), answers }
}

const Page = z.object({
  data: z.object({ docs: z.array(z.object({ virtualCardRequestId: z.string() })) }),
})

describe('what the gateway answers about cards', () => {
  it('passes through byte for byte: every card, and every list', async () => {
    const { get, answers } = await startRecorded()
    const pages = ['?pageSize=100', '', '?pageIndex=2&pageSize=3', '?status=LOCKED&cardBrand=visa']
    const all = await (await get('?pageSize=100')).text()
    const cards = Page.parse(JSON.parse(all)).data.docs
    expect(cards).toHaveLength(14)
    for (const path of [...pages, ...cards.map((card) => `/${card.virtualCardRequestId}`)]) {
      answers.length = 0
      const response = await get(path)
      expect(response.status).toBe(200)
      expect([await response.text()]).toEqual(answers)
    }
  })

  it('passes through in the language asked for, refusals included', async () => {
    const { get } = await start()
    const read = async (path: string, language: string) =>
      (await get(path, KEY, { 'accept-language': language })).json()
    expect(await read(CARD, 'vi')).toMatchObject({ message: 'Thành công' })
    expect(await read(CARD, 'en')).toMatchObject({ message: 'Successful' })
    expect(await read('/NOBODY', 'vi')).toMatchObject({ detail: 'Không tìm thấy thẻ ảo' })
    await expectProblem(await get('/NOBODY'), 404, 'card_not_found')
  })
})

describe('the token', () => {
  it('is fetched once for twenty reads at once on a cold start', async () => {
    const { readMany, countCalls } = await start()
    expect((await readMany(20)).map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(await countCalls()).toEqual({ cards: 20, token: 1 })
  })

  it('that expired at the gateway is renewed once, and no caller sees an error', async () => {
    const { get, control, readMany, readCalls, countCalls } = await start()
    expect((await get(CARD)).status).toBe(200)
    await control('POST', '/tokens/expire')
    expect((await get(CARD)).status).toBe(200)
    expect(await countCalls()).toEqual({ cards: 3, token: 2 })
    await control('POST', '/tokens/expire')
    expect((await readMany(20)).map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect((await countCalls()).token).toBe(3)
    const verdicts = (await readCalls('cards')).map(({ token }) => token)
    expect(new Set(verdicts)).toEqual(new Set(['accepted', 'expired']))
  })

  it.each([true, false])('of either shape is read, nested: %s', async (nested) => {
    const { get, control } = await start()
    await control('PUT', '/token-mode', { nested })
    expect((await get(CARD)).status).toBe(200)
  })

  it('that is refused whatever it is ends after two reads, as 502', async () => {
    const { get, control, countCalls } = await start()
    await control('POST', '/faults', { command: 'cards', kind: 'code', code: 401 })
    await expectProblem(await get(CARD), 502, 'gateway_token_refused')
    expect(await countCalls()).toEqual({ cards: 2, token: 2 })
  })

  it.each([
    ['http500', {}],
    ['garbage', {}],
    ['reset', {}],
    ['code', { code: 401 }],
  ])('that cannot be had (%s) is 502, and no card is asked for', async (kind, more) => {
    const { get, control, readCalls } = await start()
    await control('POST', '/faults', { command: 'token', kind, ...more })
    await expectProblem(await get(CARD), 502, 'gateway_token_refused')
    expect(await readCalls('cards')).toEqual([])
  })
})

describe('a gateway that misbehaves', () => {
  it.each([
    ['http500', {}, 502, 'gateway_failed'],
    ['garbage', {}, 502, 'gateway_failed'],
    ['truncate', {}, 502, 'gateway_failed'],
    ['reset', {}, 502, 'gateway_failed'],
    ['acceptThenReset', {}, 502, 'gateway_failed'],
    ['delay', { delayMs: 60_000 }, 504, 'gateway_timeout'],
    ['acceptThenHang', {}, 504, 'gateway_timeout'],
    ['code', { code: 503 }, 502, 'gateway_failed'],
    ['code', { code: 429 }, 503, 'unavailable'],
  ] as const)('%s %o: %i, once asked, and well again after', async (kind, more, status, code) => {
    const { get, control, readCalls } = await start()
    expect((await get(CARD)).status).toBe(200)
    for (const path of [CARD, '?status=ACTIVED']) {
      await control('POST', '/faults', { command: 'cards', kind, ...more })
      await expectProblem(await get(path), status, code)
      await control('DELETE', '/faults')
      expect((await get(path)).status).toBe(200)
    }
    expect(await readCalls('cards')).toHaveLength(5)
  })
})

it('a careless gateway: neither number nor CVV leaves, is logged or stored', async () => {
  const { get, control, logged, answers } = await startRecorded()
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
    expect([answers.at(-1), shown]).toEqual([
      expect.stringMatching(open),
      expect.not.stringMatching(open),
    ])
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
  for (const text of [number, 'open987', 'VC-OPEN', CLIENT.GATEWAY_CLIENT_SECRET]) {
    expect(await findInTables(database, text)).toEqual([])
  }
})
