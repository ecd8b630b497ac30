import { expect, it } from 'vitest'
import { TimelineEntry } from '../../../src/transactions/timeline.ts'
import { OTHER, readAll, TWO_ACCOUNTS } from '../../support/api.ts'
import { computeShownHmac } from '../../support/body-hmac.ts'
import { ageOmission } from '../../support/listing-gateway.ts'
import { MERCHANT, postIpn, signIpn } from '../../support/service.ts'
import { makeTransaction } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const accounts = [MERCHANT, OTHER]
const settings = { ...TWO_ACCOUNTS, SYNC_REPOLL_MS: '3600000', SYNC_MIN_GAP_MS: '0' }
const rig = useRig({ settings, sandbox: { accounts } })

const MINE = `merchantCode=${MERCHANT.merchantCode}`
const timeline = (id: string) => (query: string) =>
  rig.api(`/v1/transactions/${id}/timeline${query}`)

async function readTimeline(id: string, query: Record<string, string> = {}) {
  const all = await readAll(timeline(id), { merchantCode: MERCHANT.merchantCode, ...query })
  return all.map((entry) => TimelineEntry.parse(entry))
}

/** Sends the service a request and waits until the query it causes has been committed. */
async function notify(id: string, fields: Record<string, string> = {}, account = MERCHANT) {
  const readCalls = async () => {
    const [row] = await rig.database.sql<{ n: number; idle: boolean }[]>`
      select count(c.id) as n, bool_and(t.want = t.claimed and t.lease_id is null) as idle
      from transactions t left join gateway_calls c using (merchant_code, transaction_id)
      where t.transaction_id = ${id} and t.merchant_code = ${account.merchantCode}`
    return row
  }
  const before = (await readCalls())?.n ?? 0
  const about = { svc_TransactionID: id, svc_MerchantCode: account.merchantCode, ...fields }
  const { status } = await postIpn(rig.service.url, signIpn(about, { secret: account.secret }))
  expect(status).toBe(200)
  const done = async () => {
    const now = await readCalls()
    return now?.idle === true && now.n > before
  }
  await waitUntil(done, { what: 'the query' })
}

const make = (id: string, merchantCode: string, payment: Record<string, string>) =>
  makeTransaction(rig, id, [{ paymentMethod: 'QR', ...payment }], merchantCode)

it('lists everything that happened, oldest first: notifications, queries, changes', async () => {
  await make('T-NOTIFIED', MERCHANT.merchantCode, {
    id: 'P-1',
    amount: '7.50',
    status: 'PROCESSING',
  })
  await notify('T-NOTIFIED')
  await rig.control('PATCH', '/payments/P-1', { status: 'SUCCESS' })
  const words = { svc_ResponseCode: '0', svc_ResponseMsg: 'Giao dịch thành công' }
  const paid = { svc_OrderID: 'DH1', svc_Amount: '7.50', svc_Currency: 'USD', ...words }
  await notify('T-NOTIFIED', paid)
  const entries = await readTimeline('T-NOTIFIED')
  expect(entries).toMatchObject([
    {
      ...{ type: 'ipn', kind: 'payment', deliveries: 1, currency: null },
      ...{ signature: 'verified', address: '127.0.0.1' },
    },
    { type: 'query', outcome: 'answered', code: '0', httpStatus: 200 },
    {
      type: 'change',
      paymentId: 'P-1',
      field: 'status',
      before: null,
      after: 'PROCESSING',
      cause: 'query',
    },
    {
      ...{ type: 'ipn', code: '0', message: 'Giao dịch thành công', amount: '7.50' },
      ...{ currency: 'USD', requestId: null, paymentId: null, deliveries: 1 },
    },
    { type: 'query', outcome: 'answered' },
    { type: 'change', paymentId: 'P-1', field: 'status', before: 'PROCESSING', after: 'SUCCESS' },
    {
      type: 'change',
      paymentId: null,
      field: 'state',
      before: 'pending',
      after: 'paid',
      cause: 'query',
    },
  ])
  const times = entries.map(({ at }) => at)
  expect(times).toEqual(times.toSorted())
  const [query] = entries.filter((entry) => entry.type === 'query')
  const { data } = (await rig.control('GET', '/calls?command=QUERY_PT')) as {
    data: { transactionId: string; rawBodySha256: string }[]
  }
  const hash = data.find(({ transactionId }) => transactionId === 'T-NOTIFIED')?.rawBodySha256
  expect(query?.bodyHmac).toBe(computeShownHmac(rig.service, hash))
  // Every byte of the query but the secret is known: its plain hash would tell who guesses the secret.
  expect(JSON.stringify(entries)).not.toContain(hash)
})

it('lists every changed field with its values before and after', async () => {
  await make('T-FIELDS', MERCHANT.merchantCode, { id: 'P-F', amount: '7', status: 'SUCCESS' })
  await notify('T-FIELDS')
  await rig.control('PATCH', '/payments/P-F', {
    status: 'FAILED',
    amount: '8',
    refundedAmount: '1',
    paymentMethod: 'CC',
  })
  await notify('T-FIELDS', { svc_OrderID: '1' })
  await rig.control('PATCH', '/payments/P-F', { listed: false })
  await notify('T-FIELDS', { svc_OrderID: '2' })
  await ageOmission(rig, 'P-F')
  await notify('T-FIELDS', { svc_OrderID: '3' })
  const changes = (await readTimeline('T-FIELDS')).flatMap((entry) =>
    entry.type === 'change' ? [[entry.field, entry.before, entry.after]] : [],
  )
  expect(changes.slice(2)).toEqual([
    ['status', 'SUCCESS', 'FAILED'],
    ['amount', '7', '8'],
    ['refundedAmount', '0', '1'],
    ['paymentMethod', 'QR', 'CC'],
    ['state', 'paid', 'failed'],
    ['missing', 'false', 'true'],
  ])
})

it('counts repeated deliveries of a notification on its entry, with the time of the last', async () => {
  await make('T-REPEAT', MERCHANT.merchantCode, { id: 'P-R', amount: '7', status: 'SUCCESS' })
  await notify('T-REPEAT')
  for (let n = 0; n < 3; n += 1) await notify('T-REPEAT')
  const ipns = (await readTimeline('T-REPEAT')).filter((entry) => entry.type === 'ipn')
  expect(ipns).toMatchObject([{ deliveries: 4 }])
  expect(Date.parse(ipns[0]?.lastReceivedAt ?? '')).toBeGreaterThan(Date.parse(ipns[0]?.at ?? ''))
})

it('shows a failed query with its error', async () => {
  await make('T-FAILED', MERCHANT.merchantCode, { id: 'P-X', amount: '7', status: 'SUCCESS' })
  await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500', times: 1 })
  await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'code', code: 12, times: 1 })
  await postIpn(
    rig.service.url,
    signIpn({ svc_TransactionID: 'T-FAILED', svc_MerchantCode: MERCHANT.merchantCode }),
  )
  await rig.transaction('T-FAILED', '?wait=20')
  const queries = (await readTimeline('T-FAILED')).filter((entry) => entry.type === 'query')
  expect(queries).toMatchObject([
    { outcome: 'unknown', httpStatus: 500, code: null },
    { outcome: 'rejected', httpStatus: 200, code: '12' },
    { outcome: 'answered', httpStatus: 200, code: '0' },
  ])
})

it('is paged with every entry once', async () => {
  // All entries have the same time: only the ids keep the order.
  await make('T-MOMENT', MERCHANT.merchantCode, { id: 'P-M', amount: '7', status: 'SUCCESS' })
  await notify('T-MOMENT')
  const { sql } = rig.database
  const moment = '2026-03-01T09:00:00.000001Z'
  await sql`update ipn_events set first_received_at = ${moment} where transaction_id = 'T-MOMENT'`
  await sql`update gateway_calls set sent_at = ${moment} where transaction_id = 'T-MOMENT'`
  await sql`update changes set at = ${moment} where transaction_id = 'T-MOMENT'`
  const types = ['ipn', 'query', 'change', 'change']
  for (const limit of ['1', '2', '3', '50']) {
    const entries = await readTimeline('T-MOMENT', { limit })
    expect(entries.map(({ type }) => type)).toEqual(types)
    expect(new Set(entries.map((entry) => JSON.stringify(entry))).size).toBe(4)
  }
})

it("contains nothing of another account's transaction with the same id", async () => {
  await make('T-SHARED', MERCHANT.merchantCode, { id: 'P-S', amount: '1', status: 'SUCCESS' })
  await make('T-SHARED', OTHER.merchantCode, { id: 'P-THEIRS', amount: '2', status: 'FAILED' })
  await notify('T-SHARED')
  await notify('T-SHARED', { svc_OrderID: 'THEIRS' }, OTHER)
  await notify('T-SHARED', { svc_OrderID: 'THEIRS-2' }, OTHER)
  const mine = await readTimeline('T-SHARED')
  expect(mine.map(({ type }) => type)).toEqual(['ipn', 'query', 'change', 'change'])
  expect(JSON.stringify(mine)).not.toMatch(/THEIRS|FAILED/)
  const theirs = await readTimeline('T-SHARED', { merchantCode: OTHER.merchantCode })
  expect(theirs.map(({ type }) => type)).toEqual([
    'ipn',
    'query',
    'change',
    'change',
    'ipn',
    'query',
    'discrepancy',
  ])
})

it('contains no secret: no signature, no key, no body', async () => {
  const text = await (await timeline('T-NOTIFIED')(`?${MINE}`)).text()
  expect(text).not.toMatch(/SecureHash|svc_/)
  expect(text).not.toContain(MERCHANT.secret)
})
