import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Refund } from '../../../src/refunds/view.ts'
import { expectProblem, readPage, withKey } from '../../support/api.ts'
import { addPrincipal, type TestKey } from '../../support/approvals.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { askSurplus, type PaidOrder, payOrder } from '../../support/orders.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { MERCHANT } from '../../support/service.ts'
import { notifyOf } from '../../support/sync.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const { merchantCode } = MERCHANT

let asker: TestKey
let other: TestKey
beforeEach(async () => {
  asker = await addPrincipal(lab.database)
  other = await addPrincipal(lab.database)
})

/** Leaves the asker alone: no other live key, also none of the test's own, may decide for the merchant. */
const revokeOthers = () => lab.database.sql`
  update actors set ended_at = now()
  where ended_at is null and 'ops' = any(scopes) and id <> ${asker.id}`

function call(method: string, path: string, { key }: TestKey, body: object = {}) {
  return fetch(`${lab.service.url}/v1/${path}`, {
    method,
    ...withKey(key, { 'content-type': 'application/json' }),
    body: JSON.stringify({ reason: 'ticket 4711', ...body }),
  })
}

const read = (path: string) => fetch(`${lab.service.url}/v1/${path}`, withKey(asker.key))

async function request(payment: LabPayment, more: object = {}, { key }: TestKey = asker) {
  const body = { amount: '60', ...more }
  return (await expectTaken(await ask({ url: lab.service.url, key }, payment.id, body))).id
}

/** A refund of 60 out of 100 that waits, because the payment grew by 70 that nothing explains. */
async function makeGrown(more: object = {}, key?: TestKey) {
  const payment = await lab.open()
  const id = await request(payment, more, key)
  await lab.passShowing(payment, '70')
  const [row] = await lab.database.sql<{ id: string }[]>`
    select id::text from discrepancies where payment_id = ${payment.id} and kind = 'unexplained_growth'`
  return { payment, id, path: `discrepancies/${row?.id}/resolution` }
}

/** A refund of 60 out of 100 that waits, and a refund of 10 that was made elsewhere and that nothing shows. */
async function makeExternal() {
  const payment = await lab.open()
  const id = await request(payment)
  await lab.passNotified(payment, 'portal-1', '10')
  const response = await read(`payments/${payment.id}/external-refunds`)
  const Page = z.object({ data: z.array(z.object({ id: z.string() })) })
  const [one] = Page.parse(await response.json()).data
  return { payment, id, path: `external-refunds/${one?.id}/resolution` }
}

const NEVER = { outcome: 'never_happened' }

async function readCauses({ transactionId }: LabPayment): Promise<unknown[]> {
  const { data } = await readPage(await read(`transactions/${transactionId}/timeline`))
  return data.map(({ cause }) => cause)
}

const readMarked = async (id: string) =>
  Refund.parse(await (await read(`refunds/${id}`)).json()).selfDecided

const readEvents = (id: string) => lab.database.sql`
  select data ->> 'selfDecided' as marked from event_outbox
  where type = 'refund.updated' and data ->> 'id' = ${id} order by id desc limit 1`

const expectSame = async (response: Response, deed: string) => {
  const problem = await expectProblem(response, 403, 'same_person')
  expect(problem.detail).toContain(`another person with the scope ops has to ${deed}`)
}

describe('whoever asked for a refund does not end what holds it back: a discrepancy of its payment', () => {
  it('is resolved by another principal, and not by the key that asked or one that replaced it', async () => {
    const { payment, id, path } = await makeGrown()
    const rotated = await addPrincipal(lab.database, { rotates: asker })
    for (const key of [asker, rotated]) {
      await expectSame(await call('POST', path, key), 'resolve discrepancy')
    }
    const nothing = await lab.database.sql`select from external_refunds`
    expect(nothing).toHaveLength(0)
    expect(await lab.status(id)).toBe('pending')
    expect((await call('POST', path, other)).status).toBe(200)
    await lab.pass(payment)
    expect(await readMarked(id)).toBe(false)
  })

  it('is not resolved by the person that it was asked for, or with another key of that person', async () => {
    const boss = await addPrincipal(lab.database, { person: 'Bà Đoàn' })
    const named = await makeGrown({ onBehalfOf: 'BÀ  ĐOÀN' })
    await expectSame(await call('POST', named.path, boss), 'resolve discrepancy')
    const second = await addPrincipal(lab.database, { person: ' Bà Đoàn' })
    const asked = await makeGrown({}, boss)
    await expectSame(await call('POST', asked.path, second), 'resolve discrepancy')
  })

  it('is resolved by them once the refund has ended', async () => {
    const { id, path } = await makeGrown()
    await lab.database.sql`
      update refunds set status = 'failed', due_at = null, failure_source = 'merchant',
        failure_reason = 'cancelled', failure_message = 'x' where refund_id = ${id}`
    expect((await call('POST', path, asker)).status).toBe(200)
    expect(await readMarked(id)).toBe(false)
  })

  it('that is about the refund alone is not resolved by them either', async () => {
    const payment = await lab.open()
    const id = await request(payment)
    const [row] = await lab.database.sql`
      insert into discrepancies (merchant_code, transaction_id, refund_id, kind, ours, theirs)
      values (${merchantCode}, ${payment.transactionId}, ${id}, 'notification_mismatch', 'amount 1', 'amount 2')
      returning id`
    const path = `discrepancies/${row?.id}/resolution`
    await expectSame(await call('POST', path, asker), 'resolve discrepancy')
    expect((await call('POST', path, other)).status).toBe(200)
  })

  it('is resolved by them, and marked, when nobody else may decide', async () => {
    const { payment, id, path } = await makeGrown()
    await addPrincipal(lab.database, { rotates: asker })
    await addPrincipal(lab.database, { scopes: '{refunds:approve,refunds:write}' })
    await addPrincipal(lab.database, { merchantCode: 'OTHER1' })
    await lab.database.sql`
      update actors set ended_at = now() where 'ops' = any(scopes)
        and 'OTHER1' <> all(merchants) and id <> ${asker.id} and replaces is distinct from ${asker.id}`
    expect((await call('POST', path, asker)).status).toBe(200)
    expect(await readMarked(id)).toBe(true)
    expect(await readEvents(id)).toEqual([{ marked: 'true' }])
    expect(await readCauses(payment)).toContainEqual(
      expect.stringContaining(`key ${asker.name}, which also requested refund ${id}: ticket 4711`),
    )
  })

  it('does not keep them from a note or from taking care of it', async () => {
    const { path } = await makeGrown()
    const base = path.replace('/resolution', '')
    const post = (step: string, body: object) => lab.post(`/${base}/${step}`, body, asker.key)
    expect((await post('note', { text: 'asked them' })).status).toBe(200)
    expect((await post('assignee', { name: 'Linh' })).status).toBe(200)
  })

  it('is not resolved by them in the moment in which they ask', async () => {
    const payment = await lab.open()
    await lab.passShowing(payment, '70')
    const [row] = await lab.database.sql`select id from discrepancies`
    const path = `discrepancies/${row?.id}/resolution`
    const [asked, resolved] = await whileUncommitted(
      lab.database,
      (held) => held`
        select from transactions where transaction_id = ${payment.transactionId} for update`,
      async (commit) => {
        const first = request(payment, { amount: '20' })
        await waitUntilBlocked(lab.database, 1)
        const second = call('POST', path, asker)
        await waitUntilBlocked(lab.database, 2)
        await commit()
        return await Promise.all([first, second])
      },
    )
    await expectSame(resolved, 'resolve discrepancy')
    expect(await lab.status(asked)).toBe('pending')
  })
})

describe('whoever asked for a refund does not end what holds it back: an external refund of its payment', () => {
  it('is decided by another principal', async () => {
    const { id, path } = await makeExternal()
    await expectSame(await call('POST', path, asker, NEVER), 'decide external refund')
    const [before] = await lab.database.sql`select outcome, resolution from external_refunds`
    expect(before).toEqual({ outcome: null, resolution: null })
    expect((await call('POST', path, other, NEVER)).status).toBe(200)
    expect(await readMarked(id)).toBe(false)
  })

  it('is decided by them, and marked, when nobody else may decide', async () => {
    const { payment, id, path } = await makeExternal()
    await revokeOthers()
    expect((await call('POST', path, asker, NEVER)).status).toBe(200)
    expect(await readMarked(id)).toBe(true)
    expect(await readEvents(id)).toEqual([{ marked: 'true' }])
    expect(await readCauses(payment)).toContainEqual(
      expect.stringContaining(`key ${asker.name}, which also requested refund ${id}: ticket 4711`),
    )
  })
})

const TWICE = [{ amount: '100' }, { amount: '100' }]

const pick = ({ payments }: PaidOrder, place = 0): LabPayment =>
  payments[place] ?? expect.fail('no such payment')

/** A surplus refund that waits, because what was made elsewhere of another payment of the order is contradicted. */
async function makeSurplus(isOneTransaction: boolean) {
  const first = await payOrder(lab, 'DH1', isOneTransaction ? TWICE : [{}])
  const second = isOneTransaction ? first : await payOrder(lab, 'DH1')
  const asked = await askSurplus(lab, second.transactionId, {}, { key: asker.key })
  const { id } = await expectTaken(asked)
  const { paymentId } = Refund.parse(await (await read(`refunds/${id}`)).json())
  const payments = [pick(first), pick(second, isOneTransaction ? 1 : 0)]
  const payment = payments.find((one) => one.id !== paymentId) ?? expect.fail('no such payment')
  await lab.notify(payment, 'portal-1', '30')
  await lab.passNotified(payment, 'portal-1', '30', { code: 1 })
  await lab.passShowing(payment, '30')
  expect(await lab.status(id)).toBe('pending')
  const [row] = await lab.database.sql`select id from external_refunds`
  const [told] = await lab.database.sql`
    select id::text from discrepancies where kind = 'external_refund_contradicted'`
  const { transactionId } = second
  return { payment, id, transactionId, external: row?.id, discrepancy: told?.id }
}

describe('whoever asked for a surplus refund does not end what holds it back', () => {
  it.each([
    ['the same transaction', true],
    ['another transaction of the order', false],
  ])('in another payment of %s', async (_, isOneTransaction) => {
    const { id, external, discrepancy } = await makeSurplus(isOneTransaction)
    const resolve = (who: TestKey) => call('POST', `discrepancies/${discrepancy}/resolution`, who)
    const decide = (who: TestKey) =>
      call('POST', `external-refunds/${external}/resolution`, who, {
        ...{ outcome: 'matched', againstEvidence: true },
      })
    await expectSame(await resolve(asker), 'resolve discrepancy')
    await expectSame(await decide(asker), 'decide external refund')
    expect((await resolve(other)).status).toBe(200)
    expect((await decide(other)).status).toBe(200)
    expect(await readMarked(id)).toBe(false)
  })

  it('and is marked when nobody else may decide', async () => {
    const { payment, id, transactionId, external } = await makeSurplus(false)
    const readVersion = () => lab.database.sql`
      select version from transactions where transaction_id = ${transactionId}`
    const before = await readVersion()
    await revokeOthers()
    const body = { outcome: 'matched', againstEvidence: true }
    const { status } = await call('POST', `external-refunds/${external}/resolution`, asker, body)
    expect(status).toBe(200)
    expect(await readMarked(id)).toBe(true)
    expect(await readVersion()).not.toEqual(before)
    expect(await readEvents(id)).toEqual([{ marked: 'true' }])
    expect(await readCauses(payment)).toContainEqual(
      expect.stringContaining(`key ${asker.name}, which also requested refund ${id}: ticket 4711`),
    )
  })

  it('but decides what another transaction has that does not count with its own, as its order id is disputed', async () => {
    const { payment, id, external } = await makeSurplus(false)
    await notifyOf(lab, payment.transactionId, {
      ...{ svc_OrderID: 'DH8', svc_Currency: 'VND', svc_Amount: 100, svc_ResponseCode: 0 },
    })
    const body = { outcome: 'matched', againstEvidence: true }
    const { status } = await call('POST', `external-refunds/${external}/resolution`, asker, body)
    expect(status).toBe(200)
    expect(await readMarked(id)).toBe(false)
  })

  it('but releases a hold on another payment of the order, which does not', async () => {
    const { payment } = await makeSurplus(false)
    const path = `holds/payment/${payment.id}`
    expect((await call('PUT', path, other)).status).toBe(200)
    expect((await call('DELETE', path, asker)).status).toBe(200)
  })
})

const TARGETS = ['merchant', 'payment', 'refund'] as const

describe.each(TARGETS)(
  'whoever asked for a refund does not end what holds it back: a hold on the %s',
  (target) => {
    const pathOf = (payment: LabPayment, id: string) =>
      `holds/${target}/${{ merchant: merchantCode, payment: payment.id, refund: id }[target]}`

    async function makeHeld(setter?: TestKey) {
      const payment = await lab.open()
      const id = await request(payment)
      const path = pathOf(payment, id)
      if (setter) expect((await call('PUT', path, setter)).status).toBe(200)
      return { payment, id, path }
    }

    it('that somebody else set is released by another principal', async () => {
      const third = await addPrincipal(lab.database)
      const { payment, id, path } = await makeHeld(other)
      await expectSame(await call('DELETE', path, asker), `release the hold of ${target}`)
      await lab.pass(payment)
      expect(await lab.sent(id)).toBe(0)
      expect((await call('DELETE', path, third)).status).toBe(200)
      expect(await readMarked(id)).toBe(false)
    })

    it('that they set again themselves is still that of somebody else', async () => {
      const { path } = await makeHeld(other)
      expect((await call('PUT', path, asker, { reason: 'mine now' })).status).toBe(200)
      await expectSame(await call('DELETE', path, asker), `release the hold of ${target}`)
      expect((await call('DELETE', path, other)).status).toBe(200)
      expect((await call('PUT', path, asker)).status).toBe(200)
      expect((await call('DELETE', path, asker)).status).toBe(200)
    })

    it('that they set themselves is released by them, also with the key that replaced theirs', async () => {
      const { path, id } = await makeHeld(asker)
      const rotated = await addPrincipal(lab.database, { rotates: asker })
      expect((await call('DELETE', path, rotated)).status).toBe(200)
      expect(await readMarked(id)).toBe(false)
    })

    it('that another key of the same name set is somebody else’s', async () => {
      const namesake = await addPrincipal(lab.database, { name: asker.name })
      const { path } = await makeHeld(namesake)
      await expectSame(await call('DELETE', path, asker), `release the hold of ${target}`)
    })

    it('that is on record nowhere is somebody else’s', async () => {
      const { path } = await makeHeld(asker)
      await lab.database.sql`delete from hold_changes`
      await expectSame(await call('DELETE', path, asker), `release the hold of ${target}`)
    })

    it('that somebody else set is released by them, and marked, when nobody else may decide', async () => {
      const { payment, id, path } = await makeHeld(other)
      await revokeOthers()
      expect((await call('DELETE', path, asker)).status).toBe(200)
      expect(await readMarked(id)).toBe(true)
      expect(await readEvents(id)).toEqual([{ marked: 'true' }])
      expect(await readCauses(payment)).toContainEqual(
        expect.stringContaining(
          `key ${asker.name}, which also requested refund ${id}: ticket 4711`,
        ),
      )
    })

    it('is released by whoever asked for no refund that it holds', async () => {
      const third = await addPrincipal(lab.database)
      const { path } = await makeHeld(other)
      expect((await call('DELETE', path, third)).status).toBe(200)
    })
  },
)

it('whoever cancels a refund whose payment somebody else has held does not release that hold either', async () => {
  const payment = await lab.open()
  const id = await request(payment)
  const path = `holds/payment/${payment.id}`
  expect((await call('PUT', path, other)).status).toBe(200)
  expect((await call('POST', `refunds/${id}/cancellation`, asker)).status).toBe(200)
  expect((await call('DELETE', path, asker)).status).toBe(403)
  expect((await call('DELETE', path, other)).status).toBe(200)
})
