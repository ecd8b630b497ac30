import { expect, it, onTestFinished } from 'vitest'
import { makeRefundArrival } from '../../support/arrivals.ts'
import { countRows, holdLocks, listBlockedCommits } from '../../support/database.ts'
import { postIpn, sendIpn, signIpn } from '../../support/service.ts'
import { makeTransaction } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const RECEIVED = { status: 200, answer: { respcode: 0, respmsg: 'received' } }
const NOT_STORED = { respcode: 1, respmsg: 'not stored, send it again' }
const rig = useRig()

const isSettled = async (id: string) => (await rig.transaction(id)).sync.status === 'idle'

it('delivered twice is acknowledged twice, one row, and counted on the transaction', async () => {
  await makeTransaction(rig, 'T-TWICE')
  const body = signIpn({ svc_TransactionID: 'T-TWICE', svc_OrderID: 'DH1' })
  expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
  expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
  const rows = await rig.database.sql`
    select deliveries, kind, verdict, body from ipn_events
    where transaction_id = 'T-TWICE'`
  const stored = { kind: 'payment', verdict: 'verified' }
  expect([...rows]).toEqual([{ deliveries: 2, body: JSON.stringify(body), ...stored }])
  await waitUntil(() => isSettled('T-TWICE'), { what: 'the query' })
  expect(await rig.transaction('T-TWICE')).toMatchObject({ ipnCount: 2, orderId: 'DH1' })
})

it('different bytes about the same transaction are a row of their own, and the first order id stays', async () => {
  for (const order of ['DH1', 'DH2']) {
    const body = signIpn({ svc_TransactionID: 'T-BYTES', svc_OrderID: order })
    expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
  }
  const rows = await rig.database.sql`
    select deliveries from ipn_events where transaction_id = 'T-BYTES'`
  expect(rows.map(({ deliveries }) => deliveries)).toEqual([1, 1])
  expect(await rig.transaction('T-BYTES')).toMatchObject({ ipnCount: 2, orderId: 'DH1' })
})

it("a refund's notification is one row however often it comes, and registers no transaction", async () => {
  const before = await countRows(rig.database)
  const fields = { svc_Command: 'REFUND', svc_RequestID: 'REQ1', svc_PaymentID: '77' }
  const body = signIpn({ ...fields, svc_TransactionID: 'REFUNDS-OWN' }, { exclude: [] })
  expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
  expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
  const rows = await rig.database.sql`
    select kind, deliveries, request_id as request, payment_id as payment, transaction_id as transaction
    from ipn_events where kind = 'refund'`
  expect([...rows]).toEqual([
    { ...{ kind: 'refund', deliveries: 2 }, request: 'REQ1', payment: '77', transaction: null },
  ])
  expect((await countRows(rig.database)).transactions).toBe(before.transactions)
  expect((await rig.api('/v1/transactions/REFUNDS-OWN')).status).toBe(404)
})

it('what the table rejects is not acknowledged, and is accepted once the table works again', async () => {
  const body = signIpn({ svc_TransactionID: 'T-NO-TABLE' })
  await rig.database.sql`alter table ipn_events rename to gone`
  const response = await sendIpn(rig.service.url, body)
  await rig.database.sql`alter table gone rename to ipn_events`
  expect([response.status, await response.json()]).toEqual([500, NOT_STORED])
  expect(response.headers.get('retry-after')).toBe('1')
  expect((await rig.api('/v1/transactions/T-NO-TABLE')).status).toBe(404)
  expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
  expect((await rig.transaction('T-NO-TABLE')).ipnCount).toBe(1)
})

it('nothing is acknowledged before its commit, and an interrupted commit acknowledges nothing', async () => {
  const { sql } = rig.database
  const body = signIpn({ svc_TransactionID: 'T-CUT' })
  await postIpn(rig.service.url, body)
  const lock = await holdLocks(
    rig.database,
    (tx) => tx`select 1 from ipn_events where transaction_id = 'T-CUT' for update`,
  )
  onTestFinished(() => lock.release())
  let status: number | undefined
  const second = postIpn(rig.service.url, body).then((response) => {
    status = response.status
    return response
  })
  const isBlocked = async () => (await listBlockedCommits(rig.database)).length === 1
  await waitUntil(isBlocked, { what: 'the blocked commit' })
  expect(status).not.toBe(200)
  for (const { pid } of await listBlockedCommits(rig.database)) {
    await sql`select pg_terminate_backend(${pid})`
  }
  expect(await second).toEqual({ status: 500, answer: NOT_STORED })
  await lock.release()
  expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
  const [row] = await sql`select deliveries from ipn_events where transaction_id = 'T-CUT'`
  expect(row?.deliveries).toBe(2)
})

it('a full inbox answers 503 with Retry-After, and everything else is still served', async () => {
  const body = signIpn({ svc_TransactionID: 'T-FULL' })
  expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
  const lock = await holdLocks(
    rig.database,
    (tx) => tx`select 1 from ipn_events where transaction_id = 'T-FULL' for update`,
  )
  const first = postIpn(rig.service.url, body)
  const isBlocked = async () => (await listBlockedCommits(rig.database)).length === 1
  await waitUntil(isBlocked, { what: 'the blocked commit' })
  const filler = makeRefundArrival('UFLIYL', 'FILLER')
  onTestFinished(async () => {
    await rig.database.sql`delete from ipn_events where request_id = 'FILLER'`
  })
  const fillers = Promise.all(
    Array.from({ length: 5_000 }, () => rig.service.ctx.inbox.store(filler)),
  )
  const refused = await sendIpn(rig.service.url, body)
  expect([refused.status, await refused.json()]).toEqual([503, NOT_STORED])
  expect(refused.headers.get('retry-after')).toBe('1')
  await lock.release()
  expect(await first).toEqual(RECEIVED)
  await fillers
  expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
})
