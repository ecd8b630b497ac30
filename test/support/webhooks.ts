import { Webhook } from 'standardwebhooks'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { ServiceContext } from '../../src/create-context.ts'
import type { Log } from '../../src/platform/telemetry/log.ts'
import { createDeliveryRound } from '../../src/webhooks/deliver.ts'
import { readPage, withKey } from './api.ts'
import { type Seen, serve } from './gateway.ts'
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

/** Registers an endpoint until the test ends, with the key of every scope or another. */
export async function register(
  rig: Rig,
  url: string,
  types?: string[],
  key = KEY,
): Promise<Registered> {
  const response = await callWebhooks(rig, 'POST', '', { url, ...(types ? { types } : {}) }, key)
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

/** Delivers until nothing is due. */
export async function work(ctx: ServiceContext, round = createDeliveryRound(ctx)): Promise<void> {
  for (;;) {
    const { count, finished } = await round()
    await finished
    if (count === 0) return
  }
}

/** Appends events to the feed, and delivers until nothing is due. */
export async function deliver(...given: Parameters<typeof publish>): Promise<string[]> {
  const ids = await publish(...given)
  await work(given[0].service.ctx)
  return ids
}

/** Delivers what waits, whatever it waits for. */
export async function deliverLater(rig: Rig): Promise<void> {
  await passTime(rig)
  await work(rig.service.ctx)
}

/** Makes everything that waits due, and ends every pause and every lease. */
export async function passTime({ database: { sql } }: Rig): Promise<void> {
  await sql`update webhook_retries set due_at = now() where due_at > now()`
  await sql`update webhook_endpoints set due_at = now() where due_at > now()`
}

/** Makes the next probe of failing endpoints due; backoffs stay. */
export async function openProbe({ database: { sql } }: Rig): Promise<void> {
  await sql`update webhook_endpoints set due_at = now() where due_at > now()`
}

/** Moves the start of an endpoint's failure into the past. */
export async function ageOutage({ database: { sql } }: Rig, endpointId: string, interval: string) {
  await sql`
    update webhook_endpoints set failing_since = now() - ${interval}::interval where id = ${endpointId}`
}

/** Moves the first failure of what waits for an endpoint into the past. */
export async function ageRetries({ database: { sql } }: Rig, endpointId: string, interval: string) {
  await sql`
    update webhook_retries set failing_since = now() - ${interval}::interval
    where endpoint_id = ${endpointId}`
}

/** As if what failed at an endpoint had failed often: it is due in six hours. */
export async function growBackoff({ database: { sql } }: Rig, endpointId: string) {
  await sql`
    update webhook_retries set attempts = 6, due_at = now() + interval '6 hours'
    where endpoint_id = ${endpointId} and attempts > 0`
}

/** Takes the lease of what is being sent to an endpoint away, as if it had passed to another process. */
export async function loseLease({ database: { sql } }: Rig, endpointId: string) {
  await sql`
    update webhook_endpoints set lease_id = gen_random_uuid(), lease_owner = gen_random_uuid()
    where id = ${endpointId} and lease_id is not null`
}

/** How long the next call to a failing endpoint waits (s). */
export async function readPause({ database: { sql } }: Rig, endpointId: string): Promise<number> {
  const [row] = await sql<{ pauseS: number }[]>`
    select extract(epoch from due_at - now())::float8 as "pauseS" from webhook_endpoints
    where id = ${endpointId}`
  return row?.pauseS ?? 0
}

const Endpoint = z.looseObject({
  id: z.string(),
  url: z.string(),
  types: z.array(z.string()),
  failingSince: z.string().nullable(),
  disabledReason: z.string().nullable(),
  lastError: z.string().nullable(),
  previousSecretValidUntil: z.string().nullable(),
  pending: z.int(),
})

/** The endpoint as the list shows it. */
export async function readEndpoint(
  rig: Rig,
  endpointId: string,
): Promise<z.infer<typeof Endpoint>> {
  const { data } = await readPage(await callWebhooks(rig, 'GET', '?limit=200'))
  const found = data.map((one) => Endpoint.parse(one)).find(({ id }) => id === endpointId)
  if (!found) throw new Error(`no endpoint ${endpointId}`)
  return found
}

export const Attempt = z.strictObject({
  id: z.string(),
  eventId: z.string(),
  type: z.string(),
  transactionId: z.string(),
  attempt: z.int(),
  outcome: z.enum(['delivered', 'failed']),
  sentAt: z.string(),
  durationMs: z.int().nullable(),
  status: z.int().nullable(),
  error: z.string().nullable(),
  answer: z.string().nullable(),
  nextAttemptAt: z.string().nullable(),
})

/** The attempts to deliver events to an endpoint, newest first. */
export async function listAttempts(rig: Rig, endpointId: string, query = '') {
  const { data } = await readPage(
    await callWebhooks(rig, 'GET', `/${endpointId}/deliveries${query}`),
  )
  return data.map((one) => Attempt.parse(one))
}

/** How long after an attempt the event is sent again (s). */
export function readWait({ sentAt, nextAttemptAt }: z.infer<typeof Attempt>): number {
  return (Date.parse(nextAttemptAt ?? '') - Date.parse(sentAt)) / 1000
}

/** An endpoint that answers with its current status, or that of the event. */
export async function receive(status = 204) {
  const one = { status, ofEvents: new Map<string, number>() }
  const { url, seen } = await serve((response, { headers }) => {
    response.writeHead(one.ofEvents.get(String(headers['webhook-id'])) ?? one.status).end()
  })
  return Object.assign(one, { url, seen })
}

/** The same, registered until the test ends. */
export async function openEndpoint(rig: Rig, status?: number, types?: string[]) {
  const receiver = await receive(status)
  return { receiver, ...(await register(rig, receiver.url, types)) }
}

/** An endpoint that answers 200, or as the test decides, when the test says so; `answer` ends the oldest open call. */
export async function serveHeld() {
  const open: ((status: number) => void)[] = []
  const { url, seen } = await serve((response) => {
    open.push((status) => response.writeHead(status).end())
  })
  return { url, seen, answer: (status = 200) => open.shift()?.(status) }
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
