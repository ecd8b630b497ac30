import { describe, expect, it } from 'vitest'
import { expectProblem } from '../../support/api.ts'
import { addPrincipal } from '../../support/approvals.ts'
import { expectTaken } from '../../support/ask.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { askSurplus, payOrder, pick, TWICE } from '../../support/orders.ts'
import {
  AGAINST,
  act,
  done,
  type Person,
  usePerson,
  whileAlone,
  whileOnly,
} from '../../support/people.ts'
import { CONFIRM_MS, type LabPayment } from '../../support/refund-lab.ts'
import { MERCHANT } from '../../support/service.ts'
import { notifyOf } from '../../support/sync.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const { merchantCode } = MERCHANT
const [asker, other, third] = [usePerson(lab), usePerson(lab), usePerson(lab)]

const addPerson = async (more: Parameters<typeof addPrincipal>[1]) =>
  act(lab, await addPrincipal(lab.database, more))

/** A refund of 60 out of 100 that waits, because the payment grew by 70 that nothing explains. */
async function makeGrown(more: object = {}, by: Pick<Person, 'ask'> = asker) {
  const payment = await lab.open()
  const id = await by.ask(payment, '60', more)
  await lab.passShowing(payment, '70')
  return { payment, id }
}

/** A refund of 60 out of 100 that waits, and a refund of 10 that was made elsewhere and that nothing shows. */
async function makeExternal() {
  const payment = await lab.open()
  const id = await asker.ask(payment, '60')
  await lab.passNotified(payment, 'portal-1', '10')
  const [one] = await lab.external(payment)
  return { payment, id, external: one?.id ?? '' }
}

const readMarked = async (id: string) => (await lab.readRefund(id)).selfDecided

/** The refund says that it was decided by whoever asked for it: itself, its event and the timeline. */
async function expectMarked(id: string, payment: LabPayment) {
  expect(await readMarked(id)).toBe(true)
  expect(await lab.lastEvent(id)).toMatchObject({
    ...{ type: 'refund.updated', data: { selfDecided: true } },
  })
  const causes = (await lab.timeline(payment)).map(({ cause }) => cause)
  expect(causes).toContainEqual(
    expect.stringContaining(`key ${asker.name}, which also requested refund ${id}: ticket 4711`),
  )
}

const expectSame = async (response: Response, deed: string) => {
  const problem = await expectProblem(response, 403, 'same_person')
  expect(problem.detail).toContain(`another person with the scope ops has to ${deed}`)
}

describe('whoever asked for a refund does not end what holds it back: a discrepancy of its payment', () => {
  it('is resolved by another principal, and not by the key that asked or one that replaced it', async () => {
    const { payment, id } = await makeGrown()
    for (const one of [asker, await addPerson({ rotates: asker })]) {
      await expectSame(await one.enterGrowth(payment), 'resolve discrepancy')
    }
    const nothing = await lab.database.sql`select from external_refunds`
    expect(nothing).toHaveLength(0)
    expect(await lab.status(id)).toBe('pending')
    await done(other.enterGrowth(payment))
    await lab.pass(payment)
    expect(await readMarked(id)).toBe(false)
  })

  it('is not resolved by the person that it was asked for, or with another key of that person', async () => {
    const boss = await addPerson({ person: 'Bà Đoàn' })
    const named = await makeGrown({ onBehalfOf: 'BÀ  ĐOÀN' })
    await expectSame(await boss.enterGrowth(named.payment), 'resolve discrepancy')
    const second = await addPerson({ person: ' Bà Đoàn' })
    const asked = await makeGrown({}, boss)
    await expectSame(await second.enterGrowth(asked.payment), 'resolve discrepancy')
  })

  it('is resolved by them once the refund has ended', async () => {
    const { payment, id } = await makeGrown()
    await lab.database.sql`
      update refunds set status = 'failed', due_at = null, failure_source = 'merchant',
        failure_reason = 'cancelled', failure_message = 'x' where refund_id = ${id}`
    await done(asker.enterGrowth(payment))
    expect(await readMarked(id)).toBe(false)
  })

  it('that is about the refund alone is not resolved by them either', async () => {
    const payment = await lab.open()
    const id = await asker.ask(payment, '60')
    const [row] = await lab.database.sql`
      insert into discrepancies (merchant_code, transaction_id, refund_id, kind, ours, theirs)
      values (${merchantCode}, ${payment.transactionId}, ${id}, 'notification_mismatch', 'amount 1', 'amount 2')
      returning id`
    const path = `discrepancies/${row?.id}/resolution`
    await expectSame(await asker.post(path), 'resolve discrepancy')
    await done(other.post(path))
  })

  it('is resolved by them, and marked, when nobody else may decide', async () => {
    const { payment, id } = await makeGrown()
    await addPrincipal(lab.database, { rotates: asker })
    await addPrincipal(lab.database, { scopes: '{refunds:approve,refunds:write}' })
    await addPrincipal(lab.database, { merchantCode: 'OTHER1' })
    await lab.database.sql`
      update actors set ended_at = now() where 'ops' = any(scopes)
        and 'OTHER1' <> all(merchants) and id <> ${asker.id} and replaces is distinct from ${asker.id}`
    await done(asker.enterGrowth(payment))
    await lab.database.sql`update actors set ended_at = null`
    await expectMarked(id, payment)
  })

  it('does not keep them from a note or from taking care of it', async () => {
    await makeGrown()
    const [found] = await lab.database.sql`select id from discrepancies`
    const post = (step: string, body: object) =>
      lab.post(`/discrepancies/${found?.id}/${step}`, body, asker.key)
    await done(post('note', { text: 'asked them' }))
    await done(post('assignee', { name: 'Linh' }))
  })

  it('is not resolved by them in the moment in which they ask', async () => {
    const payment = await lab.open()
    await lab.passShowing(payment, '70')
    const [asked, resolved] = await whileUncommitted(
      lab.database,
      (held) => held`
        select from transactions where transaction_id = ${payment.transactionId} for update`,
      async (commit) => {
        const first = asker.ask(payment, '20')
        await waitUntilBlocked(lab.database, 1)
        const second = asker.enterGrowth(payment)
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
    const { id, external } = await makeExternal()
    const same = await asker.decideExternal(external, 'never_happened')
    await expectSame(same, 'decide external refund')
    const [before] = await lab.database.sql`select outcome, resolution from external_refunds`
    expect(before).toEqual({ outcome: null, resolution: null })
    await done(other.decideExternal(external, 'never_happened'))
    expect(await readMarked(id)).toBe(false)
  })

  it('is decided by them, and marked, when nobody else may decide', async () => {
    const { payment, id, external } = await makeExternal()
    await whileAlone(lab, asker, () => done(asker.decideExternal(external, 'never_happened')))
    await expectMarked(id, payment)
  })

  it('is decided by them, and marked, when whoever else may decide waits for it too', async () => {
    const { payment, id, external } = await makeExternal()
    const beside = await other.ask(payment, '20')
    const decide = () => done(asker.decideExternal(external, 'never_happened'))
    await whileOnly(lab, [asker, other], decide)
    await expectMarked(id, payment)
    expect(await readMarked(beside)).toBe(false)
  })
})

describe('whoever asked for a refund does not end what holds it back: another refund of its payment', () => {
  /** A refund of 60 out of 100 that waits, because growth that another one of 30 was inferred from may be its own. */
  async function makeInferred() {
    const { payment, refundId } = await lab.openInferred()
    await lab.passShowing(payment, '30')
    const id = await asker.ask(payment, '30')
    await lab.pass(payment)
    expect(await lab.status(id)).toBe('pending')
    return { payment, refundId, id }
  }

  it.each(['succeeded', 'failed', 'returned'])('is not decided as %s by them', async (outcome) => {
    const { payment, refundId, id } = await makeInferred()
    const same = await asker.decide(refundId, outcome, AGAINST)
    await expectSame(same, `decide about refund ${refundId}`)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
    await done(other.decide(refundId, outcome, AGAINST))
    expect([await readMarked(id), await readMarked(refundId)]).toEqual([false, false])
  })

  it('is decided by them, and marked, when nobody else may decide', async () => {
    const { payment, refundId, id } = await makeInferred()
    await whileAlone(lab, asker, () => done(asker.decide(refundId, 'succeeded')))
    await expectMarked(id, payment)
    expect(await readMarked(refundId)).toBe(false)
  })

  it('is decided by them, and marked, when the only other one who may decide asked for it', async () => {
    const { payment, refundId, id } = await makeInferred()
    await lab.database.sql`
      update refunds set requested_principal = (select principal from actors where id = ${other.id})
      where refund_id = ${refundId}`
    await whileOnly(lab, [asker, other], () => done(asker.decide(refundId, 'succeeded')))
    await expectMarked(id, payment)
  })

  it('is decided by them, and marked, when the only other one who may decide gave the first word on it', async () => {
    const { payment, refundId, id } = await makeInferred()
    await done(third.decide(refundId, 'returned', AGAINST))
    await whileOnly(lab, [asker, third], () => done(asker.decide(refundId, 'returned')))
    await expectMarked(id, payment)
  })

  it('is decided by them once their own has ended', async () => {
    const { refundId, id } = await makeInferred()
    await lab.database.sql`
      update refunds set status = 'failed', due_at = null, failure_source = 'merchant',
        failure_reason = 'cancelled', failure_message = 'x' where refund_id = ${id}`
    await done(asker.decide(refundId, 'succeeded'))
  })
})

const readVersion = (transactionId: string) => lab.database.sql`
  select version from transactions where transaction_id = ${transactionId}`

/** A surplus refund that waits, because what was made elsewhere of another payment of the order is contradicted. */
async function makeSurplus(isOneTransaction: boolean) {
  const first = await payOrder(lab, 'DH1', isOneTransaction ? TWICE : [{}])
  const second = isOneTransaction ? first : await payOrder(lab, 'DH1')
  const asked = await askSurplus(lab, second.transactionId, {}, { key: asker.key })
  const { id } = await expectTaken(asked)
  const { paymentId } = await lab.readRefund(id)
  const payments = [pick(first), pick(second, isOneTransaction ? 1 : 0)]
  const payment = payments.find((one) => one.id !== paymentId) ?? expect.fail('no such payment')
  await lab.notify(payment, 'portal-1', '30')
  await lab.passNotified(payment, 'portal-1', '30', { code: 1 })
  await lab.passShowing(payment, '30')
  expect(await lab.status(id)).toBe('pending')
  const [one] = await lab.external(payment)
  const [told] = await lab.database.sql`
    select id::text from discrepancies where kind = 'external_refund_contradicted'`
  const { transactionId } = second
  return { payment, id, transactionId, external: one?.id ?? '', discrepancy: told?.id }
}

/** A surplus refund, and a refund of 30 of another payment of its order, whose success was only inferred. */
async function makeSurplusBeside() {
  const first = pick(await payOrder(lab, 'DH1'))
  const { transactionId } = await payOrder(lab, 'DH1')
  const beside = await other.ask(first, '30')
  await lab.pass(first)
  await lab.passShowing(first, '30')
  await lab.expectRefund(beside, 'succeeded', { inferred: true })
  const asked = await askSurplus(lab, transactionId, {}, { key: asker.key })
  return { ...(await expectTaken(asked)), payment: first, transactionId, beside }
}

describe('whoever asked for a surplus refund does not end what holds it back', () => {
  it('by deciding a refund of another payment of the order', async () => {
    const { id, beside } = await makeSurplusBeside()
    await expectSame(await asker.decide(beside, 'failed', AGAINST), 'decide about refund')
    await done(third.decide(beside, 'failed', AGAINST))
    expect(await readMarked(id)).toBe(false)
  })

  it('by deciding such a refund, and is marked when nobody else may decide', async () => {
    const { id, payment, transactionId, beside } = await makeSurplusBeside()
    const before = await readVersion(transactionId)
    await whileAlone(lab, asker, () => done(asker.decide(beside, 'succeeded')))
    expect(await readVersion(transactionId)).not.toEqual(before)
    await expectMarked(id, payment)
  })

  it.each([
    ['the same transaction', true],
    ['another transaction of the order', false],
  ])('in another payment of %s', async (_, isOneTransaction) => {
    const { id, external, discrepancy } = await makeSurplus(isOneTransaction)
    const path = `discrepancies/${discrepancy}/resolution`
    const match = (who: Person) => who.decideExternal(external, 'matched', AGAINST)
    await expectSame(await asker.post(path), 'resolve discrepancy')
    await expectSame(await match(asker), 'decide external refund')
    await done(other.post(path))
    await done(match(other))
    expect(await readMarked(id)).toBe(false)
  })

  it('and is marked when nobody else may decide', async () => {
    const { payment, id, transactionId, external } = await makeSurplus(false)
    const before = await readVersion(transactionId)
    await whileAlone(lab, asker, () => done(asker.decideExternal(external, 'matched', AGAINST)))
    expect(await readVersion(transactionId)).not.toEqual(before)
    await expectMarked(id, payment)
  })

  it('but decides what another transaction has that does not count with its own, as its order id is disputed', async () => {
    const { payment, id, external } = await makeSurplus(false)
    await notifyOf(lab, payment.transactionId, {
      ...{ svc_OrderID: 'DH8', svc_Currency: 'VND', svc_Amount: 100, svc_ResponseCode: 0 },
    })
    await done(asker.decideExternal(external, 'matched', AGAINST))
    expect(await readMarked(id)).toBe(false)
  })

  it('but releases a hold on another payment of the order, which does not', async () => {
    const { payment } = await makeSurplus(false)
    await done(other.hold(`payment/${payment.id}`))
    await done(asker.release(`payment/${payment.id}`))
  })
})

const TARGETS = ['merchant', 'payment', 'refund'] as const

describe.each(TARGETS)(
  'whoever asked for a refund does not end what holds it back: a hold on the %s',
  (target) => {
    const deed = `release the hold of ${target}`

    async function makeHeld(setter: Pick<Person, 'hold'>, second?: Pick<Person, 'ask'>) {
      const payment = await lab.open()
      const id = await asker.ask(payment, '60')
      await second?.ask(payment, '20')
      const ids = { merchant: merchantCode, payment: payment.id, refund: id }
      const path = `${target}/${ids[target]}`
      await done(setter.hold(path))
      return { payment, id, path }
    }

    it('that somebody else set is released by another principal', async () => {
      const { payment, id, path } = await makeHeld(other)
      await expectSame(await asker.release(path), deed)
      await lab.pass(payment)
      expect(await lab.sent(id)).toBe(0)
      await done(third.release(path))
      expect(await readMarked(id)).toBe(false)
    })

    it('that they set again themselves is still that of somebody else', async () => {
      const { path } = await makeHeld(other)
      await done(asker.hold(path, { reason: 'mine now' }))
      await expectSame(await asker.release(path), deed)
      await done(other.release(path))
      await done(asker.hold(path))
      await done(asker.release(path))
    })

    it('that they set themselves is released by them, also with the key that replaced theirs', async () => {
      const { path, id } = await makeHeld(asker)
      await done((await addPerson({ rotates: asker })).release(path))
      expect(await readMarked(id)).toBe(false)
    })

    it('that another key of the same name set is somebody else’s', async () => {
      const { path } = await makeHeld(await addPerson({ name: asker.name }))
      await expectSame(await asker.release(path), deed)
    })

    it('that is on record nowhere is somebody else’s', async () => {
      const { path } = await makeHeld(asker)
      await lab.database.sql`delete from hold_changes`
      await expectSame(await asker.release(path), deed)
    })

    it('that somebody else set is released by them, and marked, when nobody else may decide', async () => {
      const { payment, id, path } = await makeHeld(other)
      await whileAlone(lab, asker, () => done(asker.release(path)))
      await expectMarked(id, payment)
    })

    it('that somebody else set who asked for a refund of the payment, too, is not released by them', async () => {
      const { path } = await makeHeld(other, other)
      await whileOnly(lab, [asker, other], async () => expectSame(await asker.release(path), deed))
    })

    it('is released by whoever asked for no refund that it holds', async () => {
      const { path } = await makeHeld(other)
      await done(third.release(path))
    })
  },
)

describe('once their refund is over, whoever asked for it does not release the hold that another has set', () => {
  async function makeHeld(target: string) {
    const payment = await lab.open()
    const id = await asker.ask(payment, '30')
    const path = target === 'payment' ? `payment/${payment.id}` : `merchant/${merchantCode}`
    const expectKept = async () => expectSame(await asker.release(path), `release the hold`)
    return { payment, id, path, expectKept }
  }

  it.each(['payment', 'merchant'])('on the %s, by its cancellation', async (target) => {
    const { id, path, expectKept } = await makeHeld(target)
    await done(other.hold(path))
    await expectKept()
    await done(asker.cancel(id))
    await expectKept()
    await lab.database.sql`update hold_changes set at = at - interval '1 hour'`
    await lab.database.sql`
      update refunds set updated_at = updated_at - interval '59 min' where refund_id = ${id}`
    await done(asker.hold(path))
    await expectKept()
    await done(other.release(path))
  })

  it('on the payment, by a cancellation that had begun before and waited for it', async () => {
    const { id, path, expectKept } = await makeHeld('payment')
    await done(other.hold(path))
    await done(asker.cancel(id))
    await lab.database.sql`
      update refunds set updated_at = updated_at - interval '10 s' where refund_id = ${id}`
    await expectKept()
  })

  it('on the payment, by its time', async () => {
    const { payment, id, path, expectKept } = await makeHeld('payment')
    await done(other.hold(path))
    await lab.ageRequest(id, 8 * 86_400_000)
    await lab.pass(payment)
    await lab.expectRefund(id, 'failed', { failureReason: 'not_sent_in_time' })
    await expectKept()
  })

  it.each(['payment', 'merchant'])('on the %s since it was sent, by a refusal', async (target) => {
    const { payment, id, path, expectKept } = await makeHeld(target)
    await lab.fault('code', { code: 31 })
    await lab.pass(payment)
    await done(other.hold(path))
    await lab.age(id, CONFIRM_MS)
    await lab.passTwice(payment, id)
    expect(await lab.status(id)).toBe('failed')
    await expectKept()
    await done(other.release(path))
  })
})
