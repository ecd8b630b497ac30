import { Hono } from 'hono'
import postgres from 'postgres'
import { type Notification, readNotification } from './notification.ts'
import { serveApp } from './serve-app.ts'

/** As `naive`, but the notifications that gather while a statement runs share the next one. */
const sql = postgres(process.env.DATABASE_URL ?? '')
let waiting: Notification[] = []
let running: Promise<unknown> = Promise.resolve()
let next: Promise<unknown> | undefined

function store(notification: Notification): Promise<unknown> {
  waiting.push(notification)
  next ??= running = running.catch(() => {}).then(storeWaiting)
  return next
}

async function storeWaiting(): Promise<unknown> {
  const batch = waiting
  waiting = []
  next = undefined
  const ids = batch.map(({ transactionId }) => transactionId)
  return await sql`
    with arrived as (
      select * from unnest(${ids}::text[], ${batch.map(({ orderId }) => orderId)}::text[],
        ${batch.map(({ body }) => body)}::text[]) as a (transaction_id, order_id, body)),
    notification as (
      insert into notifications (transaction_id, body) select transaction_id, body from arrived)
    insert into transactions (transaction_id, order_id, due_at)
    select distinct on (transaction_id) transaction_id, order_id, now() from arrived
    on conflict (transaction_id) do update set due_at = excluded.due_at`
}

const app = new Hono()
app.post('/ipn', async (c) => {
  const notification = readNotification(await c.req.text())
  if (!notification) return c.json({ respcode: 1 }, 401)
  await store(notification)
  return c.json({ respcode: 0 })
})
serveApp(app)
