import { beforeAll, describe, expect, it } from 'vitest'
import {
  OTHER,
  seedDiscrepancy,
  seedPayment,
  seedTransaction,
  TWO_ACCOUNTS,
} from '../support/api.ts'
import { ask, expectTaken } from '../support/ask.ts'
import { addVisitor, type Visitor, visitAs } from '../support/console.ts'
import { readText } from '../support/read-html.ts'
import { MERCHANT } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web', ...TWO_ACCOUNTS } })
let operator: Visitor
let viewer: Visitor
beforeAll(async () => {
  const { database } = rig
  operator = await addVisitor(database, { roles: ['operator'], merchants: [MERCHANT.merchantCode] })
  viewer = await addVisitor(database)
  for (let n = 1; n <= 60; n += 1) {
    const transactionId = `T-${String(n).padStart(2, '0')}`
    const state = n % 2 === 0 ? 'paid' : 'failed'
    const firstSeenAt = `2026-11-20T10:00:${String(n - 1).padStart(2, '0')}Z`
    await seedTransaction(database, { transactionId, state, orderId: `DH-${n}`, firstSeenAt })
  }
  await seedTransaction(database, { ...OTHER, transactionId: 'T-THEIRS', orderId: '=1+1' })
  await seedPayment(database, { paymentId: 'P-1', transactionId: 'T-60', paymentMethod: 'CC' })
  const asked = { url: rig.service.url, query: `?merchantCode=${MERCHANT.merchantCode}` }
  await expectTaken(await ask(asked, 'P-1', { amount: '77', reason: '=SUM(A1)' }))
  await seedDiscrepancy(database, 'ipn_missing', { theirs: '<i>none</i>' })
})

async function read(path: string, who = operator, status = 200): Promise<string> {
  const response = await visitAs(rig, who, `/console/${path}`)
  const html = await response.text()
  expect({ status: response.status, html }).toMatchObject({ status })
  return html
}

describe('the list', () => {
  it.each(['transactions', 'payments', 'refunds', 'discrepancies', 'audit'])(
    'of %s names no two elements the same',
    async (name) => {
      const ids = [...(await read(name)).matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)
      expect(ids).toContain('announcer')
      expect(ids).toEqual([...new Set(ids)])
    },
  )

  it('of transactions is read page by page, newest first', async () => {
    const first = await read('transactions')
    expect(readText(first)).toMatch(/DH-60 Paid 1,000 VND/)
    expect(readText(first)).not.toContain('T-35')
    const next = /href="(\?cursor=[^"]+)"/.exec(first)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const second = readText(await read(`transactions${next}`))
    expect(second).toContain('T-35')
    expect(second).not.toContain('T-60')
    expect(second).toContain('Back to the newest')
  })

  it.each([
    ['transactions?state=paid&orderId=DH-60', 'T-60', 'T-59'],
    ['transactions?amount=1,000+VND', 'T-60', 'T-59'],
    ['transactions?to=2026-11-19', 'Nothing fits', 'T-60'],
    ['payments?status=SUCCESS&paymentMethod=CC', 'P-1', 'Nothing fits'],
    ['refunds?status=pending&amount=77', '77 VND', 'Nothing fits'],
    ['discrepancies?kind=ipn_missing', '<i>none</i>', 'Nothing fits'],
  ])('%s is filtered', async (path, shown, hidden) => {
    const text = readText((await read(path)).replace(/<form.*?<\/form>/gs, ''))
    expect(text).toContain(shown)
    expect(text).not.toContain(hidden)
  })

  it('says where it stopped looking, and goes on from there', async () => {
    await rig.database.sql`
      insert into transactions (merchant_code, transaction_id, state, first_seen_at)
      select ${OTHER.merchantCode}, 'T-' || n, case n when 1 then 'refunded' else 'paid' end, now() + n * interval '1 s'
      from generate_series(1, 5001) as n`
    const first = await read(`transactions?account=${OTHER.merchantCode}&state=refunded`, viewer)
    expect(readText(first)).toContain('Nothing fits among the rows that were looked through')
    const next = /href="(\?[^"]*cursor=[^"]+)">Older ones/
      .exec(first)?.[1]
      ?.replaceAll('&amp;', '&')
    expect(readText(await read(`transactions${next}`, viewer))).toContain('T-1')
    await rig.database.sql`delete from transactions where first_seen_at > now()`
  })

  it('with a wrong filter comes back filled, with the problem beside it', async () => {
    const html = await read('transactions?amount=lots&from=2026-02-31&state=x', operator, 422)
    expect(html).toMatch(/id="amount"[^>]*aria-invalid="true"[^>]*value="lots"/)
    expect(readText(html)).toContain('Enter a day like 2026-11-22')
    expect(readText(html)).toContain('Choose one of the list')
    expect((await visitAs(rig, operator, '/console/payments?cursor=nope')).status).toBe(422)
    expect(await read('payments?format=pdf', operator, 422)).toContain('as CSV or for Excel only')
  })
})
