import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { z } from 'zod'
import { listenOn } from '../../support/ports.ts'
import { type FedEvent, readEvent } from '../audit/events.ts'
import { ACCOUNTS, type Account } from './accounts.ts'

/** An event that was accepted, and when (ms since the epoch). */
export type TakenEvent = { event: FedEvent; atMs: number }

/** Order systems, one of each account, that receive every event by webhook. */
export type Receivers = {
  /** The events they accepted, in order of arrival. */
  taken: readonly TakenEvent[]
  stop(): Promise<void>
}

const Endpoint = z.object({ secret: z.string() })

/**
 * One call in this many is answered with 500, but no event twice: the pause after a second failure is 30 s. After a
 * failure the endpoint is only probed for up to 5 s; with more of them it falls behind the events.
 */
const REFUSES_EVERY = 200

/** Registers receivers in this process that accept every type of event and fail now and then. */
export async function startReceivers(apiUrl: string): Promise<Receivers> {
  const taken: TakenEvent[] = []
  const stops: (() => Promise<void>)[] = []
  for (const account of ACCOUNTS) stops.push(await startReceiver(apiUrl, account, taken))
  return {
    taken,
    async stop() {
      for (const stop of stops) await stop()
    },
  }
}

/** @returns how to stop it */
async function startReceiver(
  apiUrl: string,
  { key, merchantCode }: Account,
  taken: TakenEvent[],
): Promise<() => Promise<void>> {
  const refused = new Set<string>()
  let secret = ''
  let calls = 0
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
    calls += 1
    try {
      const told = new Webhook(secret).verify(body, Object.fromEntries(headers))
      const event = readEvent(merchantCode, told)
      if (event.id !== request.headers['webhook-id']) throw new Error('the header has another id')
      const refuses = calls % REFUSES_EVERY === 0 && !refused.has(event.id)
      if (refuses) refused.add(event.id)
      else taken.push({ event, atMs: Date.now() })
      response.writeHead(refuses ? 500 : 204).end()
    } catch {
      // It does not count as accepted, so the audit finds it missing.
      response.writeHead(400).end()
    }
  })
  const port = await listenOn(server)
  const response = await fetch(`${apiUrl}/v1/webhook-endpoints`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: `http://127.0.0.1:${port}/` }),
  })
  secret = Endpoint.parse(await response.json()).secret
  return async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
}
