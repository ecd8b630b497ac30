import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { API_VERSIONS } from '../../../src/events/event.ts'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { runCli } from '../../support/cli.ts'
import { readEvents } from '../../support/feed.ts'
import type { Seen } from '../../support/gateway.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'
import {
  callWebhooks,
  deliver,
  passTime,
  publish,
  readEndpoint,
  receive,
  register,
  useWebhookRig,
  verify,
  work,
} from '../../support/webhooks.ts'

const rig = useWebhookRig(keepLog().log)
const { merchantCode } = MERCHANT
const PAYMENTS = 'key-that-reads-payments-alone-0123456789-01'
beforeAll(() => addKey(rig.database, PAYMENTS, ['payments:read'], merchantCode))

const Told = z.object({
  type: z.string(),
  transactionId: z.string(),
  data: z.looseObject({ id: z.string() }),
})
const listTold = (seen: readonly Seen[]) =>
  seen
    .map(({ body }) => Told.parse(JSON.parse(body)))
    .filter(({ type }) => type.startsWith('webhook_endpoint.'))

/** Delivers, publishes what the delivery recorded, and delivers that. */
async function settle() {
  await work(rig.service.ctx)
  await publishEvents(rig.service.ctx.db.sql)
  await work(rig.service.ctx)
}

describe('the condition of an endpoint', () => {
  it('is an event in the feed and at the other endpoints, when it fails and when it recovers', async () => {
    const [watcher, receiver] = [await receive(), await receive(503)]
    await register(rig, watcher.url)
    const { id } = await register(rig, receiver.url)
    const { nextCursor: start } = await readEvents(await rig.api('/v1/events?after=latest'))
    await publish(rig, ['T-1'])
    await settle()
    expect(listTold(watcher.seen)).toMatchObject([
      {
        type: 'webhook_endpoint.failing',
        transactionId: id,
        data: { id, failingSince: expect.any(String), lastError: 'answered 503', pending: 1 },
      },
    ])
    receiver.status = 204
    await passTime(rig)
    await settle()
    const types = ['webhook_endpoint.failing', 'webhook_endpoint.recovered']
    expect(listTold(watcher.seen).map(({ type }) => type)).toEqual(types)
    expect(listTold(watcher.seen)[1]?.data).toEqual({
      ...(await readEndpoint(rig, id)),
      failingSince: null,
      pending: 0,
    })
    // It is not told about itself.
    expect(listTold(receiver.seen)).toEqual([])
    const path = `/v1/events?after=${start}&types=${types.join()}`
    const { data } = await readEvents(await rig.api(path))
    expect(data.map(({ type }) => type)).toEqual(types)
    await expectProblem(await rig.api(path, withKey(PAYMENTS)), 403, 'scope_missing')
  })

  it('is an event when it is disabled, by a 410 or with its key, and when it is enabled again', async () => {
    const [watcher, receiver] = [await receive(), await receive(410)]
    await register(rig, watcher.url, ['webhook_endpoint.disabled', 'webhook_endpoint.recovered'])
    const { id } = await register(rig, receiver.url)
    await publish(rig, ['T-2'])
    await settle()
    await callWebhooks(rig, 'POST', `/${id}/enable`)
    receiver.status = 204
    await settle()
    const key = 'key-of-an-endpoint-that-ends-0123456789-012'
    await addKey(rig.database, key, ['payments:read', 'webhooks:write'])
    const own = await callWebhooks(rig, 'POST', '', { url: receiver.url }, key)
    const { id: ended } = z.object({ id: z.string() }).parse(await own.json())
    const [row] = await rig.database.sql<{ id: string }[]>`
      select id from actors where hash = sha256(${key}::bytea)`
    await runCli(['keys', 'revoke', row?.id ?? ''], { DATABASE_URL: rig.database.url })
    await settle()
    expect(listTold(watcher.seen)).toMatchObject([
      { type: 'webhook_endpoint.disabled', data: { id, disabledReason: 'gone' } },
      { type: 'webhook_endpoint.recovered', data: { id, disabledReason: null } },
      { type: 'webhook_endpoint.disabled', data: { id: ended, disabledReason: 'key_ended' } },
    ])
    await callWebhooks(rig, 'DELETE', `/${ended}`)
  })
})

describe('the version of events', () => {
  const versions = [...API_VERSIONS]
  afterEach(() => {
    API_VERSIONS.clear()
    for (const [version, rewrite] of versions) API_VERSIONS.set(version, rewrite)
  })

  it('is in every event, and an endpoint keeps the one that it was registered with', async () => {
    const [old, next] = [await receive(), await receive()]
    const before = await register(rig, old.url)
    // The next version, in which a member has another name.
    API_VERSIONS.clear()
    API_VERSIONS.set('2027-05', undefined)
    API_VERSIONS.set('2026-11', (event) => ({ ...event, apiVersion: '2026-11', isOld: true }))
    const after = await register(rig, next.url)
    const [id] = await deliver(rig, ['T-3'])
    const show = ([seen]: readonly Seen[], secret: string) => seen && verify(seen, secret)
    expect(show(old.seen, before.secret)).toMatchObject({ id, apiVersion: '2026-11', isOld: true })
    expect(show(next.seen, after.secret)).toMatchObject({ id, apiVersion: '2027-05' })
    expect(show(next.seen, after.secret)).not.toHaveProperty('isOld')
    expect(await readEndpoint(rig, before.id)).toMatchObject({ apiVersion: '2026-11' })
    await callWebhooks(rig, 'POST', `/${before.id}/test`)
    expect(JSON.parse(old.seen.at(-1)?.body ?? '')).toMatchObject({ apiVersion: '2026-11' })
  })
})
