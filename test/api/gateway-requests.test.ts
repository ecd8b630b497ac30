import { createHash, randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { makeEntry, startListingGateway } from '../support/listing-gateway.ts'
import { MERCHANT } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'

/** What the gateway is sent for what an order system asks; refused requests are in refunds/request. */

const rig = useRig({ settings: { ROLE: 'web' } })

/** SHA-256 over the values in the order of their names and the secret, as the specification and its examples have it. */
function sign(params: Record<string, unknown>, ...exclude: string[]): Record<string, unknown> {
  const names = Object.keys(params).filter((name) => !exclude.includes(name))
  const text = names.sort().map((name) => String(params[name]))
  const hash = createHash('sha256').update(text.join('') + MERCHANT.secret)
  return { ...params, svc_SecureHash: hash.digest('hex') }
}
const COMMON = { svc_MerchantCode: MERCHANT.merchantCode, svc_Version: '1' }

it.each(['240830080146NDTISR', 'ĐH 1', 'a+b&c=d/e?f', '"quoted"\\', 'T'.repeat(128)])(
  'a query is sent about the transaction %s',
  async (svc_TransactionID) => {
    const gateway = await startListingGateway(rig)
    const path = `/v1/transactions/${encodeURIComponent(svc_TransactionID)}/sync`
    expect((await rig.api(path, { method: 'POST' })).status).toBe(202)
    await gateway.sync(svc_TransactionID)
    const query = { ...COMMON, svc_Command: 'QUERY_PT', svc_TransactionID }
    expect(gateway.received('QUERY_PT')).toEqual([sign(query)])
  },
)

it.each(['T'.repeat(129), 'two\nlines'])('no query is sent about %j', async (id) => {
  const path = `/v1/transactions/${encodeURIComponent(id)}/sync`
  expect((await rig.api(path, { method: 'POST' })).status).toBe(422)
})

const RECEIVER = { accountName: 'NGUYỄN VĂN A', accountNumber: '0123456789', swiftCode: 'BFTVVNVX' }
const svc_Receiver = Buffer.from(JSON.stringify(RECEIVER)).toString('base64')

it.each([
  [{ amount: '40' }, { svc_Amount: 40 }],
  [{ amount: 40 }, { svc_Amount: 40 }],
  [{ amount: '40.50' }, { svc_Amount: 40.5 }],
  [{}, { svc_Amount: 100 }],
  [
    { amount: '40', receiver: RECEIVER },
    { svc_Amount: 40, svc_Receiver },
  ],
])('for a refund %j is sent, its id outside the hash: %j', async (body, sent) => {
  const gateway = await startListingGateway(rig)
  const id = randomUUID()
  gateway.list(makeEntry(id, { amount: 100, paymentMethod: 'receiver' in body ? 'QR' : 'CC' }))
  await gateway.sync(id)
  const response = await rig.api(`/v1/payments/${id}/refunds`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
    body: JSON.stringify(body),
  })
  const { id: svc_RequestID } = JSON.parse(await response.text())
  await gateway.sync(id)
  const refund = { ...COMMON, svc_Command: 'REFUND', svc_RequestID, svc_PaymentID: id, ...sent }
  expect(gateway.received('REFUND')).toEqual([sign(refund, 'svc_RequestID')])
})
