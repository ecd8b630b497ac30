import { beforeAll, describe, expect, it } from 'vitest'
import { expectProblem, seedDiscrepancy, seedPayment, seedTransaction } from '../support/api.ts'
import { ask, expectTaken } from '../support/ask.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
const CSV = { headers: { accept: 'text/csv' } }

beforeAll(async () => {
  const { database } = rig
  for (const n of [1, 2, 3]) {
    await seedTransaction(database, { transactionId: `T-${n}`, orderId: '=cmd', state: 'paid' })
    const facts = { amount: '100', paymentMethod: 'CC' }
    await seedPayment(database, { paymentId: `P-${n}`, transactionId: `T-${n}`, ...facts })
  }
  const reason = 'returned, "gấp"'
  await expectTaken(await ask({ url: rig.service.url }, 'P-1', { amount: '5', reason }))
  await seedDiscrepancy(database, 'payment_missing')
})

async function readCsv(path: string) {
  const response = await rig.api(path, CSV)
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(response.headers.get('vary')).toContain('Accept')
  return { lines: text.split('\r\n'), link: response.headers.get('link') }
}

describe('as CSV', () => {
  it.each([
    ['transactions', '/v1/transactions', 'transactionId,merchantCode,orderId,merchantTxnId,', 3],
    ['a timeline', '/v1/transactions/T-1/timeline', 'at,type,kind,', 2],
    ['payments', '/v1/payments', 'id,transactionId,merchantCode,orderId,merchantTxnId,', 3],
    ['refunds', '/v1/refunds', 'id,paymentId,transactionId,merchantCode,', 1],
    ['external refunds', '/v1/payments/P-1/external-refunds', 'id,merchantCode,paymentId,', 0],
    ['discrepancies', '/v1/discrepancies', 'id,kind,merchantCode,transactionId,', 1],
    ['hits', '/v1/search?q=P-1', 'type,id,merchantCode,transactionId,matched', 1],
    ['webhook endpoints', '/v1/webhook-endpoints', 'id,merchantCode,owner,url,', 0],
    ['the feed', '/v1/events', 'id,type,apiVersion,timestamp,transactionId,', 0],
  ])('%s: a header, and a line for each row', async (_, path, header, rows) => {
    const { lines } = await readCsv(path)
    expect(lines[0]?.slice(0, header.length)).toBe(header)
    expect(lines.at(-1)).toBe('')
    expect(lines).toHaveLength(rows + 2)
  })

  it('the link leads from page to page, with the same filters', async () => {
    let path: string | undefined = '/v1/payments?amount=100&limit=1'
    const seen: string[] = []
    while (path !== undefined) {
      const { lines, link }: Awaited<ReturnType<typeof readCsv>> = await readCsv(path)
      seen.push(...lines.slice(1, -1).map((line) => line.split(',')[0] ?? ''))
      path = /^<([^>]+)>; rel="next"$/.exec(link ?? '')?.[1]
    }
    expect(seen.sort()).toEqual(['P-1', 'P-2', 'P-3'])
  })

  it('a refusal is a problem all the same', async () => {
    await expectProblem(await rig.api('/v1/payments?limit=0', CSV), 422, 'invalid_request')
    await expectProblem(await rig.api('/v1/payments/P-9', CSV), 404, 'payment_not_found')
  })
})

describe('JSON stays what a client gets', () => {
  it.each([
    ['*/*', 'application/json'],
    ['application/json', 'application/json'],
    ['application/json, text/csv;q=0.5', 'application/json'],
    ['text/html,application/xhtml+xml', 'application/json'],
    ['text/csv, application/json;q=0.5', 'text/csv; charset=utf-8'],
    ['text/csv;q=0.9, */*;q=0.1', 'text/csv; charset=utf-8'],
  ])('that accepts %s: %s', async (accept, type) => {
    const response = await rig.api('/v1/payments', { headers: { accept } })
    expect(response.headers.get('content-type')).toBe(type)
    await response.text()
  })

  it('for one object', async () => {
    const response = await rig.api('/v1/payments/P-1', CSV)
    expect(response.headers.get('content-type')).toBe('application/json')
    await response.text()
  })
})
