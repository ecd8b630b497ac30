import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Payment } from '../../../src/payments/view.ts'
import { Refund } from '../../../src/refunds/view.ts'
import { expectInvalid, expectProblem, NO_IDS, readPage } from '../../support/api.ts'
import { ask, expectRefused } from '../../support/ask.ts'
import { beginPass } from '../../support/begin-pass.ts'
import { atOnce, waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { act, done, usePerson } from '../../support/people.ts'
import { waitForSent } from '../../support/refund-lab.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { readItem } from '../../support/sync.ts'
import { useFreshLab } from '../../support/use-started.ts'

const SHOP = 'key-of-a-shop-that-refunds-0123456789012'

const lab = useFreshLab({
  settings: { REFUND_BACKOFF_MS: '60000', REFUND_BACKOFF_MAX_MS: '60000' },
})
beforeAll(async () => {
  await addKey(lab.database, SHOP, ['refunds:write', 'payments:read'])
  await lab.database.sql`insert into merchant_accounts (merchant_code) values ('OTHER1')`
})
const operator = usePerson(lab)

type Target = 'merchant' | 'payment' | 'refund'

const State = z.strictObject({
  target: z.string(),
  id: z.string(),
  merchantCode: z.string(),
  hold: z.strictObject({ reason: z.string(), by: z.string(), since: z.iso.datetime() }).nullable(),
})

const hold = (path: string, reason = 'fraud?') => done(operator.hold(path, { reason }), State)
const release = (path: string) => done(operator.release(path, { reason: 'was none' }), State)

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

describe.each(TARGETS)('a hold on the %s', (target) => {
  it('keeps the refund from being sent, until it is released', async () => {
    const { payment, id, paths } = await requestRefund()
    const set = await hold(paths[target])
    expect(set).toMatchObject({
      target,
      merchantCode,
      hold: { reason: 'fraud?', by: operator.name },
    })
    await lab.pass(payment)
    await lab.pass(payment)
    await lab.expectRefund(id, 'pending', { attempts: 0 })
    expect(await lab.database.sql`select from refund_attempts`).toHaveLength(0)
    expect((await lab.row(id)).dueInMs).toBeGreaterThan(0)
    expect(await release(paths[target])).toMatchObject({ target, hold: null })
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
    await hold(paths[target])
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
    await release(paths[target])
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
        const setting = operator.hold(paths[target])
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
    await hold(paths[target])
    await pass.finish()
    expect(await lab.sent(id)).toBe(0)
    await lab.expectRefund(id, 'pending', { attempts: 0 })
  })

  it('does not stop deadlines', async () => {
    const { payment, id, paths } = await requestRefund()
    await hold(paths[target])
    await lab.ageRequest(id, 8 * 86_400_000)
    await lab.pass(payment)
    expect(await lab.readRefund(id)).toMatchObject({ failure: { code: 'not_sent_in_time' } })
  })

  it('is recorded, with the key and the reason, set and released', async () => {
    const { id, paths } = await requestRefund()
    await hold(paths[target])
    await hold(paths[target], 'fraud!')
    await release(paths[target])
    const history = await lab.database.sql`
      select target, held, reason, actor from hold_changes order by id`
    expect(history).toEqual([
      { target, held: true, reason: 'fraud?', actor: operator.name },
      { target, held: true, reason: 'fraud!', actor: operator.name },
      { target, held: false, reason: 'was none', actor: operator.name },
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
    expect((await lab.readRefund(id)).status).toBe('pending')
  })

  it('needs a reason and the scope ops', async () => {
    const { paths, id } = await requestRefund()
    for (const method of ['PUT', 'DELETE'] as const) {
      const path = `holds/${paths[target]}`
      for (const reason of [undefined, ' ']) {
        await expectInvalid(await operator.call(method, path, { reason }), 'reason')
      }
      const refused = await act(lab, { key: SHOP }).call(method, path)
      await expectProblem(refused, 403, 'scope_missing')
    }
    await expectProblem(await operator.release(paths[target]), 409, 'not_held')
    expect((await lab.readRefund(id)).hold).toBeNull()
  })
})

describe('a hold', () => {
  it('on a payment is shown on it, in timeline, feed and version', async () => {
    const { payment, paths } = await requestRefund()
    const { version } = await readItem(lab, payment.transactionId)
    const { hold: held } = await hold(paths.payment)
    expect((await lab.payment(payment.id)).hold).toEqual(held)
    expect((await lab.transaction(payment.transactionId)).payments[0]?.hold).toEqual(held)
    expect((await readItem(lab, payment.transactionId)).version).toBe(version + 1)
    expect((await lab.timeline(payment)).at(-1)).toMatchObject({
      ...{ field: 'hold', before: null, after: 'fraud?', paymentId: payment.id },
      cause: `held with API key ${operator.name}: fraud?`,
    })
    expect(await lab.lastEvent(payment.id)).toMatchObject({
      ...{ type: 'payment.updated', data: { hold: held } },
    })
    await release(paths.payment)
    expect((await lab.timeline(payment)).at(-1)).toMatchObject({
      before: 'fraud?',
      after: null,
      cause: `hold released with API key ${operator.name}: was none`,
    })
  })

  it('on a refund is shown on it, in timeline and feed', async () => {
    const { payment, id, paths } = await requestRefund()
    const { hold: held } = await hold(paths.refund)
    expect((await lab.readRefund(id)).hold).toEqual(held)
    expect((await lab.timeline(payment)).at(-1)).toMatchObject({ refundId: id, after: 'fraud?' })
    expect(await lab.lastEvent(id)).toMatchObject({
      ...{ type: 'refund.updated', data: { hold: held } },
    })
    expect(await lab.payment(payment.id)).toMatchObject({ hold: null })
  })

  it('on an account is shown on its payments and refunds, read by themselves', async () => {
    const { payment, id, paths } = await requestRefund()
    const readAll = async () => ({
      payment: await lab.payment(payment.id),
      refund: await lab.readRefund(id),
      payments: Payment.array().parse((await readPage(await lab.api('/v1/payments'))).data),
      refunds: Refund.array().parse((await readPage(await lab.api('/v1/refunds'))).data),
    })
    const before = await readAll()
    expect(JSON.stringify(before)).not.toContain('accountHold')
    const { hold: accountHold } = await hold(paths.merchant)
    expect(accountHold).toMatchObject({ reason: 'fraud?', by: operator.name })
    const held = { accountHold, hold: null }
    expect(await readAll()).toMatchObject({
      ...{ payment: held, refund: held, payments: [held], refunds: [held] },
    })
    await lab.pass(payment)
    const transaction = await lab.transaction(payment.transactionId)
    expect(transaction.payments[0]).not.toHaveProperty('accountHold')
    expect(JSON.stringify((await readPage(await lab.api('/v1/events'))).data)).not.toContain(
      'accountHold',
    )
    await release(paths.merchant)
    expect(JSON.stringify(await readAll())).not.toContain('accountHold')
  })

  it('on another account is not shown on this one', async () => {
    const { payment, id } = await requestRefund()
    const since = '2026-01-01T00:00:00.000Z'
    await lab.database.sql`
      update merchant_accounts set hold = jsonb_build_object('reason', 'x', 'by', 'y', 'since', ${since}::text)
      where merchant_code = 'OTHER1'`
    const shown = await lab.payment(payment.id)
    expect([shown.accountHold, (await lab.readRefund(id)).accountHold]).toEqual([
      undefined,
      undefined,
    ])
    await lab.database.sql`update merchant_accounts set hold = null where merchant_code = 'OTHER1'`
  })

  it('survives the answers of the gateway', async () => {
    const { payment, paths } = await requestRefund()
    const { hold: held } = await hold(paths.payment)
    await lab.change(payment, { status: 'FAILED' })
    await lab.pass(payment)
    expect(await lab.payment(payment.id)).toMatchObject({ status: 'FAILED', hold: held })
  })

  it.each(['merchant', 'payment'] as const)('on the %s refuses new refunds', async (target) => {
    const { payment, paths } = await requestRefund()
    await hold(paths[target])
    const url = lab.service.url
    for (const query of ['', '?dryRun=true']) {
      const response = await ask({ url, query }, payment.id, { amount: '1' })
      expect((await expectRefused(response, 409, 'held')).detail).toContain('fraud?')
    }
    await release(paths[target])
    expect((await ask({ url }, payment.id, { amount: '1' })).status).toBe(202)
  })

  it('still replays a refund that was requested before', async () => {
    const payment = await lab.open()
    await lab.refund(payment.id, { amount: '30' }, 'key-1')
    await hold(`payment/${payment.id}`)
    const again = await lab.refund(payment.id, { amount: '30' }, 'key-1')
    expect(again.status).toBe(202)
  })

  it('on one payment or refund does not stop others', async () => {
    const held = await requestRefund()
    const other = await requestRefund()
    await hold(held.paths.payment)
    await lab.pass(other.payment)
    await waitForSent(lab, other.id)
    const payment = await lab.open()
    const [first, second] = [await lab.ask(payment, '30'), await lab.ask(payment, '20')]
    await hold(`refund/${first}`)
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
        await expectProblem(await operator.hold(`${target}/${id}`), 404, `${target}_not_found`)
      }
    }
    await expectInvalid(await operator.hold('transaction/T-1'), 'target')
  })

  it('released twice at once is released once', async () => {
    const { paths } = await requestRefund()
    await hold(paths.refund)
    const answers = await atOnce(
      lab.database,
      (held) =>
        held`select from merchant_accounts where merchant_code = ${merchantCode} for update`,
      [1, 2].map(() => () => operator.release(paths.refund)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  })
})
