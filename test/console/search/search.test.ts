import { beforeAll, describe, expect, it } from 'vitest'
import { OTHER, seedPayment, seedTransaction, TWO_ACCOUNTS } from '../../support/api.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { addVisitor, dropProof, submitAs, type Visitor, visitAs } from '../../support/console.ts'
import { readText } from '../../support/read-html.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web', ...TWO_ACCOUNTS } })
let viewer: Visitor
let theirs: Visitor
let everyone: Visitor
let refundId = ''
beforeAll(async () => {
  const { database } = rig
  viewer = await addVisitor(database, { merchants: [MERCHANT.merchantCode] })
  theirs = await addVisitor(database, { merchants: [OTHER.merchantCode] })
  everyone = await addVisitor(database)
  await seedTransaction(database, {
    transactionId: 'T-FIND-1',
    orderId: 'DH-77',
    state: 'paid',
    firstSeenAt: '2026-11-20T10:00:00Z',
  })
  await database.sql`
    update transactions set merchant_txn_id = 'SHOP-5', paid_amount = 77001.50 where transaction_id = 'T-FIND-1'`
  await seedPayment(database, {
    paymentId: 'P-77001',
    transactionId: 'T-FIND-1',
    amount: '77001.50',
    paymentMethod: 'CC',
    firstSeenAt: '2026-11-20T10:00:00Z',
  })
  for (const transactionId of ['T-FIND-2', 'T-FIND-3']) {
    await seedTransaction(database, { transactionId, orderId: 'DH-88', state: 'failed' })
  }
  await seedTransaction(database, { transactionId: 'T-FIND-30', orderId: 'DH-880' })
  await seedTransaction(database, { ...OTHER, transactionId: 'T-THEIRS-1', orderId: 'DH-77' })
  const asked = { url: rig.service.url, query: `?merchantCode=${MERCHANT.merchantCode}` }
  refundId = (await expectTaken(await ask(asked, 'P-77001', { amount: '77' }))).id
  await database.sql`
    update refunds set gateway_refund_id = '5SYNM1OELUND', notified_reference = 'FT26326NOTIFIED'`
})

const search = (query: Record<string, string>, who = viewer) =>
  visitAs(rig, who, `/console?${new URLSearchParams(query)}`)

async function read(query: Record<string, string>, who = viewer, status = 200): Promise<string> {
  const response = await search(query, who)
  const html = await response.text()
  expect({ status: response.status, html }).toMatchObject({ status })
  return html
}

const STORY = `/console/transactions/${MERCHANT.merchantCode}/T-FIND-1`

describe('one hit leads on', () => {
  it.each([
    ['a transaction id', () => 'T-FIND-1', ''],
    ['a payment id', () => 'P-77001', '#payment-P-77001'],
    ['an amount', () => '77001.5', '#payment-P-77001'],
    ['an amount as the pages write it', () => '77,001.50 VND', '#payment-P-77001'],
  ])('%s', async (_, q, anchor) => {
    const response = await search({ q: q() })
    expect([response.status, response.headers.get('location')]).toEqual([303, STORY + anchor])
  })

  it.each([
    ['a refund id', () => refundId],
    ["the gateway's refund id", () => '5SYNM1OELUND'],
    ['the reference on a bank statement', () => 'FT26326NOTIFIED'],
  ])('%s, to the page of the refund', async (_, q) => {
    const path = `/console/refunds/${MERCHANT.merchantCode}/${refundId}`
    const response = await search({ q: q() })
    expect([response.status, response.headers.get('location')]).toEqual([303, path])
    expect(await (await visitAs(rig, viewer, '/console/refunds')).text()).toContain(`"${path}"`)
  })

  it('an exact id among others that begin with it', async () => {
    const response = await search({ q: 'T-FIND-3' })
    expect(response.headers.get('location')).toBe(
      `/console/transactions/${MERCHANT.merchantCode}/T-FIND-3`,
    )
  })
})

describe('several hits', () => {
  it('are grouped by kind, with state, amount, order and age', async () => {
    const html = await read({ q: 'T-FIND' })
    const text = readText(html)
    expect(text).toContain('4 results')
    expect(html).toContain(`href="${STORY}"`)
    expect(text).toMatch(
      /T-FIND-1 Transaction id Paid 77,001\.50 VND DH-77 UFLIYL 2026-11-20 10:00:00/,
    )
  })

  it('of one order id are all shown', async () => {
    const text = readText(await read({ q: 'DH-88' }))
    expect(text).toContain('T-FIND-2 Order id')
    expect(text).toContain('T-FIND-3 Order id')
    expect(text).toContain('T-FIND-30 Order id')
  })
})

describe('nothing found', () => {
  it('says what was searched and what else to try', async () => {
    const html = await read({ q: 'NOBODY-KNOWS-1' })
    const text = readText(html)
    expect(text).toContain('Nothing found for “NOBODY-KNOWS-1”')
    expect(text).toContain('order ids')
    expect(text).toContain('Ask the gateway about this id')
    expect(html).toContain('value="UFLIYL"')
  })

  it.each(['hello there friend', 'short1', '1500', 'nodigitsinthis'])(
    'offers no question to the gateway for %s',
    async (q) => {
      expect(await read({ q })).not.toContain('Ask the gateway about this id')
    },
  )

  it('of a text that is too long or holds control characters is a problem', async () => {
    for (const q of ['x'.repeat(129), 'a\u0007bc']) {
      expect(readText(await read({ q }, viewer, 422))).toContain('at most 128 characters')
    }
  })

  it('asks the gateway about an id whose notification never came', async () => {
    const fields = { transactionId: 'T-UNHEARD-1', merchantCode: MERCHANT.merchantCode }
    const response = await submitAs(rig, everyone, '/console/transactions', fields)
    expect(response.status).toBe(303)
    const story = `/console/transactions/${MERCHANT.merchantCode}/T-UNHEARD-1`
    expect(dropProof(response.headers.get('location'))).toBe(`${story}?notice=asked`)
    const text = readText(await (await visitAs(rig, everyone, story)).text())
    expect(text).toContain('The gateway has not confirmed this id so far')
    expect(text).toContain('The gateway is being asked now')
  })

  it('lets who has several accounts choose one of them', async () => {
    const html = await read({ q: 'NOBODY-KNOWS-1' }, everyone)
    const [, choices] = /<select id="merchantCode"[^>]*>(.*?)<\/select>/s.exec(html) ?? []
    expect(
      readText(choices ?? '')
        .split(' ')
        .toSorted(),
    ).toEqual(['OTHER1', 'UFLIYL'])
  })
})

describe("another account's objects", () => {
  it('are not found, and not asked about', async () => {
    expect(readText(await read({ q: 'T-THEIRS-1' }))).toContain('Nothing found')
    expect(readText(await read({ q: 'T-FIND-1' }, theirs))).toContain('Nothing found')
    expect(readText(await read({ q: 'FT26326NOTIFIED' }, theirs))).toContain('Nothing found')
    const fields = { transactionId: 'T-THEIRS-1', merchantCode: OTHER.merchantCode }
    const refused = await submitAs(rig, viewer, '/console/transactions', fields)
    expect(refused.status).toBe(404)
    const [row] = await rig.database.sql<{ want: number }[]>`
      select want from transactions where transaction_id = 'T-THEIRS-1'`
    expect(row?.want).toBe(1)
  })
})
