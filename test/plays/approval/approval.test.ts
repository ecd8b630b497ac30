import { describe, expect, it } from 'vitest'
import { decideRefund } from '../../../src/decisions/refunds.ts'
import { reconcileUnqueried } from '../../../src/maintenance/rechecks.ts'
import { findRefund } from '../../../src/refunds/find.ts'
import { Refund } from '../../../src/refunds/view.ts'
import { UNLIMITED } from '../../support/access.ts'
import { expectProblem } from '../../support/api.ts'
import { addPrincipal, openIn } from '../../support/approvals.ts'
import { ask, expectRefused, expectTaken, RECEIVER } from '../../support/ask.ts'
import { beginPass } from '../../support/begin-pass.ts'
import { atOnce, waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { act, done, usePerson } from '../../support/people.ts'
import { MERCHANT } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab({
  settings: { REFUND_APPROVAL_ABOVE: 'VND:50', REFUND_APPROVAL_WITHIN_MS: '3600000' },
})
const [asker, approver] = [usePerson(lab), usePerson(lab)]

/** A refund of 60 out of 100 that awaits approval. */
async function request(more: object = {}) {
  const payment = await openIn(lab, 'VND')
  return { payment, id: await asker.ask(payment, '60', more) }
}

describe('a refund above the threshold', () => {
  it('is reserved and not sent until another principal approves it', async () => {
    const { payment, id } = await request()
    expect((await lab.readRefund(id)).approval).toEqual({
      ...{ decision: null, by: null, reason: null, at: null },
    })
    await lab.pass(payment)
    await lab.expectRefund(id, 'awaiting_approval', { sent: 0, left: '40' })
    expect((await lab.transaction(payment.transactionId)).final).toBe(false)
    const approved = await done(approver.approve(id, { reason: 'checked' }), Refund)
    expect(approved).toMatchObject({
      status: 'pending',
      approval: { decision: 'approved', by: approver.name, reason: 'checked' },
    })
    await lab.pass(payment)
    await lab.expectRefund(id, 'accepted', { sent: 1 })
  })

  it('fails when another principal declines it, and frees its amount', async () => {
    const { payment, id } = await request()
    const declined = await done(approver.decline(id, { reason: 'no' }), Refund)
    expect(declined).toMatchObject({
      status: 'failed',
      failure: { source: 'merchant', code: 'declined', message: 'no' },
      approval: { decision: 'declined', by: approver.name, reason: 'no' },
    })
    expect(await lab.left(payment)).toBe('100')
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
    expect((await lab.transaction(payment.transactionId)).final).toBe(true)
  })

  it('is not decided by the key that asked for it, and nothing changes', async () => {
    const { id } = await request()
    await expectProblem(await asker.approve(id), 403, 'same_person')
    await expectProblem(await asker.decline(id), 403, 'same_person')
    expect(await lab.status(id)).toBe('awaiting_approval')
  })

  it.each([
    ['the principal', { person: 'Tran Thi B' }, 'person:tran thi b'],
    ['the key', { name: 'desk 4' }, 'Desk 4'],
    ['the key, in letters beyond ASCII', { name: 'Quầy Ấ' }, 'QUẦY ấ'],
  ])('is not decided by whoever it was asked for: %s', async (_, as, onBehalfOf) => {
    const named = act(lab, await addPrincipal(lab.database, as))
    const { id } = await request({ onBehalfOf })
    await expectProblem(await named.approve(id), 403, 'same_person')
    await done(approver.approve(id))
  })

  it('is decided once when two people decide at the same time', async () => {
    const { payment, id } = await request()
    const third = act(lab, await addPrincipal(lab.database))
    const answers = await atOnce(
      lab.database,
      (held) => held`select from payments where payment_id = ${payment.id} for update`,
      [() => approver.approve(id), () => third.decline(id)],
    )
    const [won, lost] = answers.toSorted((a, b) => a.status - b.status)
    if (!won || !lost) throw new Error('not two answers')
    const { approval } = Refund.parse(await won.json())
    const { detail } = await expectProblem(lost, 409, 'not_awaiting_approval')
    expect(detail).toContain(`${approval?.decision} with API key ${approval?.by}: ticket 4711`)
  })

  it('whose payment moves to another transaction meanwhile is to be decided again', async () => {
    const { payment, id } = await request()
    const response = await whileUncommitted(
      lab.database,
      async (held) => {
        await held`
          insert into transactions (merchant_code, transaction_id)
          values (${MERCHANT.merchantCode}, 'T-OTHER')`
        await held`
          select from transactions where transaction_id = ${payment.transactionId} for update`
        await held`update payments set transaction_id = 'T-OTHER' where payment_id = ${payment.id}`
        await held`update refunds set transaction_id = 'T-OTHER' where refund_id = ${id}`
      },
      async (commit) => {
        const decided = approver.approve(id)
        await waitUntilBlocked(lab.database)
        await commit()
        return await decided
      },
    )
    await expectProblem(response, 503, 'unavailable')
    await done(approver.approve(id))
  })

  it('with an empty reason is 422', async () => {
    const { id } = await request()
    await expectProblem(await approver.approve(id, { reason: '' }), 422, 'invalid_request')
  })

  it('fails when nobody decides in time, and is not approved after that', async () => {
    const { payment, id } = await request()
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(0)
    await lab.ageRequest(id, 3_600_000)
    await expectProblem(await approver.approve(id), 409, 'not_awaiting_approval')
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(1)
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(0)
    expect(await lab.readRefund(id)).toMatchObject({
      status: 'failed',
      failure: { source: 'service', code: 'approval_expired' },
    })
    expect(await lab.left(payment)).toBe('100')
    const late = await expectProblem(await approver.approve(id), 409, 'not_awaiting_approval')
    expect(late.detail).toContain('failed')
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
  })

  it('does not expire when a decision is committed first', async () => {
    const { payment, id } = await request()
    await lab.ageRequest(id, 3_600_000)
    await whileUncommitted(
      lab.database,
      (held) => held`
        with locked as (select from payments where payment_id = ${payment.id} for update)
        update refunds set status = 'failed', failure_source = 'merchant', failure_reason = 'declined',
          declined_at = now(), decided_by = 'b', folded_decided_by = 'b', decided_principal = 'person:b'
        where refund_id = ${id} and exists (select from locked)`,
      async (commit) => {
        const expiring = reconcileUnqueried(lab.service.ctx)
        await waitUntilBlocked(lab.database)
        await commit()
        await expiring
      },
    )
    expect((await lab.readRefund(id)).failure).toMatchObject({ code: 'declined' })
  })

  it('is checked against what is left when it is sent, not when it was approved', async () => {
    const { payment, id } = await request()
    await done(approver.approve(id))
    await lab.change(payment, { status: 'FAILED' })
    await lab.pass(payment)
    expect(await lab.readRefund(id)).toMatchObject({
      status: 'failed',
      failure: { source: 'service', code: 'payment_not_refundable' },
    })
    expect(await lab.sent(id)).toBe(0)
  })

  it('is sent on what a query shows that was sent after the approval, also by a clock that goes back', async () => {
    const { payment, id } = await request()
    await lab.database.sql`update transactions set as_of = as_of + interval '1 hour'`
    const pass = await beginPass(lab, payment, 'QUERY_PT')
    await done(approver.approve(id))
    await pass.finish()
    expect(await lab.sent(id)).toBe(0)
    await lab.database.sql`
      update refunds set requested_at = requested_at - interval '1 day',
        approved_at = approved_at + interval '1 day'`
    expect((await lab.row(id)).sinceRequestedMs).toBeLessThan(0)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
  })

  it.each([
    ['amount', 61],
    ['reason', 'x'],
    ['receiver', null],
  ])('is not sent when its %s is another than was approved', async (column, value) => {
    const { payment, id } = await request({ receiver: RECEIVER })
    await done(approver.approve(id))
    const { sql } = lab.database
    await sql`update refunds set ${sql({ [column]: value })} where refund_id = ${id}`
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
    expect(await lab.readRefund(id)).toMatchObject({
      status: 'failed',
      failure: { source: 'service', code: 'approval_mismatch' },
    })
  })
})

it('the threshold applies to all that is left, and a replay shows the same refund', async () => {
  const payment = await openIn(lab, 'VND')
  const asked = { url: lab.service.url, key: asker.key, idempotencyKey: 'all' }
  const refund = await expectTaken(await ask(asked, payment.id, { onBehalfOf: 'B' }))
  expect(refund).toMatchObject({ status: 'awaiting_approval', amount: '100', onBehalfOf: 'B' })
  const again = await expectTaken(await ask(asked, payment.id, { onBehalfOf: 'B' }), true)
  expect(again).toMatchObject({ id: refund.id, onBehalfOf: 'B' })
  const forAnother = await ask(asked, payment.id, { onBehalfOf: 'C' })
  await expectRefused(forAnother, 422, 'idempotency_key_reused')
  const refused = await ask({ url: lab.service.url, key: asker.key }, payment.id, { amount: '1' })
  await expectRefused(refused, 409, 'exceeds_refundable')
})

describe('past the routes, the database', () => {
  const REFUSED = [
    `status = 'pending', due_at = now()`,
    `status = 'sending', attempts = 1, due_at = now()`,
    `status = 'accepted', attempts = 1, due_at = now()`,
    `status = 'pending', due_at = now(), approved_at = now()`,
    `status = 'pending', due_at = now(), approved_at = now(), approved_fingerprint = 'x',
      decided_by = 'me', folded_decided_by = 'me', decided_principal = requested_principal`,
    `status = 'pending', due_at = now(), approved_at = now(), approved_fingerprint = 'x',
      decided_by = ' BOSS', folded_decided_by = 'boss', decided_principal = 'key:1'`,
    `status = 'pending', due_at = now(), approved_at = now(), approved_fingerprint = 'x',
      decided_by = 'other', folded_decided_by = 'other', decided_principal = 'person:boss'`,
    `decided_by = 'other', folded_decided_by = 'other', decided_principal = 'key:1', approved_at = now(), approved_fingerprint = 'x'`,
    `status = 'failed', failure_source = 'merchant', declined_at = now(), decided_by = 'me', folded_decided_by = 'me',
      decided_principal = requested_principal`,
  ]

  it('refuses to send or to end it without the approval of another', async () => {
    const { id } = await request({ onBehalfOf: 'Boss' })
    const { sql } = lab.database
    for (const assignments of REFUSED) {
      await expect(
        sql`update refunds set ${sql.unsafe(assignments)} where refund_id = ${id}`,
        assignments,
      ).rejects.toMatchObject({ code: '23514' })
    }
  })

  it('refuses a refund without the principal who requested it', async () => {
    const { id } = await request()
    await expect(
      lab.database.sql`update refunds set requested_principal = null where refund_id = ${id}`,
    ).rejects.toMatchObject({ code: '23502' })
  })

  it('is decided by no one whose principal is not the one that is stored', async () => {
    const { id } = await request()
    const rotated = await addPrincipal(lab.database, { rotates: asker })
    const found = await findRefund(lab.service.ctx, ['UFLIYL'], id)
    const access = {
      ...{ id: rotated.id, name: 'somebody else', scopes: [], coversAll: true, merchants: [] },
      ...{ ...UNLIMITED, requestId: 'r', required: new Set<never>() },
      ...{ chainId: rotated.id, principal: `key:${rotated.id}` },
    }
    const decided = decideRefund(lab.service.ctx, found, { decision: 'approve' }, access)
    await expect(decided).rejects.toMatchObject({ code: 'unauthenticated' })
    expect(await lab.status(id)).toBe('awaiting_approval')
  })
})

describe('while it awaits approval', () => {
  it('a notification of its id with another amount leaves it to a person', async () => {
    const { payment, id } = await request()
    await lab.passNotified(payment, id, '61')
    expect(await lab.status(id)).toBe('needs_review')
  })

  it('growth of its amount settles nothing, and is not sent over once it is approved', async () => {
    const { payment, id } = await request()
    await lab.passShowing(payment, '60')
    expect(await lab.status(id)).toBe('awaiting_approval')
    expect(await lab.disagreements(payment)).toContain('unexplained_growth')
    await done(approver.approve(id))
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
  })

  it('it does not block another refund of the payment', async () => {
    const { payment, id } = await request()
    const other = await asker.ask(payment, '40')
    await done(approver.approve(other))
    await lab.pass(payment)
    expect(await lab.status(id)).toBe('awaiting_approval')
    expect(await lab.sent(other)).toBe(1)
  })
})

it('every step is in the timeline, the feed and the audit log, with key, person and reason', async () => {
  const { payment, id } = await request({ reason: 'returned', onBehalfOf: 'Tran Thi B' })
  await done(approver.approve(id, { reason: 'checked' }))
  const steps = (await lab.timeline(payment)).filter((one) => one.refundId === id)
  expect(steps).toMatchObject([
    {
      before: null,
      after: 'awaiting_approval',
      cause: `requested with API key ${asker.name} on behalf of Tran Thi B: returned`,
    },
    {
      before: 'awaiting_approval',
      after: 'pending',
      cause: `approved with API key ${approver.name}: checked`,
    },
  ])
  const events = await lab.database.sql<{ type: string; data: unknown }[]>`
    select type, data from (select type, data, at from event_outbox union all select type, data, at from events) as e
    where type like 'refund.%' and data ->> 'id' = ${id} order by at`
  expect(events).toMatchObject([
    { type: 'refund.created', data: { requestedBy: asker.name, onBehalfOf: 'Tran Thi B' } },
    {
      type: 'refund.updated',
      data: { approval: { decision: 'approved', by: approver.name, reason: 'checked' } },
    },
  ])
  const audited = await lab.database.sql`
    select actor, outcome from audit_entries where object_id = ${id} and operation like '%approval'`
  expect(audited).toEqual([{ actor: approver.name, outcome: 'done' }])
})

describe('a decision about the outcome', () => {
  async function makeDoubtful(more: object = {}) {
    const payment = await openIn(lab, 'VND')
    const id = await asker.ask(payment, '10', more)
    await lab.passNotified(payment, id, '10', { code: 33 })
    expect(await lab.status(id)).toBe('needs_review')
    return id
  }

  it('is not made by whoever asked for the refund', async () => {
    const id = await makeDoubtful()
    await expectProblem(await asker.decide(id, 'failed'), 403, 'same_person')
    const rotated = act(lab, await addPrincipal(lab.database, { rotates: asker }))
    await expectProblem(await rotated.decide(id, 'failed'), 403, 'same_person')
    expect(await lab.status(id)).toBe('needs_review')
    const decided = await done(approver.decide(id, 'failed'), Refund)
    expect(decided.selfDecided).toBe(false)
  })

  it('is made by the only other who may decide, whom the asker named, and not by the asker', async () => {
    const boss = await addPrincipal(lab.database, { person: 'Bà Đoàn' })
    const id = await makeDoubtful({ onBehalfOf: 'Bà Đoàn' })
    await lab.database.sql`
      update actors set ended_at = now() where ended_at is null and id <> all(${[asker.id, boss.id]}::uuid[])`
    await expectProblem(await asker.decide(id, 'failed'), 403, 'same_person')
    const decided = await done(act(lab, boss).decide(id, 'failed'), Refund)
    expect(decided.selfDecided).toBe(true)
    await lab.database.sql`update actors set ended_at = null`
  })

  it('is, and is marked, when no other principal may decide for the merchant', async () => {
    const id = await makeDoubtful()
    await addPrincipal(lab.database, { rotates: asker })
    await addPrincipal(lab.database, { scopes: '{refunds:read,refunds:approve}' })
    await addPrincipal(lab.database, { merchantCode: 'OTHER' })
    await lab.database.sql`
      update actors set ended_at = now() where 'ops' = any(scopes) and name not in (
        select name from actors where id = ${asker.id} or replaces = ${asker.id} or 'OTHER' = any(merchants))`
    const decided = await done(asker.decide(id, 'failed'), Refund)
    await lab.database.sql`update actors set ended_at = null`
    expect(decided).toMatchObject({ status: 'failed', selfDecided: true })
    expect((await lab.proof(id)).evidence).toContain('which also requested it')
  })
})
