import { describe, expect, it } from 'vitest'
import { Refund } from '../../../src/refunds/view.ts'
import { expectInvalid, expectProblem, NO_IDS } from '../../support/api.ts'
import { ask, expectRefused, expectTaken } from '../../support/ask.ts'
import { atOnce, waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import { CONFIRM_MS, type LabPayment, RESOLVE_MS } from '../../support/refund-lab.ts'
import { readItem } from '../../support/sync.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const operator = usePerson(lab)

type Outcome = 'succeeded' | 'failed' | 'returned'

const decide = (refundId: string, outcome: Outcome, more?: object) =>
  operator.decide(refundId, outcome, more)

async function expectDecided(decided: Promise<Response>, status: Outcome) {
  const refund = await done(decided, Refund)
  expect(refund.status).toBe(status)
  return refund
}

/** A refund of 30 out of 100 that the gateway accepted and then never mentioned. */
async function makeAccepted(ms = 0) {
  const { payment, refundId } = await lab.openSent()
  await lab.age(refundId, ms)
  return { payment, refundId }
}

async function makeUnknown(ms = 0) {
  const { payment, refundId } = await lab.openSent('reset')
  await lab.age(refundId, ms)
  return { payment, refundId }
}

describe('a person decides', () => {
  it('about a refund that stays accepted, only after REFUND_RESOLVE_FOR_MS', async () => {
    const { payment, refundId } = await makeAccepted(RESOLVE_MS - 60_000)
    const problem = await expectRefused(await decide(refundId, 'failed'), 409, 'not_decidable')
    expect(problem).toMatchObject({ state: 'accepted' })
    expect(problem.detail).toContain('it can be decided in')
    await lab.age(refundId, 60_000)
    await lab.pass(payment)
    await expectDecided(decide(refundId, 'failed'), 'failed')
    expect(await lab.left(payment)).toBe('100')
    const [open] = await lab.database.sql`
      select resolved_at is not null as resolved from discrepancies where kind = 'refund_without_end'`
    expect(open).toEqual({ resolved: true })
  })

  it('about a refund that stays unknown, only after REFUND_CONFIRM_FAILED_MS', async () => {
    const { payment, refundId } = await makeUnknown(CONFIRM_MS - 60_000)
    await expectRefused(await decide(refundId, 'succeeded'), 409, 'not_decidable')
    await lab.age(refundId, 60_000)
    await expectDecided(decide(refundId, 'succeeded'), 'succeeded')
    expect(await lab.left(payment)).toBe('70')
  })

  it('that a failed refund succeeded, only if it was sent', async () => {
    const payment = await lab.open()
    const unsent = await lab.ask(payment, '30')
    await lab.change(payment, { status: 'FAILED' })
    await lab.pass(payment)
    const refused = await expectRefused(await decide(unsent, 'succeeded'), 409, 'not_decidable')
    expect(refused.detail).toContain('nothing of it was sent')
    const { payment: other, refundId } = await makeUnknown(CONFIRM_MS)
    await expectDecided(decide(refundId, 'failed'), 'failed')
    await expectRefused(await decide(refundId, 'failed'), 409, 'not_decidable')
    await expectRefused(await decide(refundId, 'succeeded'), 409, 'against_evidence')
    await expectDecided(decide(refundId, 'succeeded', AGAINST), 'succeeded')
    expect(await lab.left(other)).toBe('70')
  })

  it('that a refund refused with a final code succeeded, and the growth is matched to it', async () => {
    const { payment, refundId } = await lab.openSent('code', { code: 33 })
    await lab.passTwice(payment, refundId)
    expect(await lab.status(refundId)).toBe('failed')
    const shown = await expectDecided(decide(refundId, 'succeeded'), 'succeeded')
    expect(shown).toMatchObject({
      failure: null,
      resolution: {
        ...{ outcome: 'succeeded', by: operator.name },
        ...{ reason: 'ticket 4711', againstEvidence: null },
      },
    })
    await lab.passShowing(payment, '30')
    await lab.expectRefund(refundId, 'succeeded', { matched: true, left: '70' })
  })

  it.each([
    ['pending', 'failed', 'cancellation'],
    ['accepted', 'failed', 'it can be decided in'],
    ['succeeded', 'succeeded', 'only `failed` or `returned`'],
  ] as const)(
    'nothing else about one that is %s, as %s, and gets what is possible instead',
    async (state, outcome, hint) => {
      const { refundId } = state === 'succeeded' ? await lab.openMatched() : await makeAccepted()
      if (state === 'pending') {
        await lab.database.sql`
        update refunds set status = 'pending', attempts = 0, first_sent_at = null, last_sent_at = null`
      }
      const problem = await expectRefused(await decide(refundId, outcome), 409, 'not_decidable')
      expect(problem.state).toBe(state)
      expect(problem.detail).toContain(hint)
    },
  )
})

describe('a decision against the evidence', () => {
  it('of a failure notification is refused, and with againstEvidence a discrepancy', async () => {
    const { payment, refundId } = await makeUnknown(RESOLVE_MS)
    await lab.pass(payment)
    await lab.passNotified(payment, refundId, '30', { code: 5 })
    await lab.expectRefund(refundId, 'needs_review', { failureCode: '5' })
    const problem = await expectRefused(
      await decide(refundId, 'succeeded'),
      409,
      'against_evidence',
    )
    expect(problem).toMatchObject({ state: 'needs_review' })
    expect(problem.detail).toContain('code 5')
    const shown = await expectDecided(decide(refundId, 'succeeded', AGAINST), 'succeeded')
    expect(shown.resolution?.againstEvidence).toContain('code 5')
    expect(await lab.disagreements(payment)).toContain('decided_against_evidence')
    const events = await lab.database.sql`
      select type from event_outbox where transaction_id = ${payment.transactionId}
        and data::text ~ '"againstEvidence":"|decided_against_evidence' order by id`
    expect(events.map(({ type }) => type)).toEqual(['refund.updated', 'discrepancy.found'])
  })

  it('of a success notification that no query has followed yet is refused', async () => {
    const { payment, refundId } = await makeUnknown(RESOLVE_MS)
    await lab.pass(payment)
    await lab.notify(payment, refundId, '30')
    await expectRefused(await decide(refundId, 'failed'), 409, 'against_evidence')
    expect(await lab.left(payment)).toBe('70')
  })

  it('of a failure notification that no query has followed yet is refused', async () => {
    const { payment, refundId } = await makeUnknown(RESOLVE_MS)
    await lab.pass(payment)
    await lab.notify(payment, refundId, '30', { code: 5 })
    await expectRefused(await decide(refundId, 'succeeded'), 409, 'against_evidence')
    await expectDecided(decide(refundId, 'failed'), 'failed')
  })

  it('of growth that nothing explains is refused; growth of another refund is none', async () => {
    const { payment, refundId } = await makeUnknown(RESOLVE_MS)
    await lab.pass(payment)
    await lab.passShowing(payment, '31')
    expect(await lab.status(refundId)).toBe('needs_review')
    const problem = await expectRefused(await decide(refundId, 'failed'), 409, 'against_evidence')
    expect(problem.detail).toContain('grew to 31')
    await lab.passNotified(payment, 'portal-1', '31')
    await expectDecided(decide(refundId, 'failed'), 'failed')
    expect(await lab.disagreements(payment)).not.toContain('decided_against_evidence')
  })

  it('of growth from before it was sent is none', async () => {
    const payment = await lab.open()
    await lab.passShowing(payment, '40')
    await lab.fault('reset')
    const refundId = await lab.ask(payment, '30')
    await lab.passShowing(payment, '20')
    await lab.show(payment, '40')
    await lab.database.sql`
      update refunds set refunded_before = 40, status = 'needs_review', review = 'no_evidence', attempts = 1,
        first_sent_at = now(), last_sent_at = now(), due_at = null`
    await lab.pass(payment)
    await expectDecided(decide(refundId, 'failed'), 'failed')
  })
})

it('the proof lists what speaks for and against: answers, notifications with codes, growth, decisions', async () => {
  const { payment, refundId } = await makeUnknown(RESOLVE_MS)
  await lab.pass(payment)
  await lab.notify(payment, refundId, '30', { code: 5 })
  await lab.notify(payment, refundId, '30', { amount: 31 })
  await lab.passShowing(payment, '30')
  const read = async () =>
    (await lab.proof(refundId)).indications.map(({ kind, supports, text }) => [
      ...[kind, supports, text],
    ])
  const before = [
    ['answer', 'neither', expect.stringContaining('no answer')],
    ['notification', 'failed', expect.stringContaining('code 5')],
    ['notification', 'neither', expect.stringContaining('not those of the refund')],
    ['growth', 'succeeded', expect.stringContaining('no refund explains 30')],
  ]
  expect(await read()).toEqual(before)
  await decide(refundId, 'failed', AGAINST)
  const decision = ['decision', 'failed', expect.stringContaining(`${operator.name}: ticket 4711`)]
  expect(await read()).toEqual([...before, decision])
  await lab.passShowing(payment, '0')
  const growth = (await read())?.find(([kind]) => kind === 'growth')
  expect(growth).toEqual(['growth', 'succeeded', expect.stringContaining('30 more')])
})

it.each([
  ['failed', 'succeeded'],
  ['failed', 'failed'],
] as const)(
  'two decisions at once %s and %s: one wins, the other learns what was decided',
  async (one, two) => {
    const { payment, refundId } = await makeUnknown(RESOLVE_MS)
    await lab.pass(payment)
    const answers = await atOnce(
      lab.database,
      (held) => held`select from payments where payment_id = ${payment.id} for update`,
      [one, two].map((outcome) => () => decide(refundId, outcome, AGAINST)),
    )
    const [won, lost] = answers.sort((a, b) => a.status - b.status)
    expect(won?.status).toBe(200)
    if (!lost) throw new Error('no second answer')
    const problem = await expectRefused(lost, 409, 'not_decidable')
    const { resolution } = await lab.readRefund(refundId)
    expect(problem.detail).toContain(`decided as ${resolution?.outcome} by ${operator.name}`)
    expect(problem.detail).toContain('ticket 4711')
  },
)

it('a decision locks the transaction before its payment, in the order of a commit', async () => {
  const { payment, refundId } = await makeUnknown(CONFIRM_MS)
  const { status } = await whileUncommitted(
    lab.database,
    async (held) => {
      await held`
        select from transactions where transaction_id = ${payment.transactionId} for update`
      return {
        lockPayment: () => held`select from payments where payment_id = ${payment.id} for update`,
      }
    },
    async (commit, { lockPayment }) => {
      const decided = decide(refundId, 'failed')
      await waitUntilBlocked(lab.database, 1)
      await lockPayment()
      await commit()
      return await decided
    },
  )
  expect(status).toBe(200)
})

const readPaymentEvents = (payment: LabPayment) => lab.database.sql<{ type: string }[]>`
  select type, data from event_outbox where transaction_id = ${payment.transactionId}
    and type like 'payment.%' order by id`

describe('a refund that came back', () => {
  it('keeps its match until two answers, apart, show the refunded amount lower by it', async () => {
    const { payment, refundId } = await lab.openMatched()
    await expectDecided(decide(refundId, 'returned'), 'returned')
    expect(await lab.left(payment)).toBe('70')
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('70')
    await lab.passShowing(payment, '0')
    expect(await lab.left(payment)).toBe('70')
    await lab.passShowing(payment, '30')
    await lab.passShowing(payment, '0')
    expect(await lab.left(payment)).toBe('70')
    const before = await readPaymentEvents(payment)
    await lab.age(refundId, CONFIRM_MS)
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('100')
    await lab.expectRefund(refundId, 'returned', { matched: false })
    expect((await readPaymentEvents(payment)).slice(before.length)).toEqual([
      { type: 'payment.updated', data: await lab.payment(payment.id) },
    ])
    await lab.pass(payment)
    expect(await readPaymentEvents(payment)).toHaveLength(before.length + 1)
    const freed = (await lab.timeline(payment)).filter(({ field }) => field === 'freed')
    expect(freed).toMatchObject([{ refundId, after: '30' }])
  })

  it('may hide the growth of another one that was refused: that one does not fail', async () => {
    const { payment, refundId } = await lab.openMatched()
    await decide(refundId, 'returned')
    await lab.fault('acceptThenCode', { code: 33 })
    const other = await lab.send(payment, '30')
    await lab.show(payment, '30')
    await lab.passTwice(payment, other)
    expect(await lab.status(other)).toBe('unknown')
  })

  it('lowers what the growth of another one is measured from, once it is freed', async () => {
    const { payment, refundId } = await lab.openMatched()
    await decide(refundId, 'returned')
    const disputed = await lab.ask(payment, '10')
    await lab.database.sql`
      update refunds set status = 'needs_review', review = 'contradicted', due_at = null
      where refund_id = ${disputed}`
    await lab.fault('acceptThenCode', { code: 33 })
    const other = await lab.send(payment, '30')
    await lab.show(payment, '0')
    await lab.age(other, 2 * CONFIRM_MS)
    await lab.passTwice(payment, refundId)
    expect(await lab.left(payment)).toBe('60')
    await lab.passShowing(payment, '30')
    expect(await lab.status(other)).toBe('unknown')
  })

  it('from before the payment was first seen is freed as well', async () => {
    const { payment, refundId } = await lab.openMatched()
    await lab.database.sql`update payments set refunded_at_first = 30`
    await lab.database.sql`update refunds set matched = false, in_first_sight = true`
    await decide(refundId, 'returned')
    await lab.show(payment, '0')
    await lab.passTwice(payment, refundId)
    expect(await lab.left(payment)).toBe('100')
    const next = await lab.send(payment, '100')
    expect(await lab.status(next)).toBe('accepted')
  })

  it.each([0, 5])(
    'keeps a later notification with code %i, as a discrepancy, and changes nothing',
    async (code) => {
      const { payment, refundId } = await lab.openSent()
      await lab.passSettled(payment, refundId)
      await lab.expectRefund(refundId, 'succeeded', { inferred: true })
      await decide(refundId, 'returned')
      await lab.passNotified(payment, refundId, '30', { code })
      await lab.expectRefund(refundId, 'returned', {
        matched: true,
        failureCode: code === 0 ? null : '5',
      })
      expect(await lab.disagreements(payment)).toContain('decided_against_evidence')
      const { notifications } = await lab.proof(refundId)
      expect(notifications).toMatchObject([{ notification: { code: String(code) } }])
    },
  )

  it('is decided only of one that has ended', async () => {
    const { refundId } = await makeUnknown(CONFIRM_MS)
    await expectRefused(await decide(refundId, 'returned'), 409, 'not_decidable')
  })

  it('keeps its transaction asked about until it is freed', async () => {
    const { payment, refundId } = await lab.openMatched()
    await decide(refundId, 'returned')
    const isDue = async () => {
      const [row] = await lab.database.sql`
        select due_at is not null as due from transactions where transaction_id = ${payment.transactionId}`
      return row?.due
    }
    await lab.pass(payment)
    expect(await isDue()).toBe(true)
    await lab.show(payment, '0')
    await lab.passTwice(payment, refundId)
    expect(await isDue()).toBe(false)
  })
})

it('a decision contradicts growth that counts, also while one answer shows less', async () => {
  const { payment, refundId } = await makeUnknown()
  await lab.passShowing(payment, '30')
  await lab.expectRefund(refundId, 'succeeded', { inferred: true })
  await lab.passShowing(payment, '0')
  await expectRefused(await decide(refundId, 'failed'), 409, 'against_evidence')
})

describe('the decision of a person', () => {
  /** A refund of 30 out of 100 that is left to a person. */
  async function makeDoubtful() {
    const made = await makeUnknown(RESOLVE_MS)
    await lab.pass(made.payment)
    expect(await lab.status(made.refundId)).toBe('needs_review')
    return made
  }

  it('about a refund that does not exist is 404, whatever its id looks like', async () => {
    for (const id of NO_IDS) {
      await expectProblem(await decide(id, 'failed'), 404, 'refund_not_found')
    }
  })

  it('is refused by the name of the member that is wrong', async () => {
    const { refundId } = await makeDoubtful()
    const wrong: [string, object][] = [
      ['reason', { outcome: 'failed', reason: undefined }],
      ['reason', { outcome: 'failed', reason: '  ' }],
      ['reason', { outcome: 'failed', reason: 'x'.repeat(501) }],
      ['reason', { outcome: 'failed', reason: 'a\u0000b' }],
      ['reason', { outcome: 'failed', reason: 'a\ud800' }],
      ['outcome', { outcome: 'accepted' }],
      ['outcome', {}],
      ['note', { outcome: 'failed', note: 'y' }],
    ]
    for (const [field, body] of wrong) {
      await expectInvalid(await operator.post(`refunds/${refundId}/resolution`, body), field)
    }
    expect(await lab.status(refundId)).toBe('needs_review')
  })

  it('releases the amount, changes the version, is asked about, and seen with name and reason', async () => {
    const { payment, refundId } = await makeDoubtful()
    await lab.database.sql`update transactions set due_at = null`
    const before = await readItem(lab, payment.transactionId)
    const { failure } = await expectDecided(decide(refundId, 'failed'), 'failed')
    expect(failure).toEqual({ source: 'service', code: 'resolved', message: 'ticket 4711' })
    const after = await readItem(lab, payment.transactionId)
    expect(after.version).toBe(before.version + 1)
    expect(after.dueInMs).toBeLessThan(60_000)
    const cause = `resolved with API key ${operator.name}: ticket 4711`
    const { transitions, evidence } = await lab.proof(refundId)
    expect(transitions.at(-1)).toMatchObject({ from: 'needs_review', to: 'failed', cause })
    expect(evidence).toBe(cause)
    const [last] = (await lab.timeline(payment)).slice(-1)
    expect(last).toMatchObject({ type: 'change', refundId, after: 'failed', cause })
    await expectTaken(await ask({ url: lab.service.url }, payment.id, { amount: '100' }))
  })
})
