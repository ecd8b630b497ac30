import { ConflictError, createClient, NotFoundError } from '@ipn-processor/client'
import { Webhook } from 'standardwebhooks'
import { expect, it } from 'vitest'
import { serve } from '../../support/gateway.ts'
import { KEY } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { publish } from '../../support/webhooks.ts'

const rig = useRig({ settings: { WEBHOOK_ALLOW_PRIVATE: 'true' } })

it('an endpoint is registered, tested, replayed to, enabled and deleted', async () => {
  const { webhookEndpoints } = createClient({ baseUrl: rig.service.url, apiKey: KEY })
  const { url, seen } = await serve((response) => response.writeHead(204).end())
  const [first = ''] = await publish(rig, ['T1', 'T2'])
  const { id, secret } = await webhookEndpoints.create({ url, types: ['payment.updated'] })
  for await (const endpoint of webhookEndpoints.list({ limit: 1 })) {
    expect(endpoint).toMatchObject({ id, types: ['payment.updated'], disabledAt: null })
  }
  expect(await webhookEndpoints.test(id)).toMatchObject({ delivered: true, status: 204 })
  expect(await webhookEndpoints.enable(id)).toMatchObject({ id, pending: 0 })
  expect(await webhookEndpoints.replay(id, first)).toMatchObject({ id })
  await waitUntil(() => seen.length === 2, { what: 'the test and the second event' })
  const [test, second] = seen.map(({ body, headers }) =>
    new Webhook(secret).verify(body, JSON.parse(JSON.stringify(headers))),
  )
  expect(test).toMatchObject({ type: 'endpoint.test' })
  expect(second).toMatchObject({ type: 'payment.updated', transactionId: 'T2' })
  await webhookEndpoints.delete(id)
  await expect(webhookEndpoints.test(id)).rejects.toThrow(NotFoundError)
  expect(await webhookEndpoints.list().page()).toEqual({ data: [], nextCursor: null })
})

it('an endpoint is changed, its secret rotated, and its deliveries listed and replayed', async () => {
  const { webhookEndpoints } = createClient({ baseUrl: rig.service.url, apiKey: KEY })
  const { url, seen } = await serve((response) => response.end('thanks'))
  const { id, secret } = await webhookEndpoints.create({ url: `${url}/first` })
  const changed = await webhookEndpoints.update(id, { url, types: ['payment.updated'] })
  expect(changed).toMatchObject({ url, types: ['payment.updated'], previousSecretValidUntil: null })
  const rotated = await webhookEndpoints.rotateSecret(id)
  expect(Date.parse(rotated.previousSecretValidUntil ?? '')).toBeGreaterThan(Date.now())
  await expect(webhookEndpoints.rotateSecret(id)).rejects.toThrow(ConflictError)
  const [eventId = ''] = await publish(rig, ['T3'])
  const arrived = (count: number) => waitUntil(() => seen.length === count, { what: 'the event' })
  await arrived(1)
  for (const one of [secret, rotated.secret]) {
    const headers = JSON.parse(JSON.stringify(seen[0]?.headers))
    expect(new Webhook(one).verify(seen[0]?.body ?? '', headers)).toMatchObject({ id: eventId })
  }
  const logged = async () => (await webhookEndpoints.deliveries(id, { limit: 1 }).page()).data
  await waitUntil(async () => (await logged()).length === 1, { what: 'the log' })
  expect(await logged()).toMatchObject([{ eventId, outcome: 'delivered', answer: 'thanks' }])
  expect(await webhookEndpoints.redeliver(id, eventId)).toEqual({ replayed: 1 })
  await arrived(2)
  expect(await webhookEndpoints.redeliver(id)).toEqual({ replayed: 0 })
  await expect(webhookEndpoints.redeliver(id, '0')).rejects.toThrow(NotFoundError)
  expect(await webhookEndpoints.deliveries(id, { outcome: 'failed' }).page()).toMatchObject({
    data: [],
  })
  await webhookEndpoints.delete(id)
})
