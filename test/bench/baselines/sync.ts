import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { Pool } from 'undici'
import { sign } from './notification.ts'

/** Asks about due transactions, 16 at once: for each one claim, one call, and one transaction of three statements. */
const CONCURRENCY = 16
const IDLE_MS = 100
const { DATABASE_URL = '', GATEWAY_BASE_URL = '', GATEWAY_SECRET = '' } = process.env
const { GATEWAY_MERCHANT_CODE: merchantCode } = process.env
const sql = postgres(DATABASE_URL, { max: CONCURRENCY })
const gateway = new Pool(GATEWAY_BASE_URL, { connections: CONCURRENCY })

type Payment = {
  id: string
  status: string
  amount: number
  refundedAmount: number
  paymentMethod: string
}

async function query(transactionId: string): Promise<Payment[]> {
  const params = {
    svc_MerchantCode: merchantCode,
    svc_Version: '1',
    svc_Command: 'QUERY_PT',
    svc_TransactionID: transactionId,
  }
  const answer = await gateway.request({
    path: '/api/v1/paygate/svcpay',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...params, svc_SecureHash: sign(params, GATEWAY_SECRET) }),
  })
  const { svc_ResponseData: payments }: { svc_ResponseData: Payment[] } = JSON.parse(
    await answer.body.text(),
  )
  return payments
}

/** @returns false if nothing is due */
async function syncOne(): Promise<boolean> {
  const [claim] = await sql`
    update transactions set lease_id = gen_random_uuid(), due_at = now() + interval '30 seconds'
    where transaction_id = (
      select transaction_id from transactions where due_at <= now()
      order by due_at limit 1 for update skip locked)
    returning transaction_id, lease_id`
  if (!claim) return false
  const { transaction_id: id, lease_id: lease } = claim
  const payments = await query(id)
  const paid = payments.some(({ status }) => status === 'SUCCESS')
  const amount = payments.reduce((total, one) => total + one.amount, 0)
  await sql.begin(async (tx) => {
    const [held] = await tx`
      select 1 from transactions where transaction_id = ${id} and lease_id = ${lease} for update`
    if (!held) return
    for (const one of payments) {
      await tx`
        insert into payments (payment_id, transaction_id, status, amount, refunded_amount, payment_method)
        values (${one.id}, ${id}, ${one.status}, ${one.amount}, ${one.refundedAmount}, ${one.paymentMethod})
        on conflict (payment_id) do update set status = excluded.status, amount = excluded.amount,
          refunded_amount = excluded.refunded_amount`
    }
    await tx`
      update transactions set state = ${paid ? 'paid' : 'pending'}, final = ${paid},
        paid_amount = ${amount}, due_at = null, lease_id = null
      where transaction_id = ${id}`
  })
  return true
}

async function work(): Promise<never> {
  for (;;) {
    if (!(await syncOne())) await sleep(IDLE_MS)
  }
}

console.log('ready')
await Promise.all(Array.from({ length: CONCURRENCY }, work))
