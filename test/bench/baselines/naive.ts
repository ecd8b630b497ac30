import { createHash, timingSafeEqual } from 'node:crypto'
import { Hono } from 'hono'
import postgres from 'postgres'
import { readNotification } from './notification.ts'
import { serveApp } from './serve-app.ts'

/** One statement per request: a notification stored, a transaction read, a refund stored. */
const sql = postgres(process.env.DATABASE_URL ?? '')
const hash = (key: string) => createHash('sha256').update(key).digest()
const keyHash = hash(`Bearer ${process.env.API_KEY}`)
const isAllowed = (given: string | undefined) => timingSafeEqual(hash(given ?? ''), keyHash)
const app = new Hono()

app.post('/ipn', async (c) => {
  const notification = readNotification(await c.req.text())
  if (!notification) return c.json({ respcode: 1 }, 401)
  const { transactionId, orderId, body } = notification
  await sql`
    with notification as (
      insert into notifications (transaction_id, body) values (${transactionId}, ${body}))
    insert into transactions (transaction_id, order_id, due_at)
    values (${transactionId}, ${orderId}, now())
    on conflict (transaction_id) do update set due_at = excluded.due_at`
  return c.json({ respcode: 0 })
})

app.get('/v1/transactions/:id', async (c) => {
  if (!isAllowed(c.req.header('authorization'))) return c.json({}, 401)
  const rows = await sql`
    select t.transaction_id, t.order_id, t.currency, t.state, t.final, t.paid_amount, t.first_seen_at,
      p.payment_id, p.status, p.amount, p.refunded_amount, p.payment_method
    from transactions as t left join payments as p using (transaction_id)
    where t.transaction_id = ${c.req.param('id')}`
  const [first] = rows
  if (!first) return c.json({}, 404)
  const { payment_id, status, amount, refunded_amount, payment_method, ...transaction } = first
  const payments = rows
    .filter((row) => row.payment_id !== null)
    .map((row) => ({
      payment_id: row.payment_id,
      status: row.status,
      amount: row.amount,
      refunded_amount: row.refunded_amount,
      payment_method: row.payment_method,
    }))
  return c.json({ ...transaction, payments })
})

app.post('/v1/payments/:id/refunds', async (c) => {
  if (!isAllowed(c.req.header('authorization'))) return c.json({}, 401)
  const { amount }: { amount: string } = await c.req.json()
  const key = c.req.header('idempotency-key') ?? ''
  const [refund] = await sql`
    insert into refunds (payment_id, amount, idempotency_key, due_at)
    values (${c.req.param('id')}, ${amount}, ${key}, now())
    returning refund_id, status`
  return c.json({ ...refund }, 202)
})

serveApp(app)
