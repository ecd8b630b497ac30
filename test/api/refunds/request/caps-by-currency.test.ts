import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  addCappedKey,
  ask,
  expectRefused,
  expectTaken,
  seedCurrency,
  seedPaid,
} from '../../../support/ask.ts'
import { KEY } from '../../../support/service.ts'
import { useRig } from '../../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
let key: string
beforeEach(() => {
  key = randomUUID()
})

/** A payment of 2000 whose currency verified notifications name. */
async function seedIn(...currencies: string[]): Promise<string> {
  const { id, transactionId } = await seedPaid(rig.database, { amount: '2000' })
  for (const currency of currencies) await seedCurrency(rig.database, transactionId, currency)
  return id
}

const request = (paymentId: string, amount: string) =>
  ask({ url: rig.service.url, key }, paymentId, { amount })
const take = async (paymentId: string, amount: string) =>
  await expectTaken(await request(paymentId, amount))
const refuse = async (paymentId: string, amount: string) =>
  await expectRefused(await request(paymentId, amount), 403, 'refund_cap_exceeded')

describe('the largest single refund by currency', () => {
  it('is that of the verified currency', async () => {
    await addCappedKey(rig.database, key, { maxByCurrency: { VND: '500', USD: '20' } })
    const vnd = await seedIn('VND')
    await take(vnd, '500')
    expect((await refuse(vnd, '501')).detail).toBe('This key may refund at most 500 at once in VND')
    const usd = await seedIn('USD')
    await take(usd, '20')
    expect((await refuse(usd, '20.01')).detail).toContain('at most 20 at once in USD')
  })

  it('is the lowest of all without a verified currency, or with several', async () => {
    await addCappedKey(rig.database, key, { maxByCurrency: { VND: '500', USD: '20' } })
    for (const id of [await seedIn(), await seedIn('VND', 'USD')]) {
      await take(id, '20')
      expect((await refuse(id, '21')).detail).toContain('not verified')
    }
    const { id, transactionId } = await seedPaid(rig.database, { amount: '2000' })
    await seedCurrency(rig.database, transactionId, 'VND', { verdict: 'missing' })
    await refuse(id, '21')
  })

  it('allows nothing in a currency that it does not name, and holds beside a cap in any currency', async () => {
    await addCappedKey(rig.database, key, { max: '100', maxByCurrency: { VND: '500' } })
    await refuse(await seedIn('USD'), '1')
    const vnd = await seedIn('VND')
    await refuse(vnd, '101')
    await take(vnd, '100')
  })
})

describe('the daily total by currency', () => {
  it('counts each currency by itself', async () => {
    await addCappedKey(rig.database, key, { dailyMaxByCurrency: { VND: '500', USD: '20' } })
    const [vnd, usd] = [await seedIn('VND'), await seedIn('USD')]
    await take(vnd, '450')
    await take(usd, '15')
    expect((await refuse(vnd, '51')).leftToday).toBe('50')
    expect((await refuse(usd, '6')).leftToday).toBe('5')
    await take(vnd, '50')
    expect((await refuse(await seedIn('EUR'), '1')).leftToday).toBe('0')
  })

  it('counts an amount without a verified currency in every one', async () => {
    await addCappedKey(rig.database, key, { dailyMaxByCurrency: { VND: '500', USD: '20' } })
    const [vnd, unverified] = [await seedIn('VND'), await seedIn()]
    await take(unverified, '15')
    expect((await refuse(vnd, '486')).leftToday).toBe('485')
    await take(vnd, '485')
    expect((await refuse(unverified, '1')).leftToday).toBe('0')
  })
})

describe('the daily total of a key', () => {
  it('does not count a refund that was cancelled before it was sent', async () => {
    await addCappedKey(rig.database, key, {
      dailyMax: '600',
      dailyMaxByCurrency: { VND: '500', USD: '20' },
    })
    const [vnd, unverified] = [await seedIn('VND'), await seedIn()]
    const first = await take(vnd, '400')
    const second = await take(unverified, '20')
    await refuse(vnd, '400')
    for (const { id } of [first, second]) {
      const cancelled = await fetch(`${rig.service.url}/v1/refunds/${id}/cancellation`, {
        method: 'POST',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ reason: 'not wanted' }),
      })
      expect(cancelled.status).toBe(200)
    }
    await take(vnd, '500')
    expect((await refuse(vnd, '1')).leftToday).toBe('0')
  })

  it.each([
    ['declined', 'merchant', 'declined', 0, true],
    ['expired', 'service', 'not_sent_in_time', 0, true],
    ['failed before sending', 'service', 'exceeds_refundable', 0, true],
    ['decided as failed', 'service', 'resolved', 0, false],
    ['sent and refused', 'gateway', '31', 1, false],
    ['sent, whatever the reason', 'service', 'exceeds_refundable', 1, false],
    ['sent and decided as failed', 'service', 'resolved', 1, false],
  ])(
    'keeps what may have moved: a refund that was %s',
    async (_, source, reason, attempts, isFree) => {
      await addCappedKey(rig.database, key, { dailyMax: '500' })
      const [one, other] = [await seedIn(), await seedIn()]
      const { id } = await take(one, '500')
      await rig.database.sql`
      update refunds set status = 'failed', due_at = null, attempts = ${attempts}, failure_source = ${source},
        failure_reason = ${reason} where refund_id = ${id}`
      expect((await request(other, '500')).status).toBe(isFree ? 202 : 403)
    },
  )

  it('counts such a refund again once its success is known', async () => {
    await addCappedKey(rig.database, key, { dailyMax: '500' })
    const [one, other] = [await seedIn(), await seedIn()]
    const { id } = await take(one, '500')
    await rig.database
      .sql`update refunds set status = 'succeeded', due_at = null where refund_id = ${id}`
    await refuse(other, '1')
  })

  it('counts what this key has asked for on this day, and nothing else', async () => {
    await addCappedKey(rig.database, key, { dailyMax: '500' })
    const [one, other] = [await seedIn(), await seedIn()]
    const { id } = await take(one, '500')
    await refuse(other, '1')
    const { sql } = rig.database
    await sql`update refunds set cap_day = cap_day - 1 where refund_id = ${id}`
    const second = await take(other, '500')
    await refuse(one, '1')
    await sql`update refunds set cap_key_id = gen_random_uuid() where refund_id = ${second.id}`
    await take(one, '500')
  })
})
