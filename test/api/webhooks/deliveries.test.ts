import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { erase } from '../../../src/maintenance/delete-expired.ts'
import { createDeliveryRound } from '../../../src/webhooks/deliver.ts'
import { expectInvalid, expectProblem, readAll } from '../../support/api.ts'
import { serve } from '../../support/gateway.ts'
import { MERCHANT } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'
import { waitUntil } from '../../support/wait-until.ts'
import {
  Attempt,
  callWebhooks,
  deliver,
  deliverLater,
  listAttempts,
  listIds,
  openEndpoint,
  openProbe,
  publish,
  receive,
  register,
  serveHeld,
  useWebhookRig,
  work,
} from '../../support/webhooks.ts'

const kept = keepLog()
const rig = useWebhookRig(kept.log)

const call = (method: string, path: string, body?: unknown, key?: string) =>
  callWebhooks(rig, method, path, body, key)

const list = (id: string, query = '') => listAttempts(rig, id, query)

async function replay(id: string, eventId?: string): Promise<unknown> {
  const one = eventId === undefined ? '' : `/${eventId}`
  const response = await call('POST', `/${id}/deliveries${one}/replay`)
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 202 })
  return JSON.parse(text)
}

describe('the log of an endpoint', () => {
  it('has every attempt, newest first, with status, duration and the beginning of the answer', async () => {
    const answers = [500, 204]
    const receiver = await serve((response) => {
      const status = answers.shift() ?? 204
      response.writeHead(status).end(status === 500 ? 'the shop is closed' : undefined)
    })
    const { id } = await register(rig, receiver.url)
    const [eventId] = await deliver(rig, ['T-1'])
    const failed = {
      eventId,
      type: 'payment.updated',
      transactionId: 'T-1',
      attempt: 1,
      outcome: 'failed',
      status: 500,
      error: 'answered 500',
      answer: 'the shop is closed',
    }
    const [waiting] = await list(id)
    expect(waiting).toMatchObject(failed)
    expect(Date.parse(waiting?.nextAttemptAt ?? '')).toBeGreaterThan(Date.now())
    expect(Math.abs(Date.parse(waiting?.sentAt ?? '') - Date.now())).toBeLessThan(60_000)
    await deliverLater(rig)
    const delivered = { attempt: 2, outcome: 'delivered', status: 204, error: null, answer: '' }
    const all = await list(id)
    expect(all).toMatchObject([
      { ...failed, ...delivered, nextAttemptAt: null },
      { ...failed, nextAttemptAt: null },
    ])
    for (const { durationMs } of all) expect(durationMs ?? -1).toBeGreaterThanOrEqual(0)
    expect(await list(id, '?outcome=failed')).toEqual([all[1]])
    expect(await list(id, '?outcome=delivered')).toEqual([all[0]])
  })

  it('names why there was no answer', async () => {
    const { id } = await register(rig, 'http://127.0.0.1:65535/')
    await deliver(rig, ['T-2'])
    expect(await list(id)).toMatchObject([
      { status: null, error: 'no answer', answer: null, durationMs: null },
    ])
  })

  it.each([
    ['more than a KiB', 'é'.repeat(5_000), 'é'.repeat(512)],
    ['a character that the KiB cuts in two', `a${'é'.repeat(600)}`, `a${'é'.repeat(511)}`],
    ['a card number', 'card 4111111111111111 refused', 'card 411111******1111 refused'],
    ['what Postgres cannot store', 'a\0b\u0007\n', 'a\ufffdb\ufffd\n'],
    ['no text', Buffer.from([0xff, 0xfe, 0x41]), '\ufffd\ufffdA'],
  ])('shows an answer of %s as a text that is safe to show', async (_, body, shown) => {
    const receiver = await serve((response) => response.writeHead(400).end(body))
    const { id } = await register(rig, receiver.url)
    await deliver(rig, ['T-3'])
    expect(await list(id)).toMatchObject([{ status: 400, answer: shown }])
  })

  it('is paged', async () => {
    const { id } = await openEndpoint(rig)
    const ids = await deliver(rig, ['A', 'B', 'C', 'D', 'E'])
    const all = await readAll((query) => call('GET', `/${id}/deliveries${query}`), { limit: '2' })
    expect(all.map((one) => Attempt.parse(one).eventId).toSorted()).toEqual(ids.toSorted())
    const order = all.map((one) => Number(Attempt.parse(one).id))
    expect(order).toEqual(order.toSorted((a, b) => b - a))
    await expectInvalid(await call('GET', `/${id}/deliveries?outcome=lost`), 'outcome')
  })

  it('is deleted with its endpoint, and after thirty days', async () => {
    const receiver = await receive()
    const [one, other] = [await register(rig, receiver.url), await register(rig, receiver.url)]
    await deliver(rig, ['T-5', 'T-5'])
    const { sql } = rig.database
    const count = async (id: string) =>
      (await sql`select from webhook_attempts where endpoint_id = ${id}`).length
    expect([await count(one.id), await count(other.id)]).toEqual([2, 2])
    const age = (days: number) => sql`
      update webhook_attempts set sent_at = now() - ${days} * interval '1 day'
      where endpoint_id = ${one.id}`
    await age(29)
    expect(await erase(rig.service.ctx, 'attempts')).toBe(0)
    await age(31)
    expect(await erase(rig.service.ctx, 'attempts')).toBe(2)
    expect([await count(one.id), await count(other.id)]).toEqual([0, 2])
    const short = { ...rig.service.ctx, config: { RETENTION_DAYS: 7 } }
    await sql`
      update webhook_attempts set sent_at = now() - interval '8 days' where endpoint_id = ${other.id}
        and id = (select min(id) from webhook_attempts where endpoint_id = ${other.id})`
    expect(await erase(short, 'attempts')).toBe(1)
    await call('DELETE', `/${other.id}`)
    expect(await count(other.id)).toBe(0)
  })
})

describe('a replay', () => {
  it('of an event that was accepted sends it again, once', async () => {
    const { receiver, id } = await openEndpoint(rig)
    const [first = '', second = ''] = await deliver(rig, ['T-6', 'T-6'])
    expect(await replay(id, first)).toEqual({ replayed: 1 })
    expect(await replay(id, first)).toEqual({ replayed: 1 })
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)).toEqual([first, second, first])
    expect(await list(id)).toHaveLength(3)
  })

  it('of an event that was not sent yet is not counted: it is sent in its turn, once', async () => {
    const { receiver, id } = await openEndpoint(rig)
    const [eventId = ''] = await publish(rig, ['T-TURN'])
    expect(await replay(id, eventId)).toEqual({ replayed: 0 })
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)).toEqual([eventId])
  })

  it('of one that failed makes it due at once; the others keep their backoff', async () => {
    const { receiver, id } = await openEndpoint(rig, 500)
    const [, second = ''] = await deliver(rig, ['T-7', 'T-8'])
    const sent = receiver.seen.length
    await replay(id, second)
    receiver.status = 204
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)[sent]).toBe(second)
    expect((await list(id))[0]).toMatchObject({ eventId: second, attempt: 1 })
  })

  it('of all that failed sends them in their order; what was not tried yet is not counted', async () => {
    const { receiver, id } = await openEndpoint(rig, 500)
    const ids = await publish(rig, ['T-9', 'T-9', 'T-10'])
    for (const _ of [1, 2, 3]) {
      await openProbe(rig)
      await work(rig.service.ctx)
    }
    const failed = new Set((await list(id)).map(({ eventId }) => eventId))
    expect(failed.size).toBe(2)
    receiver.status = 204
    const before = receiver.seen.length
    expect(await replay(id)).toEqual({ replayed: 2 })
    await work(rig.service.ctx)
    const got = listIds(receiver.seen).slice(before)
    expect(got.toSorted()).toEqual(ids.toSorted())
    expect(got.indexOf(ids[0] ?? '')).toBeLessThan(got.indexOf(ids[1] ?? ''))
    expect(await replay(id)).toEqual({ replayed: 0 })
  })

  it('of what is being sent sends nothing beside it', async () => {
    const receiver = await serveHeld()
    const { id } = await register(rig, receiver.url)
    const [eventId = ''] = await publish(rig, ['T-11'])
    const { ctx } = rig.service
    const { finished } = await createDeliveryRound(ctx)()
    await waitUntil(() => receiver.seen.length === 1, { what: 'the call' })
    await replay(id, eventId)
    expect(await replay(id)).toEqual({ replayed: 0 })
    await work(ctx)
    expect(receiver.seen).toHaveLength(1)
    receiver.answer()
    await finished
  })

  it('is refused for an event that the endpoint does not get, or that is no longer kept', async () => {
    const { merchantCode } = MERCHANT
    const response = await call('POST', `?merchantCode=${merchantCode}`, {
      url: 'http://127.0.0.1:65535/',
      types: ['payment.updated'],
    })
    const { id } = z.object({ id: z.string() }).parse(await response.json())
    const [type = ''] = await publish(rig, ['T-12'], { type: 'refund.updated' })
    const [theirs = ''] = await publish(rig, ['T-12'], { merchantCode: 'OTHER1' })
    const [gone = ''] = await publish(rig, ['T-12'])
    await rig.database.sql`delete from events where id = ${gone}`
    for (const eventId of [type, theirs, gone, '0', '-1', 'x', '9'.repeat(30), '1%00']) {
      const answer = await call('POST', `/${id}/deliveries/${eventId}/replay`)
      await expectProblem(answer, 404, 'webhook_delivery_not_found')
    }
    await work(rig.service.ctx)
    expect(await list(id)).toEqual([])
    await call('DELETE', `/${id}`)
  })

  it('is refused while the endpoint is disabled, and names what enables it', async () => {
    const { id } = await openEndpoint(rig, 410)
    const [eventId = ''] = await deliver(rig, ['T-13'])
    for (const path of [`/${id}/deliveries/replay`, `/${id}/deliveries/${eventId}/replay`]) {
      const { detail } = await expectProblem(
        await call('POST', path),
        409,
        'webhook_endpoint_disabled',
      )
      expect(detail).toContain(`/v1/webhook-endpoints/${id}/enable`)
    }
    expect(await list(id)).toMatchObject([{ status: 410, outcome: 'failed' }])
  })
})
