import { createHash, randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { z } from 'zod'
import { syncDue } from '../../src/sync/sync-due.ts'
import { makeClient, serve } from '../support/gateway.ts'
import { MERCHANT } from '../support/service.ts'
import { playRows, type Row } from '../support/specification-rows.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

const TRANSACTION = '240830080146NDTISR'
const Request = z.record(z.string(), z.unknown())

/** A gateway with one payment of 100, which accepts every refund, until the test ends; nothing else is due. */
async function startGateway(paymentMethod = 'CC') {
  const { sql } = rig.database
  const paymentId = randomUUID()
  const received: Record<string, unknown>[] = []
  const entry = { id: paymentId, status: 'SUCCESS', amount: 100, refundedAmount: 0, paymentMethod }
  const { url } = await serve((response, { body }) => {
    const request = Request.parse(JSON.parse(body))
    received.push(request)
    const data = request.svc_Command === 'REFUND' ? { transId: '5SYNM1OELUND' } : [entry]
    response.end(JSON.stringify({ svc_ResponseCode: 0, svc_ResponseData: data }))
  })
  const { ctx: own } = rig.service
  const ctx = { ...own, gateway: { ...own.gateway, ...makeClient(url).client } }
  return {
    received,
    paymentId,
    /** Queries the gateway about a transaction, and sends its refunds. */
    async sync(transactionId: string) {
      await sql`update transactions set due_at = now() + interval '1 h' where due_at is not null`
      await sql`
        insert into transactions as t (merchant_code, transaction_id, due_at)
        values (${MERCHANT.merchantCode}, ${transactionId}, now())
        on conflict (merchant_code, transaction_id) do update set due_at = now() - interval '1 s'`
      await sql`update refunds set due_at = now() - interval '1 s' where due_at is not null`
      if ((await syncDue(ctx)) !== 1) throw new Error(`${transactionId} was not claimed`)
    },
  }
}

/** SHA-256 over the values in the order of their names and the secret, as the specification and its examples have it. */
function sign(params: Readonly<Record<string, unknown>>, exclude: readonly string[] = []): string {
  const names = Object.keys(params).filter(
    (name) => name !== 'svc_SecureHash' && !exclude.includes(name),
  )
  const values = names.sort().map((name) => String(params[name]))
  return createHash('sha256')
    .update(values.join('') + MERCHANT.secret)
    .digest('hex')
}

const QUERY = {
  svc_Command: 'QUERY_PT',
  svc_MerchantCode: MERCHANT.merchantCode,
  svc_TransactionID: TRANSACTION,
  svc_Version: '1',
}

/** The request that is sent about a transaction. */
function showQuery(transactionId: string) {
  const params = { ...QUERY, svc_TransactionID: transactionId }
  return { calls: [{ ...params, svc_SecureHash: sign(params) }] }
}

const NO_CALL = { status: 422, calls: [] }

const QUERIES: readonly Row<string>[] = [
  {
    row: 'svc_TransactionID',
    documented: [[TRANSACTION, showQuery(TRANSACTION)]],
    odd: [
      ['1439211', showQuery('1439211')],
      ['ĐH 1', showQuery('ĐH 1')],
      ['a+b&c=d/e?f', showQuery('a+b&c=d/e?f')],
      ['"quoted"\\', showQuery('"quoted"\\')],
      ['T'.repeat(128), showQuery('T'.repeat(128))],
      ['T'.repeat(129), NO_CALL],
      ['two\nlines', NO_CALL],
    ],
  },
]

playRows('4.3.1, the request QUERY_PT', QUERIES, async (transactionId) => {
  const gateway = await startGateway()
  const path = `/v1/transactions/${encodeURIComponent(transactionId)}/sync`
  const { status } = await rig.api(path, { method: 'POST' })
  if (status === 202) await gateway.sync(transactionId)
  return { status, calls: gateway.received }
})

type Wish = { paymentMethod?: string; body: object }

const CALL = { svc_Command: 'REFUND', svc_MerchantCode: MERCHANT.merchantCode, svc_Version: '1' }

/** The request that is sent for a refund; its id stays out of the hash, as published examples have it. */
function showCall(amount: number, more: object = {}) {
  return { status: 202, calls: [{ ...CALL, svc_Amount: amount, ...more }] }
}

function refuse(status: number, code: string) {
  return { status, code, calls: [] }
}

const RECEIVER = { accountName: 'NGUYỄN VĂN A', accountNumber: '0123456789', swiftCode: 'BFTVVNVX' }
const encode = (text: string) => Buffer.from(text, 'utf8').toString('base64')
const WITH_RECEIVER = {
  svc_Receiver: encode(
    '{"accountName":"NGUYỄN VĂN A","accountNumber":"0123456789","swiftCode":"BFTVVNVX"}',
  ),
}

const REFUNDS: readonly Row<Wish>[] = [
  {
    row: 'svc_Amount',
    documented: [[{ body: { amount: '40' } }, showCall(40)]],
    odd: [
      [{ body: { amount: '40.50' } }, showCall(40.5)],
      [{ body: { amount: 40 } }, showCall(40)],
      [{ body: { amount: '0.0001' } }, refuse(422, 'invalid_request')],
      [{ body: {} }, showCall(100)],
      [{ body: { amount: '100.0001' } }, refuse(409, 'exceeds_refundable')],
      [{ body: { amount: '0' } }, refuse(422, 'invalid_request')],
      [{ body: { amount: '-1' } }, refuse(422, 'invalid_request')],
      [{ body: { amount: '0.00001' } }, refuse(422, 'invalid_request')],
      [{ body: { amount: 'forty' } }, refuse(422, 'invalid_request')],
      [{ body: { amount: null } }, refuse(422, 'invalid_request')],
    ],
  },
  {
    row: 'svc_Receiver',
    documented: [
      [
        { paymentMethod: 'QR', body: { amount: '40', receiver: RECEIVER } },
        showCall(40, WITH_RECEIVER),
      ],
    ],
    odd: [
      [{ body: { amount: '40', receiver: RECEIVER } }, showCall(40, WITH_RECEIVER)],
      [{ paymentMethod: 'QR', body: { amount: '40' } }, refuse(422, 'receiver_required')],
      [{ body: { receiver: { ...RECEIVER, accountName: '' } } }, refuse(422, 'invalid_request')],
      [
        { body: { receiver: { ...RECEIVER, accountNumber: 123456789 } } },
        refuse(422, 'invalid_request'),
      ],
      [
        { body: { receiver: { ...RECEIVER, swiftCode: undefined } } },
        refuse(422, 'invalid_request'),
      ],
      [{ body: { receiver: { ...RECEIVER, iban: 'X' } } }, refuse(422, 'invalid_request')],
      [{ body: { receiver: encode('{}') } }, refuse(422, 'invalid_request')],
    ],
  },
]

playRows('4.3.2, the request REFUND', REFUNDS, async ({ paymentMethod, body }) => {
  const gateway = await startGateway(paymentMethod)
  const { paymentId } = gateway
  await gateway.sync(paymentId)
  const response = await rig.api(`/v1/payments/${paymentId}/refunds`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
    body: JSON.stringify(body),
  })
  const shown = Request.parse(await response.json())
  if (response.status === 202) await gateway.sync(paymentId)
  const calls = gateway.received.filter(({ svc_Command }) => svc_Command === 'REFUND')
  for (const call of calls) {
    expect(call.svc_SecureHash).toBe(sign(call, ['svc_RequestID']))
    expect(call).toMatchObject({ svc_RequestID: shown.id, svc_PaymentID: paymentId })
  }
  return { ...shown, status: response.status, calls }
})
