import { serve } from '@hono/node-server'
import type { Hono } from 'hono'

/** Serves a baseline on `PORT`, and prints a line when it does. */
export function serveApp(app: Hono): void {
  serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' }, () =>
    console.log('ready'),
  )
}
