import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { z } from 'zod'
import { Event, type ToldEvent } from './feed.ts'

/** An order system that has everything sent to it. */
export type Receiver = {
  /** What it took, in the order in which it came. */
  taken: readonly ToldEvent[]
  stop(): Promise<void>
}

const Endpoint = z.object({ secret: z.string() })

/** Of so many calls one is answered 500, but no event twice: the pause after the second is half a minute. */
const REFUSES_EVERY = 20

/** Registers a receiver in this process that takes every type of event, but for a call now and then. */
export async function startReceiver(apiUrl: string, key: string): Promise<Receiver> {
  const taken: ToldEvent[] = []
  const refused = new Set<string>()
  let secret = ''
  let calls = 0
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
    calls += 1
    try {
      const event = Event.parse(new Webhook(secret).verify(body, Object.fromEntries(headers)))
      if (event.id !== request.headers['webhook-id']) throw new Error('another id in its header')
      const refuses = calls % REFUSES_EVERY === 0 && !refused.has(event.id)
      if (refuses) refused.add(event.id)
      else taken.push(event)
      response.writeHead(refuses ? 500 : 204).end()
    } catch {
      // It never counts as taken, so it is found missing.
      response.writeHead(400).end()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const response = await fetch(`${apiUrl}/v1/webhook-endpoints`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: `http://127.0.0.1:${port}/` }),
  })
  secret = Endpoint.parse(await response.json()).secret
  return {
    taken,
    async stop() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
