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
  return { ...(await startCards(database, sandbox.url, CLIENT)), ...sandbox }
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

it.each([true, false])(
  'a token of the sandbox that expired is renewed, and no caller sees it, nested: %s',
  async (nested) => {
    const { get, control, readCalls } = await start()
    await control('PUT', '/token-mode', { nested })
    expect((await get(CARD)).status).toBe(200)
    await control('POST', '/tokens/expire')
    expect((await get(CARD)).status).toBe(200)
    const verdicts = (await readCalls('cards')).map(({ token }) => token)
    expect(verdicts).toEqual(['accepted', 'expired', 'accepted'])
    expect(await readCalls('token')).toHaveLength(2)
  },
)

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
