import { Webhook } from 'standardwebhooks'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { erase } from '../../../src/maintenance/delete-expired.ts'
import { createDeliveryRound } from '../../../src/webhooks/deliver.ts'
import { expectInvalid, expectProblem } from '../../support/api.ts'
import { findInTables } from '../../support/ask.ts'
import type { Seen } from '../../support/gateway.ts'
import { addKey, changeLifecycle, MERCHANT } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'
import { waitUntil } from '../../support/wait-until.ts'
import {
  callWebhooks,
  deliver,
  deliverLater,
  listAttempts,
  listIds,
  openEndpoint,
  publish,
  readEndpoint,
  receive,
  register,
  serveHeld,
  useWebhookRig,
  verify,
  work,
} from '../../support/webhooks.ts'

const PAYMENTS = 'key-for-payments-and-webhooks-0123456789'

const kept = keepLog()
const rig = useWebhookRig(kept.log)
beforeAll(() =>
  addKey(rig.database, PAYMENTS, ['payments:read', 'webhooks:write'], MERCHANT.merchantCode),
)

const call = (method: string, path: string, body?: unknown, key?: string) =>
  callWebhooks(rig, method, path, body, key)

async function expectShown(response: Response) {
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  return JSON.parse(text)
}

describe('a changed endpoint', () => {
  it('gets what waited at its new address at once, and keeps its secret', async () => {
    const [old, next] = [await receive(500), await receive()]
    const { id, secret, types } = await register(rig, old.url)
    const ids = await deliver(rig, ['T-1', 'T-1'])
    expect(await readEndpoint(rig, id)).toMatchObject({ failingSince: expect.any(String) })
    const shown = await expectShown(await call('PATCH', `/${id}`, { url: next.url }))
    expect(shown).toMatchObject({ id, url: next.url, types, failingSince: null })
    await work(rig.service.ctx)
    expect(listIds(next.seen)).toEqual(ids)
    for (const one of next.seen) verify(one, secret)
    const before = old.seen.length
    await deliver(rig, ['T-1'])
    expect(old.seen).toHaveLength(before)
  })

  it('gets only the types it then has, without a gap or a repetition', async () => {
    const { receiver, id } = await openEndpoint(rig, undefined, ['payment.updated'])
    const [first = ''] = await deliver(rig, ['T-2'])
    const shown = await expectShown(
      await call('PATCH', `/${id}`, { types: ['refund.updated', 'refund.updated'] }),
    )
    expect(shown).toMatchObject({ url: receiver.url, types: ['refund.updated'] })
    await publish(rig, ['T-2'])
    const [second = ''] = await deliver(rig, ['T-2'], { type: 'refund.updated' })
    expect(listIds(receiver.seen)).toEqual([first, second])
  })

  it('is not sent again what it has accepted before an event that it gets now', async () => {
    const receiver = await receive()
    const types = ['payment.updated', 'payment.created']
    const { id } = await register(rig, receiver.url, types.slice(0, 1))
    const { ctx } = rig.service
    const givingUp = new AbortController()
    const send: typeof ctx.webhooks.send = async (...given) => {
      const sent = await ctx.webhooks.send(...given)
      if (receiver.seen.length === 2) givingUp.abort()
      return sent
    }
    // The second waits for the first, while one of another transaction is sent beside that. Then the process stops.
    const early = await publish(rig, ['T-1', 'T-1'])
    await publish(rig, Array(40).fill('T-2'), { type: 'payment.created' })
    const late = await publish(rig, ['T-3'])
    const stopping = changeLifecycle(ctx, { givingUp: givingUp.signal })
    const { finished } = await createDeliveryRound({
      ...stopping,
      webhooks: { ...ctx.webhooks, send },
    })()
    await finished
    expect(new Set(listIds(receiver.seen))).toEqual(new Set([early[0], ...late]))
    await expectShown(await call('PATCH', `/${id}`, { types }))
    await work(ctx)
    expect(receiver.seen).toHaveLength(43)
    expect(new Set(listIds(receiver.seen)).size).toBe(43)
  })

  it('keeps its backoff when the address is named again, and stays disabled', async () => {
    const { receiver, id } = await openEndpoint(rig, 410)
    await deliver(rig, ['T-3'])
    const [before] = await listAttempts(rig, id)
    await expectShown(await call('PATCH', `/${id}`, { url: receiver.url }))
    expect(await listAttempts(rig, id)).toEqual([before])
    expect(before?.nextAttemptAt).not.toBeNull()
    const shown = await expectShown(await call('PATCH', `/${id}`, { url: `${receiver.url}/next` }))
    expect(shown).toMatchObject({ disabledReason: 'gone' })
    await work(rig.service.ctx)
    expect(receiver.seen).toHaveLength(1)
  })

  it('gets nothing while a call to its old address is under way, and then everything at the new one', async () => {
    const [old, next] = [await serveHeld(), await receive()]
    const { id } = await register(rig, old.url)
    const ids = await publish(rig, ['T-4', 'T-4'])
    const { ctx } = rig.service
    const { finished } = await createDeliveryRound(ctx)()
    await waitUntil(() => old.seen.length === 1, { what: 'the call' })
    await expectShown(await call('PATCH', `/${id}`, { url: next.url }))
    await work(ctx)
    expect(next.seen).toEqual([])
    old.answer(500)
    await finished
    await deliverLater(rig)
    expect(new Set(listIds(next.seen))).toEqual(new Set(ids))
    expect(await readEndpoint(rig, id)).toMatchObject({ pending: 0, failingSince: null })
  })

  it.each([
    [{}, 'body'],
    [{ url: 'http://8.8.8.8/' }, 'url'],
    [{ url: 'http://169.254.169.254/' }, 'url'],
    [{ url: 5 }, 'url'],
    [{ types: [] }, 'types'],
    [{ types: ['payment.lost'] }, 'types.0'],
    [{ types: ['payment.created'], secret: 'mine' }, 'secret'],
    [{ types: ['payment.created'], merchantCode: 'OTHER1' }, 'merchantCode'],
  ])('is not made of %j, and stays as it was', async (change, field) => {
    const { id, url, types } = await register(rig, 'http://127.0.0.1:65535/hook')
    await expectInvalid(await call('PATCH', `/${id}`, change), field)
    expect(await readEndpoint(rig, id)).toMatchObject({ url, types })
  })

  it('cannot lead what a key may not read to an address of its own', async () => {
    const { merchantCode } = MERCHANT
    const response = await callWebhooks(rig, 'POST', `?merchantCode=${merchantCode}`, {
      url: 'http://127.0.0.1:65535/hook',
      types: ['payment.updated', 'refund.updated'],
    })
    const { id } = z.object({ id: z.string() }).parse(await response.json())
    for (const change of [{ url: 'http://127.0.0.1:65535/mine' }, { types: ['refund.created'] }]) {
      const answer = await call('PATCH', `/${id}`, change, PAYMENTS)
      const { detail } = await expectProblem(answer, 403, 'scope_missing')
      expect(detail).toContain('refunds:read')
    }
    const rotated = await call('POST', `/${id}/rotate-secret`, {}, PAYMENTS)
    await expectProblem(rotated, 403, 'scope_missing')
    await call('DELETE', `/${id}`)
    // What it registered itself, it may change.
    const own = await register(rig, 'http://127.0.0.1:65535/hook', undefined, PAYMENTS)
    await expectShown(await call('PATCH', `/${own.id}`, { types: ['payment.updated'] }, PAYMENTS))
  })
})

/** The signatures of a request that verify under a secret. */
function countValid({ body, headers }: Seen, secret: string): number {
  const [id, time] = [String(headers['webhook-id']), Number(headers['webhook-timestamp'])]
  const own = new Webhook(secret).sign(id, new Date(time * 1000), body)
  return String(headers['webhook-signature'])
    .split(' ')
    .filter((one) => one === own).length
}

const Rotated = z.strictObject({
  id: z.string(),
  secret: z.string(),
  previousSecretValidUntil: z.string().nullable(),
})
async function rotate(id: string, body?: unknown) {
  const response = await call('POST', `/${id}/rotate-secret`, body)
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  return Rotated.parse(JSON.parse(text))
}

/** Moves the end of the previous secret into the past. */
const endPrevious = (id: string) => rig.database.sql`
  update webhook_endpoints set previous_secret_until = now() where id = ${id}`

describe('a rotated secret', () => {
  it('is valid beside the one before until its time has come, for events and tests', async () => {
    const { receiver, id, secret: first } = await openEndpoint(rig)
    const { secret: second, previousSecretValidUntil } = await rotate(id)
    expect(second).toMatch(/^whsec_/)
    expect(second).not.toBe(first)
    const leftS = (Date.parse(previousSecretValidUntil ?? '') - Date.now()) / 1000
    expect(Math.abs(leftS - 86_400)).toBeLessThan(60)
    await deliver(rig, ['T-5'])
    await call('POST', `/${id}/test`)
    expect(receiver.seen).toHaveLength(2)
    for (const one of receiver.seen) {
      expect([countValid(one, first), countValid(one, second)]).toEqual([1, 1])
      for (const secret of [first, second]) verify(one, secret)
    }
    await endPrevious(id)
    await deliver(rig, ['T-5'])
    const [last] = receiver.seen.slice(-1)
    if (!last) throw new Error('nothing came')
    expect([countValid(last, first), countValid(last, second)]).toEqual([0, 1])
    expect(String(last.headers['webhook-signature'])).not.toContain(' ')
  })

  it('is the only one at once where that is wanted, and shown only once', async () => {
    const { receiver, id, secret: first } = await openEndpoint(rig)
    const rotated = await rotate(id, { previousValidForS: 0 })
    expect(rotated.previousSecretValidUntil).toBeNull()
    await deliver(rig, ['T-6'])
    const [got] = receiver.seen
    if (!got) throw new Error('nothing came')
    expect([countValid(got, first), countValid(got, rotated.secret)]).toEqual([0, 1])
    const shown = await (await call('GET', '')).text()
    for (const text of [shown, kept.text()]) {
      for (const one of [first, rotated.secret]) expect(text).not.toContain(one)
    }
    expect(await findInTables(rig.database, rotated.secret.slice(6))).toEqual([])
  })

  it('is not replaced while two are valid unless the caller names the one to keep', async () => {
    const { receiver, id, secret: first } = await openEndpoint(rig)
    const { secret: second } = await rotate(id, { previousValidForS: 3_600 })
    const again = await call('POST', `/${id}/rotate-secret`, {})
    const { detail } = await expectProblem(again, 409, 'secret_rotating')
    expect(detail).toContain('keep')
    const { previousSecretValidUntil } = await readEndpoint(rig, id)
    expect(detail).toContain(previousSecretValidUntil ?? 'a time')
    // As after a lost answer: nobody has the second one.
    const { secret: third } = await rotate(id, { keep: 'previous' })
    await deliver(rig, ['T-7'])
    const { secret: fourth } = await rotate(id, { keep: 'current' })
    await deliver(rig, ['T-7'])
    const valid = receiver.seen.map((one) =>
      [first, second, third, fourth].map((secret) => countValid(one, secret)),
    )
    expect(valid).toEqual([
      [1, 0, 1, 0],
      [0, 0, 1, 1],
    ])
  })

  it('takes the place of one that cannot be opened any more, and what waits is sent', async () => {
    const { receiver, id } = await openEndpoint(rig)
    await rig.database.sql`
      update webhook_endpoints set secret = overlay(secret placing ${Buffer.alloc(8)} from 5 for 8) where id = ${id}`
    await publish(rig, ['T-8'])
    // Its key is sought first.
    const isFree = async () => (await call('POST', `/${id}/test`)).status !== 503
    await waitUntil(isFree, { what: 'its key to be lost' })
    const { secret, previousSecretValidUntil } = await rotate(id)
    expect(previousSecretValidUntil).toBeNull()
    await work(rig.service.ctx)
    for (const one of receiver.seen) verify(one, secret)
    expect(receiver.seen).toHaveLength(1)
  })

  it.each([
    [{ previousValidForS: -1 }, 'previousValidForS'],
    [{ previousValidForS: 604_801 }, 'previousValidForS'],
    [{ previousValidForS: 1.5 }, 'previousValidForS'],
    [{ previousValidForS: '60' }, 'previousValidForS'],
    [{ keep: 'both' }, 'keep'],
    [{ keep: 'previous' }, 'keep'],
    [{ secret: 'mine' }, 'secret'],
  ])('is not made of %j', async (body, field) => {
    const { id } = await register(rig, 'http://127.0.0.1:65535/hook')
    await expectInvalid(await call('POST', `/${id}/rotate-secret`, body), field)
  })

  it('leaves the one before encrypted in its own place, and erased once its time has come', async () => {
    const { id } = await register(rig, 'http://127.0.0.1:65535/hook')
    await rotate(id)
    const read = async () => {
      const [row] = await rig.database.sql<{ secret: Buffer; previous: Buffer | null }[]>`
        select secret, previous_secret as previous from webhook_endpoints where id = ${id}`
      return row
    }
    const before = await read()
    expect(await erase(rig.service.ctx, 'secrets')).toBe(0)
    await rig.database.sql`update webhook_endpoints set previous_secret = secret where id = ${id}`
    await deliver(rig, ['T-8'])
    expect(kept.errors().at(-1)?.msg).toContain('could not be delivered')
    await rig.database.sql`
      update webhook_endpoints set previous_secret = ${before?.previous ?? null} where id = ${id}`
    await endPrevious(id)
    expect(await erase(rig.service.ctx, 'secrets')).toBe(1)
    expect(await read()).toEqual({ secret: before?.secret, previous: null })
  })
})
