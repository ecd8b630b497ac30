import { Hono } from 'hono'
import { readNotification } from './notification.ts'
import { serveApp } from './serve-app.ts'

/** Checks a notification and stores nothing. */
const app = new Hono()
app.post('/ipn', async (c) => {
  const notification = readNotification(await c.req.text())
  return notification ? c.json({ respcode: 0 }) : c.json({ respcode: 1 }, 401)
})
serveApp(app)
