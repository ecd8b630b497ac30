import { Webhook } from 'standardwebhooks'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { ServiceContext } from '../../src/create-context.ts'
import type { Log } from '../../src/platform/telemetry/log.ts'
import { createDeliveryRound } from '../../src/webhooks/deliver-events.ts'
import type { MadeAttempt } from '../../src/webhooks/record-result.ts'
import { withKey } from './api.ts'
import type { Seen } from './gateway.ts'
import { KEY, MERCHANT, type Rig } from './service.ts'
import { useRig } from './use-started.ts'

const Registered = z.strictObject({
  id: z.uuid(),
  url: z.string(),
  types: z.array(z.string()),
  secret: z.string(),
})
export type Registered = z.infer<typeof Registered>

/** Starts a service that calls endpoints on this machine, without background work: tests run the worker, round by round. */
export function useWebhookRig(log: Log): Rig {
  return useRig({ settings: { ROLE: 'web', WEBHOOK_ALLOW_PRIVATE: 'true' }, log })
}

/** Calls a webhook route with the key of every scope, or another. */
export function callWebhooks(rig: Rig, method: string, path = '', body?: unknown, key = KEY) {
  const headers = { 'content-type': 'application/json' }
  return fetch(`${rig.service.url}/v1/webhook-endpoints${path}`, {
    method,
    ...withKey(key, headers),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

/** Registers an endpoint until the test ends. */
export async function register(rig: Rig, url: string, types?: string[]): Promise<Registered> {
  const response = await callWebhooks(rig, 'POST', '', { url, ...(types ? { types } : {}) })
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 201 })
  const endpoint = Registered.parse(JSON.parse(text))
  onTestFinished(async () => {
    await callWebhooks(rig, 'DELETE', `/${endpoint.id}`)
  })
  return endpoint
}

/** Appends events to the feed, one for each transaction; returns their ids. */
export async function publish(
  { database: { sql } }: Rig,
  transactionIds: readonly string[],
  { type = 'payment.updated', merchantCode = MERCHANT.merchantCode } = {},
): Promise<string[]> {
  const rows = await sql<{ id: number }[]>`
    insert into events (merchant_code, transaction_id, type, data, at)
    select ${merchantCode}, t, ${type}, json_build_object('id', 'P-' || t, 'amount', '10000.50'), now()
    from unnest(${[...transactionIds]}::text[]) with ordinality as e (t, place) order by place
    returning id`
  await sql`select pg_notify('events_published', '')`
  return rows.map(({ id }) => String(id))
}

/** Fans out and delivers until nothing is due. */
export async function work(ctx: ServiceContext, round = createDeliveryRound(ctx)): Promise<void> {
  for (;;) {
    const { count, finished } = await round()
    await finished
    if (count === 0) return
  }
}

/** Makes every delivery and every probe due. */
export async function passTime({ database: { sql } }: Rig): Promise<void> {
  await sql`update webhook_deliveries set due_at = now() where due_at > now()`
  await sql`update webhook_endpoints set probe_at = now() where probe_at > now()`
}

/** Makes the next probe of failing endpoints due; backoffs stay. */
export async function openProbe({ database: { sql } }: Rig): Promise<void> {
  await sql`update webhook_endpoints set probe_at = now() where probe_at > now()`
}

/** The pending deliveries of an endpoint, by event. */
export async function listPending({ database: { sql } }: Rig, endpointId: string) {
  return await sql<
    {
      eventId: string
      attempts: number
      leased: boolean
      waitS: number
      lastError: string | null
    }[]
  >`
    select event_id::text as "eventId", attempts, lease_id is not null as leased,
      extract(epoch from due_at - now())::float8 as "waitS", last_error as "lastError"
    from webhook_deliveries where endpoint_id = ${endpointId} order by event_id`
}

/** An attempt as it is recorded. */
export function makeAttempt(status = 204): MadeAttempt {
  return { at: new Date(), type: 'payment.updated', status, error: null, answer: '', durationMs: 1 }
}

export async function readEndpointRow({ database: { sql } }: Rig, endpointId: string) {
  const [row] = await sql<{ failing: boolean; reason: string | null; plannedUpTo: number }[]>`
    select failing_since is not null as failing, disabled_reason as reason,
      planned_up_to as "plannedUpTo"
    from webhook_endpoints where id = ${endpointId}`
  if (!row) throw new Error(`no endpoint ${endpointId}`)
  return row
}

const Event = z.looseObject({ id: z.string(), type: z.string(), transactionId: z.string() })

/** The event of a received request. @throws when the library's own verifier rejects it */
export function verify({ body, headers }: Seen, secret: string): z.infer<typeof Event> {
  const texts = Object.entries(headers).map(([name, value]) => [name, String(value)])
  return Event.parse(new Webhook(secret).verify(body, Object.fromEntries(texts)))
}

/** The ids of the events that an endpoint received, in order. */
export function listIds(seen: readonly Seen[]): string[] {
  return seen.map(({ headers }) => String(headers['webhook-id']))
}
