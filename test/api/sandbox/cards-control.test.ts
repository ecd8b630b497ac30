import { describe, expect, it } from 'vitest'
import { useSandbox } from '../../support/sandbox.ts'

describe('control of cards', () => {
  it('makes a card, and changes only the given members of an existing one', async () => {
    const { control, readCards } = await useSandbox()
    const id = 'VC-MINE'
    const limits = { cardLimit: '10000.50', minTransAmount: 1, cardCurrency: 'USD' }
    const made = await control('POST', '/cards', {
      virtualCardRequestId: id,
      status: 'FROZEN',
      cardPolicy: limits,
    })
    expect(made.status).toBe(201)
    const changed = await control('POST', '/cards', {
      virtualCardRequestId: id,
      cardData: { cardBrand: 'amex' },
    })
    expect(changed.status).toBe(200)
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

  it('sends raw members unchecked and keeps the other members', async () => {
    const { control, readCards } = await useSandbox()
    const raw = {
      cardData: { cardNumber: '4111111111111111', cardCVV: '123', pin: '0000' },
      status: 7,
      surprise: { nested: [1, null] },
    }
    const made = await control('POST', '/cards', { virtualCardRequestId: 'LEAKY', raw })
    const echoed = await made.text()
    expect(echoed).not.toContain('4111111111111111')
    for (const path of ['/LEAKY', '?pageSize=1']) {
      const text = await (await readCards(path)).text()
      expect(text).toContain('"cardNumber":"4111111111111111"')
      expect(text).toContain('"cardCVV":"123","pin":"0000"')
      expect(text).toContain('"status":7')
      expect(text).toContain('"surprise":{"nested":[1,null]}')
      expect(text).toContain('"cardHolderName":"')
    }
    const journal = await (await control('GET', '/calls')).text()
    expect(journal).not.toContain('4111111111111111')
  })

  it.each([
    [{ cardData: { cardNumber: '4111111111111111' } }, 'cardData.cardNumber'],
    [{ cardPolicy: { cardLimit: '1.23456' } }, 'cardPolicy.cardLimit'],
    [{ createdAt: 'yesterday' }, 'createdAt'],
    [{ merchantCode: 'NOBODY' }, 'merchantCode'],
    [{ colour: 'red' }, 'colour'],
  ])('refuses %j and names it', async (body, path) => {
    const { control } = await useSandbox()
    const answer = await control('POST', '/cards', body)
    expect(answer.status).toBe(422)
    expect(await answer.json()).toMatchObject({ path })
  })

  it('leaves a card of another account alone', async () => {
    const accounts = ['ONE', 'TWO'].map((merchantCode) => ({ merchantCode, secret: 's' }))
    const { control } = await useSandbox({ accounts })
    const answer = await control('POST', '/cards', {
      merchantCode: 'TWO',
      virtualCardRequestId: 'VC-ONE-0001',
    })
    expect(answer.status).toBe(409)
  })
})

describe('faults of cards', () => {
  it('can refuse every token until they are deleted', async () => {
    const { control, readCards, readCalls } = await useSandbox()
    await control('POST', '/faults', { command: 'cards', kind: 'code', code: 401 })
    for (let asked = 0; asked < 3; asked += 1) {
      const answer = await readCards('/VC-UFLIYL-0001')
      expect(answer.status).toBe(401)
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
    await control('DELETE', '/faults')
    expect((await readCards('')).status).toBe(200)
    expect(await readCalls('cards')).toMatchObject([
      { outcome: 'code', operation: 'detail', status: 401, workCode: null, token: 'accepted' },
      {},
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
    expect(answer.status).toBe(status)
    expect(await answer.json()).toMatchObject({ code: shown, data: null, message: 'Failed' })
  })

  it('affect cards the same way as queries', async () => {
    const { control, readCards, fetchToken } = await useSandbox()
    const token = await fetchToken()
    for (const kind of ['http500', 'garbage', 'truncate', 'reset']) {
      await control('POST', '/faults', { command: 'cards', kind, times: 1 })
    }
    expect((await readCards('', { token })).status).toBe(500)
    await expect((await readCards('', { token })).json()).rejects.toThrow()
    await expect((await readCards('', { token })).text()).rejects.toThrow('terminated')
    await expect(readCards('', { token })).rejects.toThrow()
    expect((await readCards('', { token })).status).toBe(200)
  })
})
