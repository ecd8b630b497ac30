import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import { writeSeen } from '../../../src/db/processes.ts'
import { followClock } from '../../../src/maintenance/housekeeping.ts'
import type { Sql } from '../../../src/platform/postgres/types.ts'
import { expectRefused } from '../../support/ask.ts'
import { beginPass } from '../../support/begin-pass.ts'
import { ageOmission, makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { usePerson } from '../../support/people.ts'
import { CONFIRM_MS, type LabPayment, makeDue, RESEND_MS } from '../../support/refund-lab.ts'
import { MERCHANT, startTestService } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'
import { passSending } from '../pass-sending.ts'

const lab = useFreshLab()
const operator = usePerson(lab)

const HOUR_MS = 3_600_000

/** As if the database's clock had gone back by an hour since the newest answer: what is asked next is dated after that. */
const setClockBack = ({ transactionId }: LabPayment) => lab.database.sql`
  update transactions set as_of = coalesce(as_of, now()) + interval '1 hour'
  where transaction_id = ${transactionId}`

/** As if it had gone back by an hour since an event of each refund. */
const dateAhead = (event: string) => lab.database.sql`
  update refunds set ${lab.database.sql(event)} = ${lab.database.sql(event)} + interval '1 hour'`

/** Syncs and, while the gateway's answer is under way and the database's clock is an hour behind it, runs `event`. */
async function passDuring(payment: LabPayment, event: () => Promise<unknown>): Promise<void> {
  await setClockBack(payment)
  const pass = await beginPass(lab, payment, 'QUERY_PT')
  await event()
  await pass.finish()
}

/** One answer has shown no growth since the failure: the next one, apart, confirms it. */
async function expectConfirmedNext(payment: LabPayment, refundId: string): Promise<void> {
  await lab.age(refundId, CONFIRM_MS)
  await lab.pass(payment)
  expect((await lab.row(refundId)).noGrowthSince).not.toBeNull()
  expect(await lab.status(refundId)).not.toBe('failed')
  await lab.age(refundId, CONFIRM_MS)
  await lab.pass(payment)
  expect(await lab.status(refundId)).toBe('failed')
}

describe("an answer that was asked for before the database's clock went back does not speak about what came meanwhile:", () => {
  it('a requested refund is not sent on it', async () => {
    const payment = await lab.open()
    let refundId = ''
    await passDuring(payment, async () => {
      refundId = await lab.ask(payment, '30')
    })
    expect(await lab.sent(refundId)).toBe(0)
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
  })

  it('a notified failure is not confirmed by it', async () => {
    const { payment, refundId } = await lab.openSent()
    await passDuring(payment, () => lab.notify(payment, refundId, '30', { code: 31 }))
    expect(await lab.row(refundId)).toMatchObject({ failureCode: '31', noGrowthSince: null })
    await expectConfirmedNext(payment, refundId)
  })

  it('a refusal that is recorded late is not confirmed by it', async () => {
    const { payment, refundId } = await lab.openAsked()
    await lab.fault('code', { code: 31 })
    const sending = await beginPass(lab, payment, 'REFUND')
    await setClockBack(payment)
    const pass = await beginPass(lab, payment, 'QUERY_PT')
    await sending.finish()
    await pass.finish()
    expect(await lab.row(refundId)).toMatchObject({ refusedCode: '31', noGrowthSince: null })
    await expectConfirmedNext(payment, refundId)
  })

  it('a refund at the portal is not part of what it shows of a new payment', async () => {
    const { sql } = lab.database
    const payment = { id: `P-${crypto.randomUUID()}`, transactionId: `T-${crypto.randomUUID()}` }
    const { id, transactionId } = payment
    const payments = [{ id, amount: '100', paymentMethod: 'CC', status: 'SUCCESS' }]
    await lab.control('POST', '/transactions', { transactionId, payments, ipn: false })
    await lab.show(payment, '10')
    await sql`
      insert into transactions (merchant_code, transaction_id) values (${MERCHANT.merchantCode}, ${transactionId})`
    await passDuring(payment, () => lab.notify(payment, 'portal-1', '10'))
    expect(await lab.left(payment)).toBe('80')
  })

  it('a refund at the portal is later than the first answer, also where another transaction has it', async () => {
    const payment = await lab.open()
    await lab.database.sql`
      update payments set refunded_at_first = 10, refunded_amount = 10,
        first_as_of = first_as_of + interval '1 hour'`
    await lab.show(payment, '10')
    await lab.passNotified(payment, 'portal-1', '10')
    expect(await lab.left(payment)).toBe('80')
  })
})

describe('a refund that was first sent by a clock that was an hour ahead is not sent again', () => {
  const dateSentAhead = async () => {
    for (const event of ['first_sent_at', 'last_sent_at']) await dateAhead(event)
  }
  async function noticeClock() {
    const { ctx } = lab.service
    await writeSeen(ctx)
    await lab.database.sql`update processes set seen_at = seen_at + interval '1 hour'`
    await followClock(ctx)
  }

  it('once the clock has caught up', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await dateSentAhead()
    await noticeClock()
    await lab.age(refundId, HOUR_MS + RESEND_MS)
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'unknown', { sent: 1 })
  })

  it('also where it was dated before now when the clock went back', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await dateSentAhead()
    await lab.age(refundId, HOUR_MS + HOUR_MS / 2)
    await noticeClock()
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'unknown', { sent: 1 })
  })

  it('also where no process was seen while the clock was ahead', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await dateSentAhead()
    await followClock(lab.service.ctx)
    await lab.age(refundId, HOUR_MS + RESEND_MS)
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'unknown', { sent: 1 })
  })

  it('also where every process was stopped, and one that starts notices it', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    const { sql } = lab.database
    await dateSentAhead()
    await lab.age(refundId, HOUR_MS + HOUR_MS / 2)
    await sql`delete from processes`
    await sql`update installation set seen_at = seen_at + interval '1 hour'`
    const started = await startTestService(lab.database, lab.sandbox.url, {
      settings: { ROLE: 'web' },
    })
    await started.stop()
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'unknown', { sent: 1 })
  })

  it('also where that is noticed during another attempt, which is not written', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await lab.age(refundId, RESEND_MS)
    await makeDue(lab, payment)
    await passSending(lab, payment, async () => {
      expect((await lab.row(refundId)).attempts).toBe(2)
      await noticeClock()
      return { kind: 'unavailable', reason: 'no connection' }
    })
    await lab.expectRefund(refundId, 'unknown', { sent: 1, attempts: 1 })
    await lab.age(refundId, RESEND_MS)
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'unknown', { sent: 1 })
  })

  it('also where that is noticed during another attempt, whose record is lost', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    const { sql } = lab.database
    await lab.age(refundId, RESEND_MS)
    await makeDue(lab, payment)
    await passSending(lab, payment, async () => {
      await sql`
        delete from refund_attempts where id = (
          select max(id) from refund_attempts where refund_id = ${refundId})`
      await sql`
        update refunds set status = 'unknown', attempts = 1, last_sent_at = first_sent_at
        where refund_id = ${refundId}`
      await noticeClock()
      return { kind: 'unknown', reason: 'reset' }
    })
    await lab.expectRefund(refundId, 'unknown', { sent: 1, attempts: 2 })
    await lab.age(refundId, RESEND_MS)
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'unknown', { sent: 1 })
  })
})

describe('a refund that was sent by a clock that was an hour ahead', () => {
  const sendAhead = async () => {
    const { refundId } = await lab.openSent('reset')
    for (const event of ['first_sent_at', 'last_sent_at', 'updated_at', 'due_at']) {
      await dateAhead(event)
    }
    await lab.database.sql`update transactions set due_at = due_at + interval '1 hour'`
    return refundId
  }
  /** As if so much time passed by the clock that went back. */
  const passBy = (time: string) => lab.database.sql`
    update refunds set last_sent_at = last_sent_at - ${time}::interval,
      updated_at = updated_at - ${time}::interval`
  const refuse = async (refundId: string) => {
    const refused = await operator.decide(refundId, 'failed')
    return (await expectRefused(refused, 409, 'not_decidable')).detail
  }

  it('is queried at once', async () => {
    await sendAhead()
    await followClock(lab.service.ctx)
    const due = await lab.database.sql`
      select from refunds join transactions as t using (merchant_code, transaction_id)
      where refunds.due_at <= now() and t.due_at <= now() + interval '2 s'`
    expect(due).toHaveLength(1)
  })

  it('is locked after its transaction, like anywhere else', async () => {
    const refundId = await sendAhead()
    const hold = (tx: Sql) => tx`select from transactions for update`
    await whileUncommitted(lab.database, hold, async (commit) => {
      const following = followClock(lab.service.ctx)
      await waitUntilBlocked(lab.database)
      const free = await lab.database.sql`
        select from refunds where refund_id = ${refundId} for update skip locked`
      expect(free).toHaveLength(1)
      await commit()
      await following
    })
  })

  it('waits for a person no longer than usual', async () => {
    expect(await refuse(await sendAhead())).toContain('it can be decided in 600 s')
  })

  it('is decided by a person the usual time after that is noticed', async () => {
    const refundId = await sendAhead()
    await followClock(lab.service.ctx)
    await passBy('9 min')
    expect(await refuse(refundId)).toMatch(/it can be decided in \d\d s/)
    await passBy('1 min')
    expect((await operator.decide(refundId, 'failed')).status).toBe(200)
  })
})

it('a refund may be sent again that the clock of a query of tables would date ahead', async () => {
  const { refundId } = await lab.openSent('reset')
  const { ctx } = lab.service
  await lab.database.sql`create schema behind`
  const { sql, close } = openDatabase(lab.database.url, 1)
  try {
    await sql`
      create function behind.now() returns timestamptz language sql as
        $$ select pg_catalog.now() - interval '1 hour' $$`
    await sql`set search_path = behind, pg_catalog, public`
    await writeSeen(ctx)
    await followClock({ ...ctx, db: { ...ctx.db, sql } })
    expect((await lab.row(refundId)).sinceFirstSentMs).toBeLessThan(HOUR_MS)
  } finally {
    await close()
    await lab.database.sql`drop schema behind cascade`
  }
})

describe("the next answer speaks about what came before, although the database's clock has gone back since:", () => {
  it('a requested refund is sent on it', async () => {
    const { payment, refundId } = await lab.openAsked()
    await dateAhead('requested_at')
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
  })

  it('growth shows a refund that was sent', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await dateAhead('first_sent_at')
    await lab.passShowing(payment, '30')
    await lab.expectRefund(refundId, 'succeeded', { inferred: true })
  })

  it('growth shows a refund whose attempt is recorded again, as its record was lost with later requests', async () => {
    const { payment, refundId } = await lab.openAsked()
    const { sql } = lab.database
    await sql`update transactions set want = want + 50`
    await passSending(lab, payment, async () => {
      await sql`update transactions set want = 2, claimed = 2`
      await lab.loseAttempt(refundId)
      return { kind: 'unknown', reason: 'reset' }
    })
    await lab.passShowing(payment, '30')
    await lab.expectRefund(refundId, 'succeeded', { inferred: true })
  })

  it('growth shows a refund whose payment has moved from a transaction that was asked about more often', async () => {
    const gateway = await startListingGateway(lab)
    gateway.list(makeEntry('p1', { amount: 100 }))
    await gateway.sync('T-OLD')
    const { body } = await lab.refund('p1', { amount: '30' })
    await lab.database.sql`update transactions set want = want + 50`
    gateway.answer('REFUND', '{}')
    await gateway.sync('T-OLD')
    gateway.list()
    await gateway.sync('T-OLD')
    await ageOmission(lab, 'p1')
    await gateway.sync('T-OLD')
    expect(await lab.status(body.id)).toBe('unknown')
    gateway.list(makeEntry('p1', { amount: 100, refundedAmount: 30 }))
    await gateway.sync('T-NEW')
    expect(await lab.row(body.id)).toMatchObject({ status: 'succeeded', inferred: true })
  })

  it('no growth after a refusal begins to confirm it', async () => {
    const { payment, refundId } = await lab.openSent('code', { code: 31 })
    await dateAhead('refused_at')
    await lab.pass(payment)
    expect((await lab.row(refundId)).noGrowthSince).not.toBeNull()
  })

  it('no growth after a notified failure begins to confirm it', async () => {
    const { payment, refundId } = await lab.openSent()
    await lab.passNotified(payment, refundId, '30', { code: 31 })
    await dateAhead('failure_notified_at')
    await lab.database.sql`update refunds set no_growth_since = null`
    await lab.pass(payment)
    expect((await lab.row(refundId)).noGrowthSince).not.toBeNull()
  })
})
