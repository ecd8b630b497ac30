import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Payment } from '../../../src/payments/view.ts'
import { Refund } from '../../../src/refunds/view.ts'
import { expectInvalid, expectProblem, NO_IDS, readPage, withKey } from '../../support/api.ts'
import { ask, expectRefused } from '../../support/ask.ts'
import { beginPass } from '../../support/begin-pass.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { type LabPayment, waitForSent } from '../../support/refund-lab.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { readItem } from '../../support/sync.ts'
import { useFreshLab } from '../../support/use-started.ts'

const OPERATOR = 'key-of-operations-only-01234567890123456'
const SHOP = 'key-of-a-shop-that-refunds-0123456789012'

const lab = useFreshLab({
  settings: {
    GATEWAY_TIMEOUT_MS: '5000',
    REFUND_BACKOFF_MS: '60000',
    REFUND_BACKOFF_MAX_MS: '60000',
  },
})
beforeAll(async () => {
  await addKey(lab.database, OPERATOR, ['ops'])
  await addKey(lab.database, SHOP, ['refunds:write', 'payments:read'])
  await lab.database.sql`insert into merchant_accounts (merchant_code) values ('OTHER1')`
})

type Target = 'merchant' | 'payment' | 'refund'

function call(method: 'PUT' | 'DELETE', path: string, body: unknown, key = OPERATOR) {
  return fetch(`${lab.service.url}/v1/holds/${path}`, {
    method,
    ...withKey(key, { 'content-type': 'application/json' }),
    body: JSON.stringify(body),
  })
}

const State = z.strictObject({
  target: z.string(),
  id: z.string(),
  merchantCode: z.string(),
  hold: z.strictObject({ reason: z.string(), by: z.string(), since: z.iso.datetime() }).nullable(),
})

async function change(method: 'PUT' | 'DELETE', path: string, reason: string) {
  const response = await call(method, path, { reason })
  expect(response.status).toBe(200)
  return State.parse(await response.json())
}

const { merchantCode } = MERCHANT

/** Requests a refund of 30 out of 100, and names what of it can be held. */
async function requestRefund() {
  const payment = await lab.open()
  const id = await lab.ask(payment, '30')
  const paths: Record<Target, string> = {
    merchant: `merchant/${merchantCode}`,
    payment: `payment/${payment.id}`,
    refund: `refund/${id}`,
  }
  return { payment, id, paths }
}

const TARGETS: readonly Target[] = ['merchant', 'payment', 'refund']

async function readRefund(id: string) {
  return Refund.strict().parse(await (await lab.api(`/v1/refunds/${id}`)).json())
}

async function readTimeline({ transactionId }: LabPayment) {
  return (await readPage(await lab.api(`/v1/transactions/${transactionId}/timeline`))).data
}

describe.each(TARGETS)('a hold on the %s', (target) => {
  it('keeps the refund from being sent, until it is released', async () => {
    const { payment, id, paths } = await requestRefund()
    const set = await change('PUT', paths[target], 'fraud?')
    expect(set).toMatchObject({ target, merchantCode, hold: { reason: 'fraud?', by: 'test' } })
    await lab.pass(payment)
    await lab.pass(payment)
    expect(await lab.row(id)).toMatchObject({ status: 'pending', attempts: 0 })
    expect(await lab.database.sql`select from refund_attempts`).toHaveLength(0)
    expect((await lab.row(id)).dueInMs).toBeGreaterThan(0)
    expect(await change('DELETE', paths[target], 'was none')).toMatchObject({ target, hold: null })
    // The refunds of an account wait for their next checks.
    const { dueInMs } = await lab.row(id)
    if (target !== 'merchant') expect(dueInMs).toBeLessThan(60_000)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
  })

  it('keeps an unanswered refund from being sent again', async () => {
    const { payment, id, paths } = await requestRefund()
    await lab.fault('reset')
    await lab.pass(payment)
    await lab.age(id, 60_000)
    await change('PUT', paths[target], 'fraud?')
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
    await change('DELETE', paths[target], 'was none')
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(2)
  })

  it('is set only after a commit that records an attempt, which then is sent', async () => {
    const { payment, id, paths } = await requestRefund()
    const pass = await beginPass(lab, payment, 'QUERY_PT')
    let finishing: Promise<void> | undefined
    const response = await whileUncommitted(
      lab.database,
      (held) => held`select from refunds where refund_id = ${id} for update`,
      async (commit) => {
        finishing = pass.finish()
        await waitUntilBlocked(lab.database, 1)
        const setting = call('PUT', paths[target], { reason: 'fraud?' })
        await waitUntilBlocked(lab.database, 2)
        await commit()
        return await setting
      },
    )
    expect(response.status).toBe(200)
    await finishing
    expect(await lab.sent(id)).toBe(1)
  })

  it('set during the query is seen by its commit', async () => {
    const { payment, id, paths } = await requestRefund()
    const pass = await beginPass(lab, payment, 'QUERY_PT')
    await change('PUT', paths[target], 'fraud?')
    await pass.finish()
    expect(await lab.sent(id)).toBe(0)
    expect(await lab.row(id)).toMatchObject({ status: 'pending', attempts: 0 })
  })

  it('does not stop deadlines', async () => {
    const { payment, id, paths } = await requestRefund()
    await change('PUT', paths[target], 'fraud?')
    await lab.database.sql`update refunds set requested_at = now() - interval '8 days'`
    await lab.pass(payment)
    expect(await readRefund(id)).toMatchObject({ failure: { code: 'not_sent_in_time' } })
  })

  it('is recorded, with the key and the reason, set and released', async () => {
    const { id, paths } = await requestRefund()
    await change('PUT', paths[target], 'fraud?')
    await change('PUT', paths[target], 'fraud!')
    await change('DELETE', paths[target], 'was none')
    const history = await lab.database.sql`
      select target, held, reason, actor from hold_changes order by id`
    expect(history).toEqual([
      { target, held: true, reason: 'fraud?', actor: 'test' },
      { target, held: true, reason: 'fraud!', actor: 'test' },
      { target, held: false, reason: 'was none', actor: 'test' },
    ])
    const objectId = paths[target].split('/')[1] ?? ''
    const audited = await lab.database.sql`
      select operation from audit_entries where object_id = ${objectId} and operation like '%holds%'
      order by id desc limit 3`
    expect(audited.map(({ operation }) => operation)).toEqual([
      'DELETE /v1/holds/{target}/{id}',
      'PUT /v1/holds/{target}/{id}',
      'PUT /v1/holds/{target}/{id}',
    ])
    expect((await readRefund(id)).status).toBe('pending')
  })

  it('needs a reason and the scope ops', async () => {
    const { paths, id } = await requestRefund()
    for (const method of ['PUT', 'DELETE'] as const) {
      await expectInvalid(await call(method, paths[target], {}), 'reason')
      await expectInvalid(await call(method, paths[target], { reason: ' ' }), 'reason')
      const refused = await call(method, paths[target], { reason: 'x' }, SHOP)
      await expectProblem(refused, 403, 'scope_missing')
    }
    await expectProblem(await call('DELETE', paths[target], { reason: 'x' }), 409, 'not_held')
    expect((await readRefund(id)).hold).toBeNull()
  })
})

describe('a hold', () => {
  it('on a payment is shown on it, in timeline, feed and version', async () => {
    const { payment, paths } = await requestRefund()
    const { version } = await readItem(lab, payment.transactionId)
    const { hold } = await change('PUT', paths.payment, 'fraud?')
    const shown = Payment.strict().parse(await (await lab.api(`/v1/payments/${payment.id}`)).json())
    expect(shown.hold).toEqual(hold)
    expect((await lab.transaction(payment.transactionId)).payments[0]?.hold).toEqual(hold)
    expect((await readItem(lab, payment.transactionId)).version).toBe(version + 1)
    const change1 = { field: 'hold', before: null, after: 'fraud?' }
    const cause = 'held with API key test: fraud?'
    expect((await readTimeline(payment)).at(-1)).toMatchObject({
      ...change1,
      paymentId: payment.id,
      cause,
    })
    const [event] = await lab.database.sql`
      select type, data from event_outbox where data ->> 'id' = ${payment.id} order by id desc limit 1`
    expect(event).toMatchObject({ type: 'payment.updated', data: { hold } })
    await change('DELETE', paths.payment, 'was none')
    expect((await readTimeline(payment)).at(-1)).toMatchObject({
      before: 'fraud?',
      after: null,
      cause: 'hold released with API key test: was none',
    })
  })

  it('on a refund is shown on it, in timeline and feed', async () => {
    const { payment, id, paths } = await requestRefund()
    const { hold } = await change('PUT', paths.refund, 'fraud?')
    expect((await readRefund(id)).hold).toEqual(hold)
    expect((await readTimeline(payment)).at(-1)).toMatchObject({ refundId: id, after: 'fraud?' })
    const [event] = await lab.database.sql`
      select type, data from event_outbox where data ->> 'id' = ${id} order by id desc limit 1`
    expect(event).toMatchObject({ type: 'refund.updated', data: { hold } })
    expect(await lab.payment(payment.id)).toMatchObject({ hold: null })
  })

  it('on an account is shown on its payments and refunds, read by themselves', async () => {
    const { payment, id, paths } = await requestRefund()
    const read = async (path: string) => await (await lab.api(path)).json()
    const readAll = async () => ({
      payment: Payment.strict().parse(await read(`/v1/payments/${payment.id}`)),
      refund: await readRefund(id),
      payments: Payment.array().parse((await readPage(await lab.api('/v1/payments'))).data),
      refunds: Refund.array().parse((await readPage(await lab.api('/v1/refunds'))).data),
    })
    const before = await readAll()
    expect(JSON.stringify(before)).not.toContain('accountHold')
    const { hold } = await change('PUT', paths.merchant, 'fraud?')
    const held = { accountHold: hold, hold: null }
    expect(hold).toMatchObject({ reason: 'fraud?', by: 'test' })
    expect(await readAll()).toMatchObject({
      ...{ payment: held, refund: held, payments: [held], refunds: [held] },
    })
    await lab.pass(payment)
    const transaction = await lab.transaction(payment.transactionId)
    expect(transaction.payments[0]).not.toHaveProperty('accountHold')
    expect(JSON.stringify((await readPage(await lab.api('/v1/events'))).data)).not.toContain(
      'accountHold',
    )
    await change('DELETE', paths.merchant, 'was none')
    expect(JSON.stringify(await readAll())).not.toContain('accountHold')
  })

  it('on another account is not shown on this one', async () => {
    const { payment, id } = await requestRefund()
    const since = '2026-01-01T00:00:00.000Z'
    await lab.database.sql`
      update merchant_accounts set hold = jsonb_build_object('reason', 'x', 'by', 'y', 'since', ${since}::text)
      where merchant_code = 'OTHER1'`
    const shown = Payment.parse(await (await lab.api(`/v1/payments/${payment.id}`)).json())
    expect([shown.accountHold, (await readRefund(id)).accountHold]).toEqual([undefined, undefined])
    await lab.database.sql`update merchant_accounts set hold = null where merchant_code = 'OTHER1'`
  })

  it('survives the answers of the gateway', async () => {
    const { payment, paths } = await requestRefund()
    const { hold } = await change('PUT', paths.payment, 'fraud?')
    await lab.control('PATCH', `/payments/${payment.id}`, { status: 'FAILED' })
    await lab.pass(payment)
    expect(await lab.payment(payment.id)).toMatchObject({ status: 'FAILED', hold })
  })

  it.each(['merchant', 'payment'] as const)('on the %s refuses new refunds', async (target) => {
    const { payment, paths } = await requestRefund()
    await change('PUT', paths[target], 'fraud?')
    const url = lab.service.url
    for (const query of ['', '?dryRun=true']) {
      const response = await ask({ url, query }, payment.id, { amount: '1' })
      expect((await expectRefused(response, 409, 'held')).detail).toContain('fraud?')
    }
    await change('DELETE', paths[target], 'was none')
    expect((await ask({ url }, payment.id, { amount: '1' })).status).toBe(202)
  })

  it('still replays a refund that was requested before', async () => {
    const payment = await lab.open()
    await lab.refund(payment.id, { amount: '30' }, 'key-1')
    await change('PUT', `payment/${payment.id}`, 'fraud?')
    const again = await lab.refund(payment.id, { amount: '30' }, 'key-1')
    expect(again.status).toBe(202)
  })

  it('on one payment or refund does not stop others', async () => {
    const held = await requestRefund()
    const other = await requestRefund()
    await change('PUT', held.paths.payment, 'fraud?')
    await lab.pass(other.payment)
    await waitForSent(lab, other.id)
    const payment = await lab.open()
    const [first, second] = [await lab.ask(payment, '30'), await lab.ask(payment, '20')]
    await change('PUT', `refund/${first}`, 'fraud?')
    await lab.pass(payment)
    expect([await lab.sent(first), await lab.sent(second)]).toEqual([0, 1])
  })

  it('on another account does not stop this one', async () => {
    const { payment, id } = await requestRefund()
    await lab.database.sql`
      update merchant_accounts set hold = '{"reason":"fraud?"}' where merchant_code = 'OTHER1'`
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
  })

  it('on something unknown is 404, whatever its id looks like', async () => {
    for (const target of TARGETS) {
      for (const id of [...NO_IDS, 'T-1']) {
        const response = await call('PUT', `${target}/${id}`, { reason: 'x' })
        await expectProblem(response, 404, `${target}_not_found`)
      }
    }
    await expectInvalid(await call('PUT', 'transaction/T-1', { reason: 'x' }), 'target')
  })

  it('released twice at once is released once', async () => {
    const { paths } = await requestRefund()
    await change('PUT', paths.refund, 'fraud?')
    const answers = await whileUncommitted(
      lab.database,
      (held) =>
        held`select from merchant_accounts where merchant_code = ${merchantCode} for update`,
      async (commit) => {
        const both = [1, 2].map(() => call('DELETE', paths.refund, { reason: 'x' }))
        await waitUntilBlocked(lab.database, 2)
        await commit()
        return await Promise.all(both)
      },
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  })
})
