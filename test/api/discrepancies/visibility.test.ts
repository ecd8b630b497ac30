import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { readPage, withKey } from '../../support/api.ts'
import { findEnd, readEvents } from '../../support/feed.ts'
import { serve } from '../../support/gateway.ts'
import { addKey } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { callWebhooks, work } from '../../support/webhooks.ts'

const PAYMENTS = 'key-that-reads-payments-0123456789-0123456789'
const REFUNDS = 'key-that-reads-refunds-as-well-0123456789-0123456789'

/** One that names a refund, and two that do not: `unexplained_growth` is about a payment. */
const SHOWN = ['answer_went_backwards', 'unexplained_growth']
const HIDDEN = ['failure_after_success']

const lab = useRefundLab({ settings: { WEBHOOK_ALLOW_PRIVATE: 'true' } })
let transactionId = ''
let start = ''
const Body = z.object({ data: z.looseObject({}) })
beforeAll(async () => {
  const { database } = lab
  await addKey(database, PAYMENTS, ['payments:read', 'webhooks:write'])
  await addKey(database, REFUNDS, ['payments:read', 'refunds:read', 'webhooks:write'])
  start = await findEnd(lab)
  const payment = await lab.open()
  transactionId = payment.transactionId
  const refundId = await lab.send(payment, '30')
  await lab.settle(refundId)
  await lab.passNotified(payment, refundId, '30')
  await lab.passNotified(payment, refundId, '30', { code: 33 })
  await lab.passShowing(payment, '60')
  await lab.change(payment, { status: 'FAILED' })
  await lab.pass(payment)
  await publishEvents(lab.service.ctx.db.sql)
})

const sort = (kinds: unknown[]) => [...new Set(kinds)].sort()

it('the operators list has them all', async () => {
  const { data } = await readPage(await lab.api('/v1/discrepancies'))
  expect(sort(data.map(({ kind }) => kind))).toEqual(expect.arrayContaining([...SHOWN, ...HIDDEN]))
})

const READERS = [
  ['without refunds:read', PAYMENTS, false],
  ['with refunds:read', REFUNDS, true],
] as const

it.each(READERS)('the timeline shows a reader %s what its kind allows', async (_, key, all) => {
  const path = `/v1/transactions/${transactionId}/timeline?limit=200`
  const { data } = await readPage(await lab.api(path, withKey(key)))
  const kinds = data.filter(({ type }) => type === 'discrepancy').map(({ kind }) => kind)
  expectKinds(kinds, all)
})

it.each(READERS)('the feed shows a reader %s the same', async (_, key, all) => {
  const types = '&types=discrepancy.found&limit=200'
  const page = await readEvents(await lab.api(`/v1/events?after=${start}${types}`, withKey(key)))
  expectKinds(page.data.map(readKind), all)
})

it.each(READERS)('a reader %s who waits gets the same', async (_, key, all) => {
  const { sql } = lab.database
  const end = await findEnd(lab)
  const path = `/v1/events?after=${end}&types=discrepancy.found&limit=200&wait=60`
  const waiting = lab.api(path, withKey(key))
  const isWaiting = () => lab.service.ctx.feedWaiters.count() > 0
  await waitUntil(isWaiting, { what: 'the reader to wait' })
  await sql`
    insert into event_outbox (merchant_code, transaction_id, type, data)
    select merchant_code, transaction_id, type, data from events
    where type = 'discrepancy.found' and id > ${start} order by id`
  await publishEvents(lab.service.ctx.db.sql)
  expectKinds((await readEvents(await waiting)).data.map(readKind), all)
})

it.each(READERS)('an endpoint registered by a key %s gets the same', async (_, key, all) => {
  const { url, seen } = await serve((response) => response.end())
  const answer = await callWebhooks(lab, 'POST', '', { url, types: ['discrepancy.found'] }, key)
  const { id } = z.object({ id: z.string() }).parse(await answer.json())
  await callWebhooks(lab, 'POST', `/${id}/replay`, { after: start }, key)
  await work(lab.service.ctx)
  const bodies = seen.map(({ body }) => Body.parse(JSON.parse(body)))
  expectKinds(bodies.map(readKind), all)
})

function readKind({ data }: { data: object }): unknown {
  return 'kind' in data ? data.kind : undefined
}

function expectKinds(kinds: unknown[], all: boolean): void {
  for (const kind of SHOWN) expect(kinds).toContain(kind)
  for (const kind of HIDDEN) expect(kinds.includes(kind)).toBe(all)
}
